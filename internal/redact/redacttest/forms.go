package redacttest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
)

// Form is a text with the name of a secret, $N, and the secret, $S.
type Form struct{ Text string }

// Syntaxes returns the ways in which programs write a name and a value.
func Syntaxes() []Form {
	return forms(
		"$N=$S", "$N = $S", "$N=\"$S\"", "$N='$S'", "$N=`$S`", "$N := $S", "export $N=$S", "a=1&$N=$S&b=2", "https://h/x?$N=$S", "https://h/x#$N=$S",
		"Server=s;$N=$S;x=1", "Server = s ; $N = $S ; x = 1", `Server=s;$N="a;$S";`, "Driver={d};$N={$S};", "host,$N=$S,ssl=True",
		`{"$N":"$S"}`, `{"$N": ["$S"]}`, `{"$N":["x","$S"],"n":1}`, `{"$N":{"value":"$S"}}`, `{"$N":{"a":{"b":"$S"}},"n":1}`, `{'$N': '$S'}`, `{:$N=>"$S"}`,
		`['$N' => '$S']`, `{"name":"$N","value":"$S"}`, `{"key":"$N","value":"$S"}`, `{"name": "$N", "slot": 1, "value": "$S"}`, `{"value":"$S","name":"$N"}`, `{"value": "$S", "key": "$N"}`,
		`["$N","$S"]`, `('$N', '$S')`, `map[$N:[$S] a:[b]]`, `map[string]string{"$N":"$S"}`, `{User:a $N:$S}`, `Config{$N:"$S"}`, `connect(user='a', $N='$S')`,
		"<$N>$S</$N>", "<$N type=\"x\">$S</$N>", "<$N><![CDATA[$S]]></$N>", "<n:$N a='b'>\n$S</n:$N>", `<a $N="$S"/>`, `<add name="$N" value="$S"/>`, `<add key='$N' value='$S' />`,
		"<setting name=\"$N\"><value>$S</value></setting>", "form-data; name=\"$N\"\r\n\r\n$S\r\n--x", "$N: \"$S\"", "- $N: '$S'", "$N:\n  $S", "| $N | $S |", "$N\t$S",
		"$N -> $S", "$N($S)", "$N[$S]", "the $N is $S", "$N '$S' has expired", "using $N '$S'", "invalid $N: $S", "Incorrect $N provided: $S", "--$N $S", "--$N=$S", "/p:$N=$S",
		"$N＝$S", "$N\u00a0= $S", "$N&#61;$S", "$N&#x3d;$S", "&quot;$N&quot;:&quot;$S&quot;", "?a=1&amp;$N=$S", "\ufeff$N=\u200b$S", "$N = N'$S'",
	)
}

