package sqlsource

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Connection strings are checked before a driver reads them. Drivers split a malformed one differently from its
// writer's intention. A part of the password becomes a host, a database or a parameter, and is displayed as such, or
// the driver connects to the default server. So an ambiguous string is refused. No error quotes any part of it.

// dsnError describes the error of a connection string without quoting it.
type dsnError string

func (e dsnError) Error() string { return string(e) }

const (
	errControl = dsnError("it has a control character, such as a line end")
	errQuoted  = dsnError("it is in quotes: store it without them")
	errUser    = dsnError("user or password has one of @ / ? # as it is: write %40, %2F, %3F or %23")
	errHost    = dsnError("the host is missing or malformed; a character of the password may not be escaped: write @ as %40, / as %2F, ? as %3F, # as %23, : as %3A")
	errPath    = dsnError("an @ is behind the host; a / or ? of the password may not be escaped: write %2F or %3F, and %40 for an @ elsewhere")
	errKeys    = dsnError("it has a part that is not a known key=value; a value with blanks, quotes or separators has to be in quotes, as the driver has them")
	errNoHost  = dsnError("it names no server: add the host")
	errAgain   = dsnError("it has a key more than once")
)

var (
	schemed  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.:-]*://`)
	hostName = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+(%[0-9A-Za-z]+)?\]|[\pL\pN._%-]*)(:[0-9]{1,5})?$`)
)

// form is the form of a dialect's connection strings.
type form struct {
	schemes []string
	// server are the keys that name the server, secret those with secret values, keys all others.
	server, secret, keys []string
	// pairs splits a string that is not a URL into keys and values.
	pairs func(dsn string) ([][2]string, error)
}

func postgresForm() form {
	return form{schemes: []string{"postgres", "postgresql"}, server: []string{"host", "hostaddr", "service"}, secret: []string{"password", "sslpassword"}, pairs: keywords,
		keys: strings.Fields(`user port dbname database sslmode sslkey sslcert sslcertmode sslrootcert sslnegotiation sslsni sslinline ssl_min_protocol_version
			ssl_max_protocol_version min_protocol_version max_protocol_version passfile servicefile connect_timeout target_session_attrs load_balance_hosts channel_binding
			require_auth gssencmode krbspn krbsrvname application_name fallback_application_name client_encoding options search_path timezone datestyle intervalstyle
			statement_timeout lock_timeout idle_in_transaction_session_timeout idle_session_timeout transaction_timeout default_transaction_read_only
			default_transaction_isolation default_transaction_deferrable extra_float_digits bytea_output role client_min_messages work_mem jit row_security
			keepalives keepalives_idle keepalives_interval keepalives_count tcp_user_timeout tcp_keepalives_idle tcp_keepalives_interval tcp_keepalives_count`)}
}

func sqlserverForm() form {
	return form{schemes: []string{"sqlserver"}, server: []string{"server", "data source", "addr", "address", "network address"}, secret: []string{"password", "pwd", "change password"}, pairs: delimited(`"`, `"`),
		keys: strings.Split(`database,initial catalog,encrypt,user id,user,uid,port,trustservercertificate,trust server certificate,certificate,servercertificate,tlsmin,packet size,log,connection timeout,connect timeout,timeout,`+
			`hostnameincertificate,keepalive,serverspn,workstation id,wsid,app name,application name,applicationintent,application intent,failoverpartner,failover partner,failoverport,failoverpartnerspn,disableretry,protocol,dial timeout,`+
			`pipe,multisubnetfailover,notraceid,guid conversion,timezone,epa enabled,columnencryption,column encryption setting,authenticator,fedauth,tenant id,clientcertpath,applicationclientid,integrated security,trusted_connection,driver,`+
			`persist security info,app,failover partner spn,multi subnet failover,host name in certificate,server spn,server certificate,pooling,language,current language`, ",")}
}

// clean removes surrounding characters that are not part of a connection string.
func clean(dsn string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(dsn), "\ufeff"))
}

// check returns the error of a string, or its secret parts, as written and as decoded.
func (f form) check(dsn string) (secrets []string, err error) {
	switch {
	case strings.ContainsFunc(dsn, unicode.IsControl):
		return nil, errControl
	case dsn != "" && strings.Contains("\"'`\ufeff", string([]rune(dsn)[0])):
		return nil, errQuoted
	}
	if schemed.MatchString(dsn) {
		return f.checkURL(dsn)
	}
	dsn, odbc := strings.CutPrefix(dsn, "odbc:")
	split := f.pairs
	if odbc {
		split = delimited("{", "}")
	}
	pairs, err := split(dsn)
	if err != nil {
		return nil, err
	}
	return f.checkPairs(pairs, "")
}

