package sqlsource_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

func (d database) propose(t *testing.T, table string, change ...func(*sqlsource.Question)) sqlsource.Proposal {
	t.Helper()
	q := sqlsource.Question{Dialect: d.dialect, DSN: d.dsn, Table: table}
	for _, f := range change {
		f(&q)
	}
	return testenv.Must(sqlsource.Propose(t.Context(), q))(t)
}

// follows makes a column that the database sets to the time at each insert and update.
func (d database) follows(t *testing.T, table, column string) {
	t.Helper()
	db := d.open(t)
	switch d.dialect {
	case sqlsource.MySQL:
		run(t, db, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)", table, column))
	case sqlsource.Postgres:
		run(t, db, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s timestamptz NOT NULL DEFAULT now()", table, column),
			fmt.Sprintf("CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.%s := now(); RETURN NEW; END$$", column),
			fmt.Sprintf("CREATE TRIGGER touched BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION touch()", table))
	default:
		run(t, db, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s timestamp", table, column),
			fmt.Sprintf("CREATE TRIGGER touched AFTER UPDATE ON %[1]s BEGIN UPDATE %[1]s SET %[2]s = strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ') WHERE id = NEW.id; END", table, column))
	}
}

// The missing parts of a table are proposed as valid statements; after these, nothing is missing, and updates are read
// that were not before.
func TestProposedStatementsMakeUpdatesSeen(t *testing.T) {
	t.Parallel()
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			db := d.open(t)
			run(t, db, fmt.Sprintf("CREATE TABLE orders (id %s, state varchar(20), deleted %s)", d.serial, d.boolean), "INSERT INTO orders (state) VALUES ('a'), ('b')")
			p := d.propose(t, "orders")
			bound := map[string]string{"sqlite": sqlsource.BoundSingleWriter}[name]
			if bound == "" {
				bound = sqlsource.BoundSettle
			}
			if !p.Ready || p.Config.Cursor != "id" || p.Config.Bound != bound || p.Config.Deleted != "deleted" || !slices.Equal(p.Config.Keys, []string{"id"}) || p.Config.SourceID == "" {
				t.Errorf("%+v", p)
			}
			if len(p.Missing) != 1 || !strings.Contains(p.Missing[0].Why, "updates are not seen") {
				t.Fatalf("missing: %+v", p.Missing)
			}
			for statement := range strings.SplitSeq(strings.TrimSuffix(p.Missing[0].SQL, ";"), ";\n") {
				run(t, db, statement)
			}
			p = d.propose(t, "orders")
			want := map[string][2]string{"postgres": {"changed_in", sqlsource.BoundXID}, "mariadb": {"changed_at", sqlsource.BoundSettle}, "sqlite": {"changed_as", sqlsource.BoundSingleWriter}}[name]
			if !p.Ready || p.Config.Cursor != want[0] || p.Config.Bound != want[1] || len(p.Missing) > 0 {
				t.Errorf("with what was missing: %+v", p)
			}
			p.Config.DSN, p.Config.Settle = d.dsn, d.settle
			s := source(t, p.Config)
			rows := drain(t, s, poller.Cursor{}, 10)
			if got := keys(t, rows); !slices.Equal(got, []int{1, 2}) {
				t.Fatalf("rows %v", got)
			}
			run(t, db, "UPDATE orders SET state = 'c' WHERE id = 1", "INSERT INTO orders (state) VALUES ('d')")
			if got := keys(t, drain(t, s, rows[1].Cursor, 10)); !slices.Equal(got, []int{1, 3}) {
				t.Errorf("after an update and an insert: %v", got)
			}
		})
	}
}

