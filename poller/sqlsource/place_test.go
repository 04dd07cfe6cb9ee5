package sqlsource_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// timed makes a table with a row for each minute of a past hour, and a column in New York's time for the same.
func (d database) timed(t *testing.T, localType string) {
	t.Helper()
	db := d.open(t)
	run(t, db, fmt.Sprintf("CREATE TABLE orders (id %s, changed %s, wall %s, part %s)", d.serial, d.timestamp, localType, d.decimal))
	for minute := range 60 {
		run(t, db, fmt.Sprintf("INSERT INTO orders (changed, wall, part) VALUES ('2026-01-01 12:%02d:00', '2026-01-01 07:%02d:00', %d.5)", minute, minute, minute))
	}
}

// A position that an operator has written, in any zone, is that instant; one that the database would read differently
// is refused.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open  func(testing.TB) database
		local string
	}{"postgres": {newPostgres, "timestamp"}, "mariadb": {newMaria, "datetime(6)"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := test.open(t)
			d.timed(t, test.local)
			for _, place := range []struct {
				cursor, value string
				first         int // the minute of the first row after it
			}{
				{"changed", "2026-01-01T12:30:00Z", 31},
				{"changed", "2026-01-01T12:30:00", 31},
				{"changed", "2026-01-01T14:30:00+02:00", 31},
				{"changed", "2026-01-01T07:29:59.999999-05:00", 30},
				{"wall", "2026-01-01T07:30:00", 31},
				{"wall", "2026-01-01T12:30:00Z", 31},
				{"wall", "2026-01-01T20:30:00.5+08:00", 31},
				{"part", "30.5", 31},
				{"part", "30.49", 30},
			} {
				c := d.config(func(c *sqlsource.Config) {
					c.Cursor, c.Bound, c.CursorZone = place.cursor, sqlsource.BoundSettle, "America/New_York"
				})
				// The zero id is before all rows of a position.
				kind := map[string]string{"part": "integer+pk"}[place.cursor]
				after := poller.Cursor{Kind: kind, Value: place.value}
				rows := drainFirst(t, source(t, c), after)
				if len(rows) == 0 || !strings.Contains(string(rows[0].Data), fmt.Sprintf(`"part":%d.5`, place.first)) {
					t.Errorf("%s behind %s: %.200v", place.cursor, place.value, rows)
				}
			}
			for cursor, value := range map[string]string{"changed": "2026-01-01T12:30:00.123456789Z", "wall": "2026-01-01T12:30:00.123456789Z"} {
				s := source(t, d.config(func(c *sqlsource.Config) { c.Cursor, c.Bound = cursor, sqlsource.BoundSettle }))
				_, err := s.Fetch(t.Context(), poller.Cursor{Value: value}, 1, 1<<20)
				wants(t, err, sqlsource.ErrColumnType, "orders", "reads the place", cursor)
			}
		})
	}
}

// drainFirst returns the first batch of a source after a position.
func drainFirst(t *testing.T, s *sqlsource.Source, after poller.Cursor) []poller.Row {
	t.Helper()
	var b poller.Batch
	testenv.Until(t, "the first batch", func() (found bool) {
		var err error
		if b, err = s.Fetch(t.Context(), after, 1, 1<<20); err != nil {
			t.Fatalf("behind %s: %v", after, err)
		}
		return len(b.Rows) > 0 || b.HeldBack == ""
	})
	return b.Rows
}

// Numbers with fractions are read in their order, from every position.
func TestFractions(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) database{"postgres": newPostgres, "mariadb": newMaria} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			run(t, d.open(t), "CREATE TABLE orders (id "+d.integer+" PRIMARY KEY, part "+d.decimal+" NOT NULL)",
				"INSERT INTO orders VALUES (1, 10.25), (2, 9.75), (3, 9.5), (4, -0.000000000000000001)")
			s := source(t, d.config(func(c *sqlsource.Config) { c.Cursor = "part" }))
			rows := drain(t, s, poller.Cursor{}, 10)
			if diff := cmp.Diff([]int{4, 3, 2, 1}, keys(t, rows)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			for i, row := range rows {
				if diff := cmp.Diff(keys(t, rows[i+1:]), keys(t, drain(t, s, row.Cursor, 10))); diff != "" {
					t.Errorf("behind %s (-want +got):\n%s", row.Cursor, diff)
				}
			}
		})
	}
}

