package sqlsource

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

func TestNamed(t *testing.T) {
	t.Parallel()
	params := map[string]any{"a": "x", "b": json.Number("9007199254740993")}
	for _, test := range []struct {
		dialect, query, want string
		args                 []any
		wrong                string
	}{
		{Postgres, "a = :a AND b = :b AND c = :a", "a = $1 AND b = $2 AND c = $3", []any{"x", int64(9007199254740993), "x"}, ""},
		{Postgres, "c::text = :a AND ':a' <> ':''b' AND \":a\" = :b -- :c\n/* :c */", "c::text = $1 AND ':a' <> ':''b' AND \":a\" = $2 -- :c\n/* :c */", []any{"x", int64(9007199254740993)}, ""},
		{MySQL, "`:a` = :a AND c = '\\':b' AND d = :b", "`:a` = ? AND c = '\\':b' AND d = ?", []any{"x", int64(9007199254740993)}, ""},
		{SQLServer, "[:a] = :a AND d = :b", "[:a] = @p1 AND d = @p2", []any{"x", int64(9007199254740993)}, ""},
		{SQLite, "a = :a AND c = :c", "", nil, "no such parameter"},
		{SQLite, "a = :a", "", nil, "b is not in the query"},
		{SQLite, "a = :a AND :b = 'open", "a = ?1 AND ?2 = 'open", []any{"x", int64(9007199254740993)}, ""},
	} {
		st := &statement{dialect: dialects()[test.dialect]}
		err := st.named(test.query, params)
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: error %v, want %q", test.query, err, test.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.query, err)
		}
		testenv.Equal(t, test.query, test.want, st.text.String())
		testenv.Equal(t, test.query+": args", test.args, st.args)
	}
}