// The cursor is the column that the database itself moves at each update, by a trigger or ON UPDATE, rather than one
// that only inserts set. A time that the database never sets is not a candidate.
func TestProposesWhatTheDatabaseMoves(t *testing.T) {
	t.Parallel()
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			run(t, d.open(t), fmt.Sprintf("CREATE TABLE orders (id %s, paid %s NULL)", d.serial, d.timestamp))
			d.follows(t, "orders", "touched")
			if name == "postgres" { // a trigger that keeps a time does not move it
				run(t, d.open(t), "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.paid := OLD.paid; RETURN NEW; END$$",
					"CREATE TRIGGER kept BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION keep()")
			}
			p := d.propose(t, "orders")
			if name == "sqlite" { // numbers are safe there, times are not; but numbers miss updates
				if p.Config.Bound != sqlsource.BoundSettle {
					t.Errorf("%+v", p)
				}
			}
			reasons := strings.Join(p.Reasons, "\n")
			if !p.Ready || p.Config.Cursor != "touched" || !strings.Contains(reasons, "updates are seen") {
				t.Errorf("%+v", p)
			}
			if name != "sqlite" && !strings.Contains(reasons, "paid is not the cursor") {
				t.Errorf("reasons: %s", reasons)
			}
			if last := p.Missing[len(p.Missing)-1]; !strings.Contains(last.SQL, "INDEX") || !strings.Contains(last.SQL, "touched") {
				t.Errorf("missing: %+v", p.Missing)
			}
			if asked := d.propose(t, "orders", func(q *sqlsource.Question) { q.Cursor, q.SourceID = "id", "shop" }); asked.Config.Cursor != "id" || asked.Config.SourceID != "shop" {
				t.Errorf("what is asked for: %+v", asked)
			}
		})
	}
}

// A bound that Check refuses is not proposed if another one works; its error is among the reasons.
func TestProposesNoBoundThatIsRefused(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	run(t, d.open(t), "CREATE SEQUENCE orders_seq INCREMENT 50", "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT nextval('orders_seq'), made timestamp NOT NULL DEFAULT now())",
		"CREATE TABLE only_blocks (id bigint PRIMARY KEY DEFAULT nextval('orders_seq'))", "CREATE SEQUENCE only_blocks_seq INCREMENT 50")
	p := d.propose(t, "orders")
	if p.Config.Cursor != "made" || p.Config.Bound != sqlsource.BoundSettle || !strings.Contains(strings.Join(p.Reasons, "\n"), "cursorZone") {
		t.Errorf("%+v", p)
	}
	p = d.propose(t, "only_blocks")
	if p.Ready || !strings.Contains(p.Problem, "in steps of 50") || p.Config.Cursor != "id" || !strings.Contains(fmt.Sprint(p.Missing), "xid8") {
		t.Errorf("%+v", p)
	}
}

// A nullable cursor gets NOT NULL, and on MySQL keeps its default and ON UPDATE.
func TestProposedNotNullKeepsTheColumn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open   func(testing.TB) database
		column string
	}{
		"postgres": {newPostgres, "changed timestamptz DEFAULT now()"},
		"mariadb":  {newMaria, "changed timestamp(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := c.open(t)
			db := d.open(t)
			run(t, db, fmt.Sprintf("CREATE TABLE orders (id %s, %s)", d.serial, c.column))
			p := d.propose(t, "orders")
			for _, m := range p.Missing {
				for statement := range strings.SplitSeq(strings.TrimSuffix(m.SQL, ";"), ";\n") {
					run(t, db, statement)
				}
			}
			before := p.Config
			p = d.propose(t, "orders")
			if before.Cursor != "changed" || len(p.Missing) > 0 || !strings.Contains(strings.Join(p.Reasons, "\n"), "updates are seen") {
				t.Errorf("%+v", p)
			}
			testenv.Equal(t, "", before, p.Config)
		})
	}
}

// A table without a possible definition is an error with a remedy, without the connection string.
func TestProposesNothing(t *testing.T) {
	t.Parallel()
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			run(t, d.open(t), "CREATE TABLE loose (a varchar(20), b varchar(20))")
			_, err := sqlsource.Propose(t.Context(), sqlsource.Question{Dialect: d.dialect, DSN: d.dsn, Table: "loose"})
			wants(t, err, sqlsource.ErrNotUnique, "loose", "which columns name a row")
			_, err = sqlsource.Propose(t.Context(), sqlsource.Question{Dialect: d.dialect, DSN: d.dsn, Table: "nowhere"})
			wants(t, err, sqlsource.ErrNoObject, "nowhere")
			_, err = sqlsource.Propose(t.Context(), sqlsource.Question{Dialect: d.dialect, DSN: d.dsn, Table: "loose", Keys: []string{"a"}, Cursor: "c"})
			wants(t, err, sqlsource.ErrNoColumn, "loose", "c", "a, b")
			p := d.propose(t, "loose", func(q *sqlsource.Question) { q.Keys = []string{"a"} })
			if p.Ready || len(p.Missing) != 2 || !strings.Contains(strings.Join(p.Reasons, "\n"), "one has to be added") {
				t.Errorf("%+v", p)
			}
		})
	}
}