// Marked returns forms whose secret is marked by other means than a name before it.
func Marked() []Form {
	return forms(
		"amqp://a:$S@h", "redis://:$S@cache:6379/0", "POSTGRES://A:$S@DB/x", "https://$S@host/x", "a:$S@tcp(db:3306)/x", "a/$S@//db:1521/x",
		`{"url":"https:\/\/a:$S@db\/x"}`, "https%3A%2F%2Fa%3A$S%40db%3A1%2Fx",
		"Authorization: Bearer $S$S", "Authorization: token $S", "Authorization: ApiKey $S", "map[Authorization:[Bearer $S$S] X:[y]]",
		"Authorization: AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=$S", `Authorization: Digest username="a", nonce="b", response="$S"`,
		"X-Auth: $S", "X-Api-Key: $S", "X-Vault-Token: $S", "Cookie: s=$S; a=b", "Set-Cookie: s=$S; HttpOnly", "webhook-signature: v1,$S$S", "Stripe-Signature: t=1,v1=$S$S",
		"Bearer\t$S$S", "Bearer\n$S$S", "bearer $S$S", "aeg-sas-token: r=x&e=1&s=$S", "https://h/api?code=$S", "https://h/api?a=1&amp;code=$S", "https://h/x?key=$S",
		"curl -u a:$S https://h", "curl --user a:$S https://h", "curl --user='a:$S' https://h", "mysql -uroot -p$S", "sshpass -p $S ssh h", "curl -H 'X-Api-Key: $S' h",
		"ALTER USER a WITH PASSWORD '$S'", "CREATE USER a IDENTIFIED BY '$S'", "CREATE USER a IDENTIFIED WITH mysql_native_password BY '$S'", "CREATE LOGIN a WITH PASSWORD = N'$S'", "machine h login a password $S",
		"host=db password='it\\'s $S' dbname=x", "API key $S", "Incorrect API key provided: $S", "password（$S）", "passwоrd=$S", "pass\u200bword=$S", `{"p\u0061ssword":"$S"}`,
		"admin:$apr1$abcdefgh$$S", "a:$2b$10$$S$S", "//registry/:_authToken=$S", "https://hooks.example.com/hook/$S$S$S", "ghp_$S$S\n$S$S", "ghp%5F$S$S$S$S", "sk-$S$S$S$S",
		"bot123456789:AA$S$S$Sabcd/x", "-----BEGIN PRIVATE KEY----- $S$S$S -----END PRIVATE KEY-----", "$S$S\n$S$S\n-----END PRIVATE KEY-----",
		"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n$S$S\n---- END SSH2 ENCRYPTED PRIVATE KEY ----", "PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 8\n$S$S",
		`{"kty":"RSA","n":"a","d":"$S$S$S"}`, `{"kty":"oct","k":"$S$S$S"}`, `{"key":"$S"}`, `{"pin":"$S"}`, `{"otp":"$S"}`, `{"pw":"$S"}`, `{"auth":"$S"}`, `{"signature":"$S"}`,
		"Kennwort=$S", "motdepasse=$S", "session_id=$S", "csrf=$S", "PGPASSWORD=$S psql", "ConnectionStrings__Db=Server=x;Password=$S",
	)
}

func forms(texts ...string) []Form {
	var list []Form
	for _, text := range texts {
		list = append(list, Form{text})
	}
	return list
}

// Names returns names of secrets.
func Names() []string {
	return []string{"password", "DB_PASSWORD", "clientSecret", "x-api-key", "AccessToken", "storage_account_key"}
}

// With returns the form with a name and a secret.
func (f Form) With(name, secret string) Sample {
	return Sample{f.Text, strings.NewReplacer("$N", name, "$S", secret).Replace(f.Text), secret}
}

// Secret returns a random secret of 10 letters of both cases and digits.
func Secret(seed uint64) string {
	m := maker{rand.New(rand.NewPCG(5, seed))}
	return m.of(capitals, 1) + m.of(figures, 1) + m.of(smalls, 1) + m.of(all62, 4) + m.of(figures, 1) + m.of(letters, 2)
}

// Wrap embeds a text in another one.
type Wrap struct {
	Name string
	Of   func(string) string
}

// Wraps returns the usual surroundings and encodings of texts.
func Wraps() []Wrap {
	quoted := func(s string) string { return strings.TrimSuffix(fmt.Sprintf("%q", s), "\n") }
	encoded := func(s string) string {
		out, _ := json.Marshal(s) // a string cannot fail
		return string(out)
	}
	return []Wrap{
		{"plain", func(s string) string { return s }},
		{"sentence", func(s string) string { return "activity Charge: post: 500: " + s }},
		{"line", func(s string) string { return "first\n" + s + "\nlast" }},
		{"Go", quoted},
		{"JSON", func(s string) string { return `{"message":` + encoded(s) + `,"n":1}` }},
		{"JSON in JSON", func(s string) string { return `{"body":` + encoded(`{"message":`+encoded(s)+`}`) + `}` }},
		{"query", func(s string) string { return "https://h/x?text=" + url.QueryEscape(s) + "&n=1" }},
		{"path", func(s string) string { return "https://h/" + url.PathEscape(s) }},
		{"query in a query", func(s string) string { return "https://h/x?u=" + url.QueryEscape("text="+url.QueryEscape(s)) }},
		{"HTML", func(s string) string { return "<p>" + html.EscapeString(s) + "</p>" }},
		{"base64", func(s string) string { return "data: " + base64.StdEncoding.EncodeToString([]byte("settings "+s)) }},
		{"base64 of URLs", func(s string) string {
			return base64.RawURLEncoding.EncodeToString([]byte("settings of a program: " + s))
		}},
	}
}