// No server has run these statements; they follow the documentation.
func TestSQLServerStatements(t *testing.T) {
	t.Parallel()
	s, err := Open(Config{Dialect: SQLServer, DSN: "sqlserver://app:geheim@localhost?database=db", SourceID: "x", Table: "dbo.Orders", Cursor: "rv",
		Keys: []string{"Id"}, Where: []Condition{{Column: "State", Op: "in", Value: []any{"a", "b"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sh := &shape{deleted: -1, columns: []column{{name: "Id", typ: "INT", class: classInteger}, {name: "State", typ: "VARCHAR", class: classText},
		{name: "rv", typ: "TIMESTAMP", class: classRowVersion}, {name: "At", typ: "DATETIME2", class: classLocal}}}
	testenv.OK(t, s.locate(sh))
	filters := testenv.Must(s.filters(sh))(t)
	place := testenv.Must(s.behind(sh, poller.Cursor{Kind: "rowversion", Value: "0x00000000000007d1"}))(t)
	text, args, err := s.build(query{columns: s.expressions(sh), where: append(filters, place), order: s.order(sh, ""), limit: 11})
	if err != nil {
		t.Fatal(err)
	}
	want := "SELECT TOP (@p1) q.[Id] AS [Id], q.[State] AS [State], q.[rv] AS [rv], CONVERT(varchar(40), CAST(q.[At] AS datetime2(7)), 126) AS [At] " +
		"FROM [dbo].[Orders] q WHERE q.[State] in (@p2, @p3) AND q.[rv] >= CAST(@p4 AS binary(8)) AND (q.[rv] > CAST(@p5 AS binary(8))) ORDER BY q.[rv]"
	testenv.Equal(t, "statement", want, text)
	rv := []byte{0, 0, 0, 0, 0, 0, 7, 0xd1}
	testenv.Equal(t, "args", []any{11, mssql.VarChar("a"), mssql.VarChar("b"), rv, rv}, args)
}

// The requirements of the driver's source code for connections and type names are met; no server has confirmed it.
func TestSQLServerSessions(t *testing.T) {
	t.Parallel()
	c, _, err := connectSQLServer("sqlserver://app:geheim@localhost?database=db", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if made, ok := c.(*mssql.Connector); !ok || !strings.Contains(made.SessionInitSQL, "LOCK_TIMEOUT") {
		t.Errorf("%T is not set up", c)
	}
	s := &Source{dialect: dialects()[SQLServer], config: Config{Query: "SELECT rv, raw FROM t", Cursor: "rv", Bound: BoundRowVersion}}
	sh := &shape{columns: []column{{name: "rv", typ: "BINARY", class: classBytes}, {name: "raw", typ: "BINARY", class: classBytes}}}
	if err := s.dialect.refine(t.Context(), s, sh); err != nil || sh.columns[0].class != classRowVersion || sh.columns[1].class != classBytes {
		t.Errorf("%+v, %v", sh.columns, err)
	}
	for _, test := range []struct{ writable, zone, want string }{{"1", "0", ""}, {"0", "0", "replica"}, {"1", "-300", "-300 minutes from UTC"}} {
		err := refusedSQLServer(test.writable, test.zone)
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, ErrBound) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// The condition without row values is the same one, written out.
func TestExpanded(t *testing.T) {
	t.Parallel()
	d := dialects()[MySQL]
	s := &Source{dialect: d}
	st := &statement{dialect: d}
	number := func(name string) column { return column{name: name, class: classInteger} }
	s.expanded(st, []column{number("a"), number("b"), number("c")}, []string{"1", "2", "18446744073709551615"}, ">")
	testenv.Equal(t, "condition", "(q.`a` > ? OR q.`a` = ? AND (q.`b` > ? OR q.`b` = ? AND (q.`c` > ?)))", st.text.String())
	testenv.Equal(t, "args", []any{int64(1), int64(1), int64(2), int64(2), uint64(18446744073709551615)}, st.args)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good := Config{Dialect: Postgres, DSN: "postgres://app:geheim@localhost/db", SourceID: "x", Table: "public.orders", Cursor: "id", Keys: []string{"id"}}
	for want, change := range map[string]func(*Config){
		"":                                    func(*Config) {},
		`dialect "oracle"`:                    func(c *Config) { c.Dialect = "oracle" },
		`bound "rowversion": postgres has`:    func(c *Config) { c.Bound = BoundRowVersion },
		"one of DSN and DB":                   func(c *Config) { c.DSN = "" },
		"sourceId is needed":                  func(c *Config) { c.SourceID = "" },
		"one of table and query":              func(c *Config) { c.Query = "SELECT 1" },
		`table "a.b.c"`:                       func(c *Config) { c.Table = "a.b.c" },
		"parameters are for a query":          func(c *Config) { c.Params = map[string]any{"a": 1} },
		"cursor is needed":                    func(c *Config) { c.Cursor = "" },
		"keys are needed":                     func(c *Config) { c.Keys = nil },
		`keys: "id" is named twice`:           func(c *Config) { c.Keys = []string{"id", "id"} },
		`operator "; DROP TABLE"`:             func(c *Config) { c.Where = []Condition{{Column: "a", Op: "; DROP TABLE", Value: 1}} },
		"where a in: want a list":             func(c *Config) { c.Where = []Condition{{Column: "a", Op: "in", Value: []any{}}} },
		"one value is wanted":                 func(c *Config) { c.Where = []Condition{{Column: "a", Op: "=", Value: []any{1}}} },
		"where a is null: a value is for all": func(c *Config) { c.Where = []Condition{{Column: "a", Op: "is null", Value: 1}} },
		"where a =: a value is for all":       func(c *Config) { c.Where = []Condition{{Column: "a", Op: "="}} },
		"settle -1ns":                         func(c *Config) { c.Settle = -1 },
		"settle 1ms: mysql needs 2s or more":  func(c *Config) { c.Dialect, c.Settle = MySQL, 1e6 },
		`cursorZone "Nowhere"`:                func(c *Config) { c.CursorZone = "Nowhere" },
	} {
		c := good
		change(&c)
		err := c.Validate()
		if want == "" {
			if err != nil {
				t.Errorf("a good configuration: %v", err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The definition has the address of the database, and nothing of the user and the options.
func TestDefinition(t *testing.T) {
	t.Parallel()
	s, err := Open(Config{Dialect: Postgres, DSN: "postgres://app:geheim@db.example/db", SourceID: "shop", Table: "orders", Cursor: "at", Keys: []string{"id"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := testenv.Must(json.Marshal(s.Definition()))(t)
	testenv.Equal(t, "definition", `{"database":"db.example:5432/db","dialect":"postgres","sourceId":"shop","object":"orders","cursor":"at","keys":["id"],"bound":"settle"}`, string(got))
}

// Every option that determines the rows after a position is in the definition. Options of the reading itself, such as
// user and timeout, are not.
func TestDefinitionHasAllThatPlacesDependOn(t *testing.T) {
	t.Parallel()
	whole := func() Config {
		return Config{Dialect: Postgres, DSN: "postgres://db.example/db", SourceID: "shop", Table: "orders", Cursor: "at", Keys: []string{"id"}, Deleted: "gone", Bound: BoundSettle,
			Where: []Condition{{Column: "region", Op: "=", Value: "eu"}, {Column: "paid", Op: "IS NOT NULL"}}, CursorZone: "Europe/Berlin"}
	}
	fingerprint := func(change func(*Config)) string {
		c := whole()
		change(&c)
		got, _, err := poller.Fingerprint(c.Definition())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	same := fingerprint(func(*Config) {})
	for what, change := range map[string]func(*Config){
		"dialect":    func(c *Config) { c.Dialect = MySQL },
		"source":     func(c *Config) { c.SourceID = "other" },
		"table":      func(c *Config) { c.Table = "invoices" },
		"query":      func(c *Config) { c.Table, c.Query = "", "SELECT 1" },
		"cursor":     func(c *Config) { c.Cursor = "changed" },
		"keys":       func(c *Config) { c.Keys = []string{"part"} },
		"deleted":    func(c *Config) { c.Deleted = "" },
		"bound":      func(c *Config) { c.Bound = BoundXID },
		"column":     func(c *Config) { c.Where[0].Column = "country" },
		"operator":   func(c *Config) { c.Where[0].Op = "<>" },
		"value":      func(c *Config) { c.Where[0].Value = "us" },
		"conditions": func(c *Config) { c.Where = c.Where[:1] },
		"parameters": func(c *Config) { c.Params = map[string]any{"x": 1} },
		"address":    func(c *Config) { c.DSN = "postgres://other.example/db" },
		"zone":       func(c *Config) { c.CursorZone = "America/New_York" },
		"no zone":    func(c *Config) { c.CursorZone = "" },
	} {
		if fingerprint(change) == same {
			t.Errorf("another %s is not in the fingerprint", what)
		}
	}
	for what, change := range map[string]func(*Config){
		"user":     func(c *Config) { c.DSN = "postgres://app:geheim@db.example/db?sslmode=disable" },
		"deletes":  func(c *Config) { c.ExpectDeletes = true },
		"window":   func(c *Config) { c.Settle = time.Minute },
		"readers":  func(c *Config) { c.Readers = []string{"report"} },
		"timeout":  func(c *Config) { c.Timeout = time.Minute },
		"operator": func(c *Config) { c.Where[1].Op = "is not null" },
	} {
		if fingerprint(change) != same {
			t.Errorf("the %s is in the fingerprint", what)
		}
	}
	c := whole()
	c.CursorZone = ""
	none, _, err := poller.Fingerprint(c.Definition())
	if utc := fingerprint(func(c *Config) { c.CursorZone = "UTC" }); err != nil || utc != none {
		t.Errorf("UTC is not the zone of a column that has none: %v", err)
	}
}

// Any database value becomes JSON, and a position is read unchanged.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{"", "0.1", "-0", "01", "1e400", "NaN", "a\"b\\\n", "\xff", "2026-04-07 01:23:45.1+00", `{"a":1}`, "+1", ".5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for c := classOther; c <= classRowVersion; c++ {
			for _, v := range []any{value, []byte(value)} {
				object := append(appendJSON([]byte(`{"k":`), v, c), '}')
				if !json.Valid(object) {
					t.Fatalf("class %d: %s", c, object)
				}
				if c != classText || strings.ToValidUTF8(value, "") != value {
					continue
				}
				texts, err := keyTexts(object, []column{{name: "k", class: c}})
				if err != nil || texts[0] != value {
					t.Fatalf("%q came back as %q, %v", value, texts, err)
				}
			}
		}
	})
}

// Quotes, comments and parameters of any text are parsed without a panic, and nothing is lost.
func FuzzNamed(f *testing.F) {
	f.Add("a = :a AND ':b' /* :c */ -- :d\n [x] `y` \"z\" ::int")
	f.Fuzz(func(t *testing.T, query string) {
		for name, d := range dialects() {
			st := &statement{dialect: d}
			if err := st.named(query, nil); err == nil && st.text.String() != query {
				t.Fatalf("%s: %q became %q", name, query, st.text.String())
			}
		}
	})
}
