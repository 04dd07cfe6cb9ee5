package sqlsource_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// generated is a random table with its definition.
type generated struct {
	d      database
	cursor cursorColumn
	keys   []keyColumn
	// own means that the cursor is the only key.
	own bool
	// where is a condition and its text; deleted and query are those of the definition.
	where          []sqlsource.Condition
	whereText      string
	deleted, query bool
	index          bool
}

// cursorColumn is a type of cursors.
type cursorColumn struct {
	name, typ, bound string
	// next are expressions of the next value, of which each statement uses one.
	next []string
	// setup are statements for a new table; before is a statement before each write.
	setup  []string
	before string
	// zone is the cursor's, session the statement that makes writers use it.
	zone, session string
	// settle is the window, 0 that of the database.
	settle time.Duration
	// unique means that no two rows have the same value; insertOnly that an update cannot set a new one.
	unique, insertOnly bool
}

// keyColumn is a type of keys, and makes literals of it.
type keyColumn struct {
	typ   string
	value func(*rand.Rand) string
}

func newGenerated(d database, random *rand.Rand) *generated {
	g := &generated{d: d, cursor: pick(random, cursorColumns(d, random)), deleted: random.IntN(3) == 0, query: random.IntN(4) == 0, index: random.IntN(4) > 0}
	kinds := keyColumns(d)
	for range 1 + random.IntN(3) {
		g.keys = append(g.keys, pick(random, kinds))
	}
	g.own = g.cursor.unique && random.IntN(3) == 0
	switch random.IntN(6) {
	case 0:
		g.where, g.whereText = []sqlsource.Condition{{Column: "state", Op: "<>", Value: "b'\\"}}, "state <> "+d.literal("b'\\")
	case 1:
		g.where, g.whereText = []sqlsource.Condition{{Column: "state", Op: "in", Value: []any{"a", "c "}}}, "state IN ('a', 'c ')"
	case 2:
		g.where, g.whereText = []sqlsource.Condition{{Column: "version", Op: ">", Value: 20.0}, {Column: "note", Op: "is null"}}, "version > 20 AND note IS NULL"
	case 3:
		g.where, g.whereText = []sqlsource.Condition{{Column: "gone", Op: "=", Value: false}}, "gone = false"
	}
	return g
}

func (g *generated) String() string {
	return fmt.Sprintf("cursor %s, %s, zone %q, keys %s, own %v, where %q, deleted %v, query %v, index %v", g.cursor.name, g.cursor.typ, g.cursor.zone, g.keyTypes(), g.own, g.whereText, g.deleted, g.query, g.index)
}

func (g *generated) keyTypes() (types []string) {
	for _, k := range g.keys {
		types = append(types, k.typ)
	}
	return types
}

// names returns those of the keys.
func (g *generated) names() (names []string) {
	for i := range g.keys {
		names = append(names, fmt.Sprintf("k%d", i+1))
	}
	return names
}

// ties returns the columns that decide the order after the cursor.
func (g *generated) ties() []string {
	if g.own {
		return nil
	}
	return g.names()
}

func (g *generated) order(table string) string {
	order := []string{table + ".cur"}
	for _, name := range g.ties() {
		order = append(order, table+"."+name)
	}
	return strings.Join(order, ", ")
}

// behind returns the condition that a row of one table comes after that of another, in plain SQL.
func (g *generated) behind(row, place string) string {
	columns := append([]string{"cur"}, g.ties()...)
	text := "1 = 0"
	for i := len(columns) - 1; i >= 0; i-- {
		text = fmt.Sprintf("(%[1]s.%[3]s > %[2]s.%[3]s OR %[1]s.%[3]s = %[2]s.%[3]s AND %[4]s)", row, place, columns[i], text)
	}
	return text
}

func (g *generated) condition() string {
	if g.whereText == "" {
		return "q.cur IS NOT NULL"
	}
	return "q.cur IS NOT NULL AND " + g.whereText
}

// columns defines the cursor and the keys; positions have neither defaults nor constraints.
func (g *generated) columns(places bool) string {
	typ, columns := g.cursor.typ, []string{}
	if places {
		typ = strings.NewReplacer(" AUTO_INCREMENT UNIQUE", "", " PRIMARY KEY AUTOINCREMENT", "").Replace(typ)
		typ, _, _ = strings.Cut(typ, " GENERATED")
		typ, _, _ = strings.Cut(typ, " DEFAULT")
	}
	columns = append(columns, "cur "+typ)
	for i, k := range g.keys {
		columns = append(columns, g.names()[i]+" "+k.typ+" NOT NULL")
	}
	return strings.Join(columns, ", ")
}

func (g *generated) ddl() []string {
	text := map[string]string{sqlsource.Postgres: "text", sqlsource.SQLite: "text"}[g.d.dialect]
	if text == "" {
		text = "longtext"
	}
	statements := append(g.setup(), g.cursor.setup...)
	statements = append(statements, fmt.Sprintf("CREATE TABLE things (%s, id bigint, version bigint, state varchar(20), gone boolean, note %s, UNIQUE (%s))",
		g.columns(false), text, strings.Join(g.names(), ", ")))
	if g.index {
		statements = append(statements, "CREATE INDEX things_order ON things ("+strings.ReplaceAll(g.order("x"), "x.", "")+")")
	}
	return append(statements, "CREATE TABLE places (run integer, n integer, "+g.columns(true)+", PRIMARY KEY (run, n))")
}

