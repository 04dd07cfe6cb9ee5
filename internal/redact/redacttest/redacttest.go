// Package redacttest has a corpus of secrets, for tests of outputs that must not contain any, and of harmless texts
// that look like secrets. It owns no storage keys.
package redacttest

import (
	"math/rand/v2"
	"strings"
)

// Sample is a text with a secret. No secret is real, and none occurs literally here, so that programs that search
// source code for secrets find nothing.
type Sample struct {
	// Kind is the unique kind of the sample.
	Kind string
	Text string
	// Secret is the part of the text that must be removed.
	Secret string
}

// FoundIn returns a part of the secret that remains in a text, of eight bytes or more; "" for none.
func (s Sample) FoundIn(text string) string {
	const least = 8
	for i := 0; i+least <= len(s.Secret); i++ {
		if part := s.Secret[i : i+least]; strings.Contains(text, part) && !strings.Contains(labels, part) {
			return part
		}
	}
	return ""
}

// labels are harmless parts of secrets: all secrets of their kind have them.
const labels = "/IncomingWebhook/ -----BEGIN RSA PRIVATE KEY----- -----END RSA PRIVATE KEY----- -----BEGIN EC PRIVATE KEY-----"

// maker makes the random parts of secrets, the same ones in each run.
type maker struct{ *rand.Rand }

const (
	figures   = "0123456789"
	smalls    = "abcdefghijklmnopqrstuvwxyz"
	capitals  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters   = smalls + capitals
	all62     = letters + figures
	hexSmalls = "0123456789abcdef"
	all64     = all62 + "+/"
	allWord   = all62 + "_-"
)

func (m maker) of(chars string, n int) string {
	var out strings.Builder
	for range n {
		out.WriteByte(chars[m.IntN(len(chars))])
	}
	return out.String()
}

// part returns n characters, of which the first and the last are letters or digits.
func (m maker) part(chars string, n int) string {
	return m.of(all62, 1) + m.of(chars, n-2) + m.of(all62, 1)
}