// Readable returns texts of the project that describe secrets, ids or hashes and have to stay readable.
func Readable() []string {
	m := maker{rand.New(rand.NewPCG(7, 8))}
	guid := m.of(hexSmalls, 8) + "-" + m.of(hexSmalls, 4) + "-4" + m.of(hexSmalls, 3) + "-a" + m.of(hexSmalls, 3) + "-" + m.of(hexSmalls, 12)
	return []string{
		"https://api.example.com:8443/api/orchestrations/hmac-2024?limit=100", "/api/dead-letters/" + guid + "/retry", "https://h/x?key=orders&d=3&p=2",
		"https://h/runtime/webhooks/durabletask/instances/" + guid + "?taskHub=h", "/api/webhooks/github", "ETag: W/\"1\"", `{"etag":"0x8DC3A"}`,
		"messageSha256=" + m.of(hexSmalls, 64), `{"sha256":"` + m.of(hexSmalls, 64) + `"}`, "digest sha256:" + m.of(hexSmalls, 64), "module h1:" + m.part(all64, 43) + "=",
		`{"key":"order-17","value":"shipped"}`, `{"key":"` + guid + `"}`, `{"key":"01JB7Z9G5V4T8K2N6Q3R1X0YWM"}`, `{"name":"region","value":"westeurope"}`, "key orders/2026 not found",
		`{"value":"red","name":"color"}`, `<add name="Region" value="westeurope"/>`, `["region","westeurope"]`, `["clientId","x"]`,
		"secret hmac-2024 not found", "get secret reports-" + guid + ": 404", "token " + guid + " not found", "the token has expired", "the password is required", "password must not be empty",
		"secret versions: 3", "signature verification failed", "invalid signature: crypto/rsa: verification error", "signature: not valid", "no API key", "API key required (401)",
		"credentials of the vault were refused: 403 Forbidden", "set ROUNDHOUSE_VAULT_URL", "read connection string orders: no host", "AADSTS700027: Client assertion failed signature validation",
		"docker run -p 8080:80 image:1.2.3", "mkdir -p /var/lib/x", "git log -p HEAD~3", "sort -u file.txt", "roundhouse poller reset-to-beginning orders --output table", "-parallel 4",
		"2026-11-28T12:36:29.123456Z", "lease until 2026-11-28T12:36:29Z", "v1.24.3-rc.1", "go1.26.1 linux/amd64", "attempt 3 of 5 in 1m30s", "P1DT2H", "10.0.0.4:5432", "[::1]:7071",
		"100% of 20%, 5% less", `C:\new\table\users\x.txt`, `\\server\share`, "a &amp; b &lt; c", "AT&T; R&D", "Größe 5 µm", "日本語、テスト：１２３", "привет, мир: 42",
		"<password> and <token> are required", "usage: login <user> <password>", "<Token expired>", "tokens: [1 2 3]", "maxTokens: 4096", "pinned: 3", "opinion=good", "k=3 d=4 p=0.5",
		m.of(hexSmalls, 40), m.of(smalls, 52), "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", "OrchestrationHistoryEventStartedHandlers", "src/orchestrator/history/EntryOfTimeline",
		base64.StdEncoding.EncodeToString([]byte("the quick brown fox jumps over")), base64.StdEncoding.EncodeToString([]byte(`{"orderId":17,"state":"open"}`)),
		"basic authentication failed", "auth plain is off", "author: Ann", "the bearer is Ann", "sk-learn", "task-2024-11-28-nightly-of-westeurope",
		"plan PRIVATE KEY rotation", "-----END CERTIFICATE-----", "$1 and $2", "cost $5 to $6", "SELECT * FROM t WHERE id = $1", "user@example.com", "git@github.com:a/b.git", "https://ann@example.com/x",
	}
}