func (f form) checkURL(dsn string) ([]string, error) {
	scheme, rest, _ := strings.Cut(dsn, "://")
	if !slices.Contains(f.schemes, scheme) {
		return nil, dsnError("its scheme is another one: begin with " + f.schemes[0] + "://")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, behind := rest[:end], rest[end:]
	user, host, found := cutLast(authority, "@")
	path, query, _ := strings.Cut(behind, "?")
	switch {
	case !found:
		user, host = "", authority
		if strings.Contains(behind, "@") {
			return nil, errPath
		}
	case strings.Contains(user, "@") || strings.Contains(behind, "#"):
		return nil, errUser
	case strings.Contains(path, "@"):
		return nil, errPath
	}
	for h := range strings.SplitSeq(host, ",") {
		if !hostName.MatchString(h) {
			return nil, errHost
		}
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errKeys
	}
	var pairs [][2]string
	for key, all := range values {
		for _, v := range all {
			pairs = append(pairs, [2]string{key, v})
		}
	}
	secrets, err := f.checkPairs(pairs, host)
	if _, password, ok := strings.Cut(user, ":"); ok && password != "" {
		secrets = append(secrets, password)
		if plain, err := url.PathUnescape(password); err == nil {
			secrets = append(secrets, plain)
		}
	}
	return secrets, err
}

// checkPairs checks that all keys are known. host is a server that is named elsewhere.
func (f form) checkPairs(pairs [][2]string, host string) (secrets []string, err error) {
	seen := map[string]bool{}
	for _, pair := range pairs {
		key := strings.ToLower(pair[0])
		if seen[key] {
			return nil, errAgain
		}
		seen[key] = true
		switch {
		case slices.Contains(f.secret, key):
			secrets = append(secrets, pair[1])
		case slices.Contains(f.server, key):
			host += strings.TrimSpace(pair[1])
		case !slices.Contains(f.keys, key):
			return nil, errKeys
		}
	}
	if host == "" {
		return nil, errNoHost
	}
	return secrets, nil
}

// keywords splits key=value pairs like libpq: separated by blanks, values with blanks in single quotes, with a
// backslash before a quote or a backslash.
func keywords(s string) (pairs [][2]string, err error) {
	for s = strings.TrimLeft(s, " "); s != ""; s = strings.TrimLeft(s, " ") {
		key, rest, ok := strings.Cut(s, "=")
		if !ok {
			return nil, errKeys
		}
		rest = strings.TrimLeft(rest, " ")
		rest, quoted := strings.CutPrefix(rest, "'")
		var value strings.Builder
		i := 0
		for ; i < len(rest); i++ {
			c := rest[i]
			if quoted && c == '\'' || !quoted && c == ' ' {
				break
			}
			if c == '\\' && i+1 < len(rest) {
				i++
				c = rest[i]
			} else if c == '\'' {
				return nil, errKeys // libpq accepts it literally, which is never intended
			}
			value.WriteByte(c)
		}
		if quoted {
			if i == len(rest) {
				return nil, errKeys
			}
			if i++; i < len(rest) && rest[i] != ' ' {
				return nil, errKeys
			}
		}
		pairs = append(pairs, [2]string{strings.TrimRight(key, " "), value.String()})
		s = rest[i:]
	}
	return pairs, nil
}

// delimited splits key=value pairs that are separated by semicolons. Values with semicolons are between opening and
// closing, and a closing one in them is doubled: ADO has double quotes, ODBC has braces.
func delimited(opening, closing string) func(string) ([][2]string, error) {
	return func(s string) (pairs [][2]string, err error) {
		for s = strings.TrimLeft(s, "; "); s != ""; s = strings.TrimLeft(s, "; ") {
			key, rest, ok := strings.Cut(s, "=")
			if !ok {
				return nil, errKeys
			}
			var value string
			if inner, enclosed := strings.CutPrefix(strings.TrimLeft(rest, " "), opening); enclosed {
				end := 0
				for ; end < len(inner); end++ {
					if inner[end:end+1] == closing {
						if !strings.HasPrefix(inner[end+1:], closing) {
							break
						}
						end++
					}
				}
				if end >= len(inner) {
					return nil, errKeys
				}
				value, s = strings.ReplaceAll(inner[:end], closing+closing, closing), strings.TrimLeft(inner[end+1:], " ")
				if s != "" && s[0] != ';' {
					return nil, errKeys
				}
			} else if value, s, _ = strings.Cut(rest, ";"); strings.Contains(value, opening) {
				return nil, errKeys
			}
			pairs = append(pairs, [2]string{strings.TrimSpace(key), strings.TrimSpace(value)})
		}
		return pairs, nil
	}
}