// Secrets returns one sample of each kind of secret, the same ones each time.
func Secrets() []Sample {
	m := maker{rand.New(rand.NewPCG(1, 2))}
	var out []Sample
	add := func(kind, before, secret, after string) {
		out = append(out, Sample{kind, before + secret + after, secret})
	}
	whole := func(kind string, parts ...string) { add(kind, "", strings.Join(parts, ""), "") }

	// Azure and Entra ID.
	whole("Entra client secret", m.part(all62, 3), "8", "Q~", m.part(allWord, 34))
	whole("Entra client secret, older", m.part(all62, 3), "7", "Q~", m.part(allWord, 31))
	whole("storage account key", m.part(all64, 86), "==")
	whole("storage account key with signature", m.part(all64, 76), "+ASt", m.part(all62, 5), "A==")
	whole("Cosmos DB key", m.part(all64, 76), "ACDb", m.part(all62, 5), "Q==")
	whole("function key", m.part(all62, 44), "AzFu", m.part(all62, 5), "A==")
	whole("search key", m.part(all62, 42), "AzSe", "A", m.part(all62, 5))
	whole("container registry password", m.part(all64, 42), "+ACR", "A", m.part(all62, 5))
	whole("Service Bus key", m.part(all64, 33), "+ASb", "A", m.part(all62, 5), "=")
	whole("Event Hubs key", m.part(all64, 33), "+AEh", "A", m.part(all62, 5), "=")
	whole("Redis key", m.part(all62, 33), "AzCa", "A", m.part(all62, 5), "=")
	whole("key of an Azure AI service", m.part(all62, 52), "JQQJ99", m.part(all62, 26))
	add("storage connection string", "DefaultEndpointsProtocol=https;AccountName=dev;AccountKey=", m.part(all64, 40)+"=", ";EndpointSuffix=core.windows.net")
	add("Service Bus connection string", "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=", m.part(all64, 43)+"=", "")
	add("Cosmos DB connection string", "AccountEndpoint=https://db.documents.azure.com:443/;AccountKey=", m.part(all64, 40)+"==", ";")
	add("Application Insights connection string", "InstrumentationKey=", m.of(hexSmalls, 8)+"-"+m.of(hexSmalls, 4)+"-4aaa-8bbb-"+m.of(hexSmalls, 12), ";IngestionEndpoint=https://x.in.applicationinsights.azure.com/")
	add("IoT Hub connection string", "HostName=h.azure-devices.net;DeviceId=d;SharedAccessKey=", m.part(all64, 43)+"=", "")
	add("Redis connection string", "c.redis.cache.windows.net:6380,password=", m.part(all62, 43)+"=", ",ssl=True")
	add("SignalR connection string", "Endpoint=https://s.service.signalr.net;AccessKey=", m.part(all64, 43)+"=", ";Version=1.0;")
	add("signed URL", "https://dev.blob.core.windows.net/c/b?sv=2024-11-04&sr=b&sp=r&sig=", m.part(all62, 40)+"%3D", "&se=2026-01-01")
	add("shared access signature", "SharedAccessSignature sr=ns&sig=", m.part(all62, 40)+"%3D", "&se=1767225600&skn=Root")
	add("function key in a URL", "https://app.azurewebsites.net/api/tasks?code=", m.part(allWord, 54)+"==", "")
	add("function key in a header", "x-functions-key: ", m.part(allWord, 40), "")
	add("key of API Management", "Ocp-Apim-Subscription-Key: ", m.of(hexSmalls, 32), "")
	add("Logic Apps URL", "https://prod-1.westeurope.logic.azure.com/workflows/w/triggers/manual/paths/invoke?api-version=1&sig=", m.part(allWord, 43), "")
	add("Event Grid key", "aeg-sas-key: ", m.part(all64, 43)+"=", "")
	add("shared key header", "Authorization: SharedKey dev:", m.part(all64, 43)+"=", "")
	add("publishing profile", `<publishProfile userName="u" userPWD="`, m.part(all62, 60), `" />`)
	add("setting of the Functions host", "AzureWebJobsStorage=", m.part(all62, 30), "")

	// Code and packages.
	for _, kind := range []string{"p", "o", "u", "s", "r"} {
		whole("GitHub gh"+kind, "gh", kind, "_", m.part(all62, 36))
	}
	whole("GitHub fine-grained", "github", "_pat_", m.part(all62, 22), "_", m.part(all62, 59))
	for _, kind := range []string{"glpat", "gldt", "glrt", "glft", "glsoat"} {
		whole("GitLab "+kind, kind, "-", m.part(allWord, 20))
	}
	whole("npm", "npm", "_", m.part(all62, 36))
	whole("PyPI", "pypi", "-AgEIcHlwaS5vcmc", m.part(allWord, 60))
	whole("RubyGems", "rubygems", "_", m.of(hexSmalls, 48))
	whole("NuGet", "oy", "2", m.of(smalls+figures, 43))
	whole("Docker Hub", "dckr", "_pat_", m.part(all62, 27))
	whole("Artifactory", "AK", "Cp", m.part(all62, 69))
	whole("Atlassian", "ATA", "TT3", m.part(allWord, 186))
	whole("Postman", "PM", "AK-", m.of(hexSmalls, 24), "-", m.of(hexSmalls, 34))
	whole("SonarQube", "sq", "u_", m.of(hexSmalls, 40))
	whole("Linear", "lin", "_api_", m.part(all62, 40))
	whole("Figma", "fig", "d_", m.part(allWord, 40))
	whole("Clojars", "CLO", "JARS_", m.part(all62, 60))

	// Messages.
	whole("Slack bot", "xo", "xb-", m.of(figures, 12), "-", m.of(figures, 12), "-", m.part(all62, 24))
	whole("Slack user", "xo", "xp-", m.of(figures, 12), "-", m.of(figures, 12), "-", m.of(figures, 12), "-", m.of(hexSmalls, 32))
	whole("Slack app", "xa", "pp-1-A", m.of(capitals+figures, 10), "-", m.of(figures, 12), "-", m.of(hexSmalls, 64))
	add("Slack hook", "https://hooks.slack.com/"+"services/", "T"+m.of(capitals, 8)+"/B"+m.of(capitals, 8)+"/"+m.part(all62, 24), "")
	add("Teams hook", "https://contoso.webhook.office"+".com/webhookb2/", m.of(hexSmalls, 36)+"@"+m.of(hexSmalls, 36)+"/IncomingWebhook/"+m.of(hexSmalls, 32), "")
	add("Discord hook", "https://discord.com/api"+"/webhooks/", m.of(figures, 18)+"/"+m.part(allWord, 68), "")
	add("Telegram", "https://api.telegram.org/bot"+m.of("123456789", 10)+":", "A"+"A"+m.part(all62, 33), "/sendMessage")
	whole("SendGrid", "S", "G.", m.part(allWord, 22), ".", m.part(allWord, 43))
	whole("Brevo", "xkey", "sib-", m.of(hexSmalls, 64), "-", m.part(all62, 16))
	whole("Mailgun", "ke", "y-", m.of(hexSmalls, 32))
	whole("Twilio", "S", "K", m.of(hexSmalls, 32))

	// Payments and shops.
	whole("Stripe", "sk", "_live_", m.part(all62, 24))
	whole("Stripe restricted", "rk", "_test_", m.part(all62, 24))
	whole("Standard Webhooks", "wh", "sec_", m.part(all64, 32))
	whole("Square", "sq0", "atp-", m.part(allWord, 22))
	whole("Shopify", "shp", "at_", m.of(hexSmalls, 32))
	whole("Shippo", "shippo", "_live_", m.of(hexSmalls, 40))

	// Clouds and cloud platforms.
	whole("AWS key id", "AK", "IA", m.of(capitals+"234567", 16))
	add("AWS secret key", "aws_secret_access_key = ", m.part(all64, 40), "")
	whole("Bedrock", "AB", "SK", m.part(all62, 120))
	whole("Google API key", "AI", "za", m.part(allWord, 35))
	whole("Google client secret", "GOC", "SPX-", m.part(allWord, 28))
	whole("Google access token", "ya", "29.", m.part(allWord, 60))
	whole("Alibaba", "LT", "AI", m.part(all62, 20))
	whole("DigitalOcean", "dop", "_v1_", m.of(hexSmalls, 64))
	whole("Databricks", "da", "pi", m.of(hexSmalls, 32))
	whole("Heroku", "HR", "KU-AA", m.part(allWord, 58))
	whole("Vault", "hv", "s.", m.part(allWord, 92))
	whole("Terraform Cloud", m.part(all62, 14), ".atlas", "v1.", m.part(all62, 65))
	whole("Pulumi", "pu", "l-", m.of(hexSmalls, 40))
	whole("Doppler", "dp.", "pt.", m.part(all62, 43))
	whole("PlanetScale", "pscale", "_tkn_", m.part(all62, 43))
	whole("OpenShift", "sha", "256~", m.part(allWord, 43))
	whole("age", "AGE-SECRET", "-KEY-1", m.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58))

	// Monitoring and AI services.
	whole("Grafana", "gl", "sa_", m.part(all62, 32), "_", m.of(hexSmalls, 8))
	whole("Dynatrace", "dt0", "c01.", m.of(capitals, 24), ".", m.of(capitals, 64))
	whole("New Relic", "NR", "AK-", m.of(capitals, 27))
	whole("Sentry", "snt", "ryu_", m.of(hexSmalls, 64))
	whole("OpenAI", "sk", "-proj-", m.part(allWord, 74), "T3", "BlbkFJ", m.part(allWord, 74))
	whole("OpenAI, older", "sk", "-", m.part(all62, 20), "T3", "BlbkFJ", m.part(all62, 20))
	whole("Anthropic", "sk", "-ant-api03-", m.part(allWord, 93), "AA")
	whole("Hugging Face", "h", "f_", m.of(letters, 34))

	// Data sources.
	add("URL of PostgreSQL", "postgres://app:", m.part(all62, 16), "@db.example.com:5432/orders?sslmode=require")
	add("URL of MongoDB", "mongodb+srv://app:", m.part(all62, 16), "@cluster.example.net/orders")
	add("URL of Redis", "rediss://:", m.part(all62, 16), "@cache.example.com:6380/0")
	add("URL of AMQP", "amqps://app:", m.part(all62, 8)+"/"+m.part(all62, 8), "@mq.example.com/vhost")
	add("DSN of MySQL", "app:", m.part(all62, 8)+"@"+m.part(all62, 8), "@tcp(db.example.com:3306)/orders?tls=true")
	add("DSN of MySQL without a host", "app:", m.part(all62, 16), "@/orders")
	add("DSN of PostgreSQL", "host=db.example.com user=app password=", m.part(all62, 16), " dbname=orders")
	add("DSN of PostgreSQL with quotes", "host=db.example.com user=app password='", m.part(all62, 8)+" "+m.part(all62, 8), "' dbname=orders")
	add("DSN of SQL Server", "Server=tcp:db.example.com,1433;User ID=app;Password=", m.part(all62, 8)+" "+m.part(all62, 8), ";Encrypt=true;")
	add("DSN of Oracle", "app/", m.part(all62, 16), "@//db.example.com:1521/orders")
	add("token in a URL", "https://", m.part(all62, 40), "@git.example.com/x.git")

	// Secrets of any program.
	whole("JSON Web Token", "ey", "J", m.part(all62, 33), ".ey", "J", m.part(all62, 80), ".", m.part(allWord, 43))
	add("bearer token", "Authorization: Bearer ", m.part(allWord, 40), "")
	add("bearer token alone", "used bearer ", m.part(allWord, 40), "")
	add("basic credentials", "Authorization: Basic ", m.part(all64, 30)+"==", "")
	add("cookie", "Cookie: session=", m.part(all62, 32), "")
	whole("private key", "-----BEGIN RSA PRIVATE", " KEY-----\n", m.part(all64, 64), "\n", m.part(all64, 20), "\n-----END RSA PRIVATE", " KEY-----")
	whole("private key, cut", "-----BEGIN EC PRIVATE", " KEY-----\n", m.part(all64, 64), "\n", m.part(all64, 20))
	whole("private key in base64", "LS0tLS1CRUdJTiBSU0EgUFJJ", "VkFURSBLRVktLS0tLQ", m.part(all62, 60))
	add("form", "grant_type=client_credentials&client_id=app&client_secret=", m.part(all62, 24), "&scope=x")
	add("member", `{"user":"app","clientSecret":"`, m.part(all62, 24), `","n":1}`)
	add("member in a string", `{"body":"{\"user\":\"app\",\"client_secret\":\"`, m.part(all62, 24), `\",\"n\":1}"}`)
	add("flag", "login --user app --password ", m.part(all62, 16), " --wait")
	add("struct as Go prints it", "{User:app Password:", m.part(all62, 16), " Port:5432}")
	add("map as Go prints it", "map[password:", m.part(all62, 16), " user:app]")
	add("line of YAML", "clientSecret: ", m.part(all62, 24), "")
	add("element of XML", "<user>app</user><password>", m.part(all62, 16), "</password>")
	add("environment", "PATH=/bin\nDB_PASSWORD=", m.part(all62, 16), "\nHOME=/home/app")
	return out
}

