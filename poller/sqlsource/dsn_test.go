package sqlsource

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Valid connection strings are accepted in every documented form; surrounding characters are ignored.
func TestConnectionStrings(t *testing.T) {
	t.Parallel()
	for dialect, list := range map[string][]string{
		Postgres: {"postgres://app:geheim@db/orders", "postgresql://app:geheim@db.example:5432,[::1]:5433/orders?sslmode=require&application_name=a", "postgres://app@db/orders?password=geheim",
			"postgres://app:geh%40im@db/orders", "postgres://app:ge:heim@db/orders", "postgres:///orders?host=/var/run/postgresql&user=app", "postgres://app:geheim@%2Fvar%2Frun/orders",
			"host=db user=app password=geheim dbname=orders", `host=db user=app password='ge heim''s' dbname=orders`[:len(`host=db user=app password='ge heim`)] + `' dbname=orders`, `host = db password = 'it\'s' dbname=orders`,
			"service=orders", " postgres://app:geheim@db/orders\n", "\ufeffpostgres://app:geheim@db/orders"},
		SQLServer: {"sqlserver://app:geheim@db:1433?database=orders&encrypt=true", "sqlserver://app:geheim@db/instance?database=orders", "server=db;user id=app;password=geheim;database=orders",
			`Server=tcp:db,1433;Initial Catalog=orders;User ID=app;Password="ge;heim""x";Encrypt=True;Connection Timeout=30;`, "odbc:server=db;user id=app;password={ge;he}}im};database=orders",
			"sqlserver://app:geheim@db?database=orders\r\n"},
		MySQL: {"app:geheim@tcp(db:3306)/orders\n"},
	} {
		for _, dsn := range list {
			if _, _, err := dialects()[dialect].connect(dsn, time.Second); err != nil && !strings.Contains(dsn, "service=") {
				t.Errorf("%s: %q: %v", dialect, dsn, err)
			}
		}
	}
}

const head, tail = "S3cretHead", "TailOfPassword"

// malformedStrings have head and tail as the password, with a character in between that the driver reads differently.
func malformedStrings() map[string][]string {
	all := map[string][]string{}
	add := func(dialect string, list ...string) { all[dialect] = append(all[dialect], list...) }
	for _, between := range []string{"@", "/", "?", "#", " ", ":@", "@@", "/@", "?@", "#@", "@:", "%", "%zz", "[", "]", "\\", `"`, "'", "\n", "\x00", "@/", "=", "&", ";", "{", "<"} {
		password := head + between + tail
		add(Postgres, "postgres://app:"+password+"@127.0.0.1:1/orders", "postgres://app:"+password+"@127.0.0.1:1/orders?sslmode=disable",
			"host=127.0.0.1 port=1 user=app password="+password+" dbname=orders", "password="+password+" host=127.0.0.1 port=1")
		add(SQLServer, "sqlserver://app:"+password+"@127.0.0.1:1?database=orders", "sqlserver://app:"+password+"@127.0.0.1:1/instance",
			"server=127.0.0.1;port=1;user id=app;password="+password+";database=orders", "odbc:server=127.0.0.1;port=1;uid=app;pwd="+password+";database=orders")
	}
	good := "postgres://app:" + head + tail + "@127.0.0.1:1/orders"
	add(Postgres, "'"+good+"'", `"`+good+`"`, "jdbc:"+good, "POSTGRES://app:"+head+tail+"@127.0.0.1:1/orders", "DATABASE_URL="+good, "postgres:/"+good, "postgres//app:"+head+tail+"@127.0.0.1:1/orders",
		"postgres://app:"+head+tail+"@/orders", "postgres://app:"+head+tail+"/orders", "postgres://app:5432/"+tail+"@127.0.0.1:1/orders", "postgres://app:5432?"+tail+"@127.0.0.1:1/orders",
		"postgres://app:5432#"+tail+"@127.0.0.1:1/orders", good+"?"+tail+"=1", good+"?password="+head+"&password="+tail, "user=app password="+head+tail, head+tail, "sqlserver://app:"+head+tail+"@127.0.0.1:1",
		"host=127.0.0.1 password='"+head+"'"+tail, "host=127.0.0.1 password='"+head+tail, "host=127.0.0.1 "+tail+"=x password="+head)
	add(SQLServer, "'server=127.0.0.1;password="+head+tail+"'", "jdbc:sqlserver://127.0.0.1;password="+head+tail, "user id=app;password="+head+tail, "server=127.0.0.1;"+tail+"=x;password="+head,
		`server=127.0.0.1;password="`+head+`"`+tail, `server=127.0.0.1;password="`+head+tail, "sqlserver://app:1433/"+tail+"@127.0.0.1:1")
	return all
}