func (g *generated) setup() []string {
	if g.d.dialect == sqlsource.Postgres {
		return []string{"CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
			"CREATE FUNCTION slowly(seconds float8) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(seconds); RETURN 1; END'"}
	}
	if g.d.dialect == sqlsource.MySQL {
		return []string{"CREATE FUNCTION slowly(seconds DOUBLE) RETURNS INT NO SQL BEGIN DO SLEEP(seconds); RETURN 1; END"}
	}
	return nil
}

// config returns the definition of the table.
func (g *generated) config() sqlsource.Config {
	c := sqlsource.Config{Dialect: g.d.dialect, DSN: g.d.dsn, SourceID: "random", Table: "things", Cursor: "cur", Keys: g.names(), Where: g.where,
		Bound: g.cursor.bound, CursorZone: g.cursor.zone, Settle: max(g.d.settle, g.cursor.settle)}
	if g.own {
		c.Keys = []string{"cur"}
	}
	if g.deleted {
		c.Deleted = "gone"
	}
	if g.query {
		c.Table, c.Query = "", "SELECT * FROM things -- all"
	}
	return c
}

func cursorColumns(d database, random *rand.Rand) []cursorColumn {
	settle := sqlsource.BoundSettle
	switch d.dialect {
	case sqlsource.Postgres:
		digits := random.IntN(7)
		zone := pick(random, []string{"", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia"})
		clocks := []string{"now()", "clock_timestamp()", "statement_timestamp()"}
		numbers := []string{"CREATE SEQUENCE numbers"}
		setZone := "SET TimeZone = '" + zone + "'"
		if zone == "" {
			setZone = "SET TimeZone = 'UTC'"
		}
		return []cursorColumn{
			{name: "identity", typ: "bigint GENERATED BY DEFAULT AS IDENTITY", bound: settle, next: []string{"nextval(pg_get_serial_sequence('things', 'cur'))"}, unique: true},
			{name: "numeric", typ: "numeric", bound: settle, next: []string{"nextval('numbers') * 0.125", "nextval('numbers') / 8.0"}, setup: numbers, unique: true},
			{name: "numeric(30,3)", typ: "numeric(30,3)", bound: settle, next: []string{"nextval('numbers') * 0.125 - 1e20"}, setup: numbers, unique: true},
			{name: "timestamptz", typ: fmt.Sprintf("timestamptz(%d)", digits), bound: settle, next: clocks},
			{name: "timestamptz", typ: "timestamptz", bound: settle, next: clocks},
			{name: "timestamp", typ: fmt.Sprintf("timestamp(%d)", digits), bound: settle, next: clocks, zone: zone, session: setZone},
			{name: "timestamp", typ: "timestamp", bound: settle, next: clocks, zone: zone, session: setZone},
			{name: "xid8", typ: "xid8", bound: sqlsource.BoundXID, next: []string{"pg_current_xact_id()"}},
		}
	case sqlsource.MySQL:
		digits := random.IntN(7)
		zone := pick(random, [][2]string{{"", "+00:00"}, {"Asia/Kolkata", "+05:30"}, {"America/Phoenix", "-07:00"}, {"Etc/GMT-3", "+03:00"}})
		session := "SET time_zone = '" + zone[1] + "'"
		return []cursorColumn{
			{name: "auto_increment", typ: "bigint AUTO_INCREMENT UNIQUE", bound: settle, next: []string{"NULL"}, unique: true, insertOnly: true},
			{name: "sequence", typ: "bigint DEFAULT NEXTVAL(numbers)", bound: settle, next: []string{"NEXTVAL(numbers)"}, setup: []string{"CREATE SEQUENCE numbers"}, unique: true},
			{name: "decimal", typ: "decimal(38,18)", bound: settle, next: []string{"NEXTVAL(numbers) * 0.125"}, setup: []string{"CREATE SEQUENCE numbers"}, unique: true},
			{name: "timestamp", typ: fmt.Sprintf("timestamp(%d) NULL", digits), bound: settle, next: []string{"NOW(6)"}},
			{name: "datetime(6)", typ: "datetime(6)", bound: settle, next: []string{"NOW(6)", "SYSDATE(6)"}, zone: zone[0], session: session},
			{name: "datetime", typ: fmt.Sprintf("datetime(%d)", digits), bound: settle, next: []string{"NOW(6)", "SYSDATE(6)"}, zone: zone[0], session: session},
		}
	}
	count := []string{"CREATE TABLE counter (n integer)", "INSERT INTO counter VALUES (0)"}
	return []cursorColumn{
		{name: "autoincrement", typ: "integer PRIMARY KEY AUTOINCREMENT", bound: sqlsource.BoundSingleWriter, next: []string{"NULL"}, unique: true, insertOnly: true},
		{name: "counter", typ: "integer", bound: sqlsource.BoundSingleWriter, next: []string{"(SELECT n FROM counter)"}, setup: count, before: "UPDATE counter SET n = n + 1"},
		{name: "counter that settles", typ: "bigint", bound: settle, next: []string{"(SELECT n FROM counter)"}, setup: count, before: "UPDATE counter SET n = n + 1"},
		{name: "milliseconds", typ: "integer", bound: settle, next: []string{"CAST((julianday('now') - 2440587.5) * 86400000 AS integer)"}},
		{name: "text", typ: "text", bound: settle, next: []string{"strftime('%Y-%m-%dT%H:%M:%fZ')"}},
		{name: "datetime", typ: "datetime", bound: settle, next: []string{"strftime('%Y-%m-%d %H:%M:%f')"}},
		{name: "seconds", typ: "timestamp", bound: settle, next: []string{"datetime('now')"}, settle: 1100 * time.Millisecond},
	}
}

func keyColumns(d database) []keyColumn {
	text := func(most int) func(*rand.Rand) string {
		return func(r *rand.Rand) string { return d.literal(randomText(r, most, false)) }
	}
	latin := func(r *rand.Rand) string { return d.literal(randomText(r, 30, true)) }
	number := func(r *rand.Rand) string { return fmt.Sprint(r.Int64N(2000) - 1000) }
	large := func(r *rand.Rand) string { return fmt.Sprint(int64(r.Uint64()) >> r.IntN(63)) }
	decimals := func(whole, fraction int) func(*rand.Rand) string {
		return func(r *rand.Rand) string {
			return pick(r, []string{"", "-"}) + digits(r, 1+r.IntN(whole)) + "." + digits(r, 1+r.IntN(fraction))
		}
	}
	id := func(r *rand.Rand) string {
		var raw uuid.UUID
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		if d.dialect == sqlsource.MySQL { // MariaDB accepts no others
			raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
		}
		return d.literal(raw.String())
	}
	day := func(r *rand.Rand) string {
		return d.literal(time.Date(2000+r.IntN(50), 1, 1+r.IntN(365), 0, 0, 0, 0, time.UTC).Format(time.DateOnly))
	}
	moment := func(r *rand.Rand) string {
		return d.literal(time.UnixMicro(1e15 + r.Int64N(1e15)).UTC().Format("2006-01-02 15:04:05.999999"))
	}
	boolean := func(r *rand.Rand) string { return pick(r, []string{"true", "false"}) }
	switch d.dialect {
	case sqlsource.Postgres:
		return []keyColumn{{"bigint", large}, {"integer", number}, {`text COLLATE "C"`, text(30)}, {`text COLLATE "und-x-icu"`, text(30)}, {"text COLLATE nocase", text(30)},
			{"text", text(30)}, {"varchar(40)", text(30)}, {"char(12)", text(12)}, {"uuid", id}, {"numeric", decimals(40, 25)}, {"numeric(20,4)", decimals(10, 4)},
			{"date", day}, {"timestamptz", moment}, {"timestamp", moment}, {"boolean", boolean}}
	case sqlsource.MySQL:
		return []keyColumn{{"bigint", large}, {"int", number}, {"varchar(40) COLLATE utf8mb4_general_ci", text(30)}, {"varchar(40) COLLATE utf8mb4_bin", text(30)},
			{"varchar(40) COLLATE utf8mb4_unicode_nopad_ci", text(30)}, {"varchar(40) CHARACTER SET latin1 COLLATE latin1_swedish_ci", latin}, {"char(12)", text(12)},
			{"uuid", id}, {"decimal(20,4)", decimals(10, 4)}, {"decimal(65,30)", decimals(35, 30)}, {"decimal(65,2)", decimals(60, 2)}, {"date", day}, {"datetime(6)", moment},
			{"timestamp(6) DEFAULT '2000-01-01 00:00:00'", moment}, {"boolean", boolean}}
	}
	return []keyColumn{{"bigint", large}, {"integer", number}, {"text", text(30)}, {"text COLLATE NOCASE", text(30)}, {"text COLLATE RTRIM", text(30)},
		{"varchar(20)", text(20)}, {"uuid", id}, {"date", day}, {"datetime", moment}, {"boolean", boolean}}
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

func digits(random *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = '0' + byte(random.IntN(10))
	}
	return string(text)
}

// randomText returns texts with characters that collations and quoting treat specially.
func randomText(random *rand.Rand, most int, latin bool) string {
	parts := []string{"a", "A", "b", "B", "z", "Z", "0", "10", "2", " ", "  ", "\t", "_", "~", "-", "'", `"`, `\`, "%", "<&>", "ä", "Ä", "ß", "ss", "é"}
	if !latin {
		parts = append(parts, "e\u0301", "İ", "i", "ı", "日本", "😀", "\u2028", "\u00ad", "Σ", "ς")
	}
	text := []rune{}
	for range random.IntN(6) {
		text = append(text, []rune(pick(random, parts))...)
	}
	return string(text[:min(len(text), most)])
}

// literal returns a text as an SQL literal.
func (d database) literal(text string) string {
	if d.dialect == sqlsource.MySQL {
		text = strings.ReplaceAll(text, `\`, `\\`)
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