// Harmless returns texts that hold no secrets, and stay as they are.
func Harmless() []string {
	m := maker{rand.New(rand.NewPCG(3, 4))}
	guid := m.of(hexSmalls, 8) + "-" + m.of(hexSmalls, 4) + "-4" + m.of(hexSmalls, 3) + "-a" + m.of(hexSmalls, 3) + "-" + m.of(hexSmalls, 12)
	return []string{
		"", " ", "ok", "no such vault: hmac-keys (404)",
		guid, "{" + guid + "}", "urn:uuid:" + guid, "correlationId=" + guid, `{"id":"` + guid + `"}`,
		m.of(hexSmalls, 32), m.of(hexSmalls, 40), m.of(hexSmalls, 64), m.of(hexSmalls, 128),
		"sha256:" + m.of(hexSmalls, 64), "commit " + m.of(hexSmalls, 40), "etag W/\"datetime'2026-01-02T03%3A04%3A05.6789012Z'\"",
		"sha512-" + m.part(all64, 86) + "==", "sha256-" + m.part(all64, 43) + "=", "Content-MD5: " + m.part(all64, 22) + "==",
		"/subscriptions/" + guid + "/resourceGroups/rg/providers/Microsoft.KeyVault/vaults/kv/secrets/hmac-keys",
		"https://kv.vault.azure.net/secrets/hmac-keys/" + m.of(hexSmalls, 32),
		"https://management.azure.com/subscriptions/" + guid + "?api-version=2023-01-01",
		"https://dev.table.core.windows.net/Orchestrations(PartitionKey='a%3Ab',RowKey='000001')",
		"GET https://app.example.com:8443/api/tasks?top=10&status=open 200",
		"dial tcp 10.0.0.4:5432: connect: connection refused",
		"postgres://app@db.example.com:5432/orders", "ssh://git@example.com/repo.git", "git@example.com:team/repo.git",
		"mailto:ann@example.com", "ann@example.com assigned it to bob@example.com", "@scope/package@1.2.3", "http://localhost:7071/a@b",
		"orchestration hmac-01JB7Z9G5V4T8K2N6Q3R1X0YWM ended", "01JB7Z9G5V4T8K2N6Q3R1X0YWM",
		"eyJrZXkiOiJ2YWx1ZSIsIm4iOjEyMzQ1Njc4OTB9", m.part(all64, 200) + "==", m.part(all64, 1000), "UEsDBBQAAAAIA" + m.part(all64, 300),
		"aGVsbG8gd29ybGQ=", `{"data":"` + m.part(all64, 44) + `"}`,
		"-----BEGIN CERTIFICATE-----\nMIIB" + m.part(all64, 60) + "\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
		"a private key is required", "PRIVATE KEY expected",
		"basic authentication is off", "Basic settings changed", "the bearer token is missing", `WWW-Authenticate: Bearer realm="x", error="invalid_token"`,
		"invalid character '}' looking for beginning of value", "unexpected token: end of file", "secret: not found",
		`unexpected token: "}"`, `read secret: "hmac" not found`,
		"secretName=hmac secretVersion=7 keyName=k", `{"secretName":"a","secretVersion":"b","keyName":"c","tokenType":"e"}`,
		"get secret hmac-secret: https://kv.vault.azure.net/secrets/hmac-secret: 404", "hmac-secret: context deadline exceeded",
		"exit code=1", "status=200 code=404", "if token == nil {", "token != secret", "for key := range tokens {",
		"maxTokens=4096", "tokens=17", `{"maxTokens":4096,"tokenCount":17}`, `{"secretary":"Ann"}`, `{"author":"Ann","authors":["Bob"]}`,
		"panic: runtime error: index out of range [3] with length 3\n\ngoroutine 7 [running]:\nmain.main()\n\t/src/main.go:12 +0x1d",
		"activity Charge (attempt 3): post to api.example.com: 503 Service Unavailable",
		"2026-01-02T03:04:05.678901Z", "5m30s", "1.2.3-rc.1+build.5", "10.0.0.0/8", "fe80::1%eth0", "de-DE",
		"key-value pairs", "SKU_Standard", "skeleton", "task_live_wire", "SG.com", "hf_model", "sk_live_", "glpat-", "AKIA", "ghp_x",
		"xoxo", "hvs.example", "Grüße, 世界", "a=b&c=d;e=f", `C:\Users\ann\file.txt`, "<token/>", "<id>7</id>", "--output table",
		"[redacted]", "password=[redacted]", `{"password":"[redacted]"}`,
	}
}