// Numbers with steps are refused: another source assigns the numbers in between. For numbers that the database does not
// generate, Check describes the requirements.
func TestSteps(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		d := newPostgres(t)
		d.orders(t, 1)
		db := d.open(t)
		run(t, db, "ALTER SEQUENCE orders_id_seq INCREMENT BY 50")
		_, err := source(t, d.config()).Check(t.Context())
		wants(t, err, sqlsource.ErrBound, "orders_id_seq", "steps of 50")
		run(t, db, "DROP TABLE orders", "CREATE TABLE orders (id bigint PRIMARY KEY)", "CREATE SEQUENCE orders_seq INCREMENT BY 50")
		_, err = source(t, d.config()).Check(t.Context())
		wants(t, err, sqlsource.ErrBound, "orders_seq", "steps of 50")
		run(t, db, "DROP SEQUENCE orders_seq")
		handedOut(t, d)
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		d := newMaria(t)
		db := d.open(t)
		run(t, db, "CREATE SEQUENCE numbers INCREMENT BY 50", "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT NEXTVAL(numbers))")
		_, err := source(t, d.config()).Check(t.Context())
		wants(t, err, sqlsource.ErrBound, "numbers", "50")
		run(t, db, "ALTER SEQUENCE numbers INCREMENT BY 1")
		if _, err = source(t, d.config()).Check(t.Context()); err != nil {
			t.Error(err)
		}
		run(t, db, "DROP TABLE orders", "CREATE TABLE orders (id bigint PRIMARY KEY)")
		handedOut(t, d)
	})
}

func handedOut(t *testing.T, d database) {
	t.Helper()
	advice, err := source(t, d.config()).Check(t.Context())
	if err != nil || !strings.Contains(strings.Join(advice, "\n"), "does not give id its numbers") {
		t.Errorf("advice %q, %v", advice, err)
	}
}

// A position whose value or key has another type than its column is refused when it is set, and by each fetch.
func TestPlacesOfOtherTypes(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.orders(t, 3)
			run(t, d.open(t), fmt.Sprintf("CREATE TABLE parts (name varchar(20) NOT NULL, at %s NOT NULL, n %s NOT NULL, PRIMARY KEY (name, n))", d.integer, d.integer), "INSERT INTO parts VALUES ('a', 1, 1)")
			orders, parts := source(t, d.config(byTime)), source(t, d.config(func(c *sqlsource.Config) { c.Table, c.Cursor, c.Keys = "parts", "at", []string{"name", "n"} }))
			numbers := source(t, d.config())
			now := drain(t, orders, poller.Cursor{}, 1)[0].Cursor.Value
			for _, c := range []struct {
				source *sqlsource.Source
				at     poller.Cursor
				fetch  bool // refuses it, too
			}{
				{orders, poller.Cursor{Kind: "timestamp+pk", Value: now, Tiebreaker: []byte(`{"id":"x"}`)}, true},
				{orders, poller.Cursor{Kind: "timestamp+pk", Value: now, Tiebreaker: []byte(`{"id":1.5}`)}, true},
				{orders, poller.Cursor{Kind: "timestamp+pk", Value: now, Tiebreaker: []byte(`{"id":"1"}`)}, false},
				{orders, poller.Cursor{Kind: "integer+pk", Value: "1", Tiebreaker: []byte(`{"id":1}`)}, true},
				{numbers, poller.Cursor{Kind: "integer", Value: "1.5"}, true},
				{numbers, poller.Cursor{Kind: "timestamp", Value: now}, true},
				{parts, poller.Cursor{Kind: "integer+pk", Value: "1.5", Tiebreaker: []byte(`{"name":"a","n":1}`)}, true},
				{parts, poller.Cursor{Kind: "integer+pk", Value: "1", Tiebreaker: []byte(`{"name":1,"n":1}`)}, false},
				{parts, poller.Cursor{Kind: "integer+pk", Value: "1", Tiebreaker: []byte(`{"name":"a","n":"b"}`)}, true},
			} {
				wants(t, c.source.CheckPlace(t.Context(), c.at), sqlsource.ErrColumnType)
				if _, err := c.source.Fetch(t.Context(), c.at, 10, 1<<20); c.fetch {
					wants(t, err, sqlsource.ErrColumnType)
				}
			}
			for s, at := range map[*sqlsource.Source]poller.Cursor{orders: {Kind: "timestamp+pk", Value: now, Tiebreaker: []byte(`{"id":1}`)}, numbers: {Kind: "integer", Value: "2"},
				parts: {Kind: "integer+pk", Value: "1", Tiebreaker: []byte(`{"name":"a","n":1}`)}} {
				testenv.OK(t, s.CheckPlace(t.Context(), at))
			}
		})
	}
}