// For any malformed connection string, no error quotes a part of the password, and no other server is contacted.
func TestMalformedConnectionStrings(t *testing.T) {
	t.Parallel()
	count := 0
	for dialect, list := range malformedStrings() {
		for _, dsn := range list {
			count++
			s, err := Open(Config{Dialect: dialect, DSN: dsn, SourceID: "s", Table: "orders", Cursor: "id", Keys: []string{"id"}, Timeout: 5 * time.Second})
			if err == nil {
				_, err = s.Check(t.Context())
				_ = s.Close()
			}
			if !errors.Is(err, ErrConnection) {
				t.Errorf("%s: %q: %v", dialect, dsn, err)
			}
			for _, piece := range []string{head, tail, head[:6], tail[:8], tail[6:]} {
				if err != nil && strings.Contains(err.Error(), piece) {
					t.Errorf("%s: %q: the error shows %s: %v", dialect, dsn, piece, err)
				}
			}
			if err != nil && strings.Contains(err.Error(), "/var/run") {
				t.Errorf("%s: %q: the default server: %v", dialect, dsn, err)
			}
		}
	}
	if count < 200 {
		t.Errorf("%d strings", count)
	}
}

// Any password that is escaped in its form reaches the driver.
func TestEscapedPasswords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		password := rapid.StringOfN(rapid.SampledFrom([]rune(`aZ09 @/?#%:;='"\{}[]&+é`)), 1, 12, -1).Draw(r, "password")
		trimmed := strings.TrimSpace(password)
		var url strings.Builder
		for _, b := range []byte(password) {
			url.WriteString("%" + string("0123456789ABCDEF"[b>>4]) + string("0123456789ABCDEF"[b&15]))
		}
		for dialect, tt := range map[string][2]string{
			Postgres + " URL":      {"postgres://app:" + url.String() + "@db/orders", password},
			Postgres + " keywords": {"host=db password='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password) + "'", password},
			SQLServer + " URL":     {"sqlserver://app:" + url.String() + "@db?database=orders", password},
			SQLServer + " ADO":     {`server=db;password="` + strings.ReplaceAll(trimmed, `"`, `""`) + `"`, trimmed},
			SQLServer + " ODBC":    {"odbc:server=db;pwd={" + strings.ReplaceAll(trimmed, "}", "}}") + "}", trimmed},
		} {
			if tt[1] == "" {
				continue
			}
			name, _, _ := strings.Cut(dialect, " ")
			_, secrets, err := dialects()[name].connect(tt[0], time.Second)
			if err != nil || !slices.Contains(secrets, tt[1]) {
				r.Errorf("%s: %s: %q, %v", dialect, tt[0], secrets, err)
			}
		}
	})
}

// No error has a password that is in the place of the user, in any form in which servers and drivers show users.
func TestPasswordsInThePlaceOfUsers(t *testing.T) {
	t.Parallel()
	for dialect, list := range map[string][]string{
		Postgres: {"postgres://USER@127.0.0.1:1/orders", "postgres://USER:@127.0.0.1:1/orders", "postgres://app%3AUSER@127.0.0.1:1/orders", "host=127.0.0.1 port=1 user=USER dbname=orders", "postgres://127.0.0.1:1/orders?user=USER",
			"postgres://USER:USER@127.0.0.1:1/orders"},
		SQLServer: {"sqlserver://USER@127.0.0.1:1?database=orders", "server=127.0.0.1;port=1;user id=USER", "odbc:server=127.0.0.1;port=1;user id={USER}"},
		MySQL:     {"USER@tcp(127.0.0.1:1)/orders", "USER:@tcp(127.0.0.1:1)/orders"},
	} {
		for _, form := range list {
			for _, user := range []string{head + tail, "s3"} {
				dsn := strings.ReplaceAll(form, "USER", user)
				_, secrets, err := dialects()[dialect].connect(dsn, time.Second)
				if err != nil {
					t.Errorf("%s: %q: %v", dialect, dsn, err)
					continue
				}
				for _, text := range []string{`FATAL: password authentication failed for user "%s"`, "Access denied for user '%s'@'localhost'", "Login failed for user '%s'.", "failed to connect to `user=%s database=orders`"} {
					shown := strings.ReplaceAll(text, "%s", user)
					if strings.HasPrefix(form, "postgres://app%3A") {
						shown = strings.ReplaceAll(text, "%s", "app:"+user)
					}
					if got := scrub(shown, secrets); strings.Contains(got, user) {
						t.Errorf("%s: %q: %s", dialect, dsn, got)
					}
				}
				s, err := Open(Config{Dialect: dialect, DSN: dsn, SourceID: "s", Table: "orders", Cursor: "id", Keys: []string{"id"}, Timeout: 5 * time.Second})
				if err == nil {
					_, err = s.Check(t.Context())
					_ = s.Close()
				}
				if err == nil || strings.Contains(err.Error(), user) {
					t.Errorf("%s: %q: %v", dialect, dsn, err)
				}
			}
		}
	}
}

// Whatever a string is, it is read or refused, and a refusal shows nothing of it.
func FuzzConnectionString(f *testing.F) {
	for _, list := range malformedStrings() {
		for _, dsn := range list {
			f.Add(dsn)
		}
	}
	f.Fuzz(func(t *testing.T, dsn string) {
		for _, form := range []form{postgresForm(), sqlserverForm()} {
			if _, err := form.check(clean(dsn)); err != nil {
				if _, known := errors.AsType[dsnError](err); !known {
					t.Errorf("%q: %v", dsn, err)
				}
			}
		}
	})
}
