package pollers

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/acceptance/drill"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/postgres/postgrestest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

const (
	// orders is the initial number of rows, and more the number added each time.
	orders, more = 100, 30
	// holdAt is a row of the third batch.
	holdAt = 50
)

var server postgrestest.Shared

const schema = `
	CREATE TABLE orders (id bigserial PRIMARY KEY, change xid8 NOT NULL DEFAULT pg_current_xact_id());
	CREATE TABLE effects (n bigserial PRIMARY KEY, node text NOT NULL, token bigint NOT NULL, row bigint NOT NULL, event text NOT NULL)`

// TestOwners: a batch that its owner has delivered, but could not commit.
func TestOwners(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *owners){"stopped": testStopped, "killed": testKilled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newOwners(t))
		})
	}
}

// testStopped: the owner is suspended in the middle of a batch, beyond its lease. Another node takes over and completes
// the work. The owner resumes, cannot commit, and is then a node like any other.
func testStopped(t *testing.T, d *owners) {
	owner, other, held := d.halfWay(t)
	owner.Signal(t, syscall.SIGSTOP)
	d.insert(t, more)
	d.delivered(t)
	place := d.state(t)
	if place.Lease.Token <= held.Token {
		t.Errorf("token %d after %d", place.Lease.Token, held.Token)
	}
	testenv.Must(io.WriteString(owner.Stdin, "go on\n"))(t)
	owner.Signal(t, syscall.SIGCONT)
	lost := owner.Await(t, "the owner loses its lease", func(s said) bool { return s.Lost })
	for _, text := range []string{"poller " + d.poller + ": ", "not known to be committed: batch_", fmt.Sprintf("of %d rows", batch), fmt.Sprintf("token %d", held.Token)} {
		if !strings.Contains(lost.Error, text) {
			t.Errorf("no %q in %s", text, lost.Error)
		}
	}
	if got := d.state(t); cmp.Diff(place.Checkpoint.Cursor, got.Checkpoint.Cursor) != "" {
		t.Errorf("the checkpoint was %s and is %s", place.Checkpoint.Cursor, got.Checkpoint.Cursor)
	}
	d.insert(t, more)
	d.delivered(t)
	other.End(t)
	d.insert(t, more)
	d.delivered(t)
	d.check(t, held)
	if last := d.effects(t); last[len(last)-1].node != owner.Name {
		t.Errorf("%s delivers after %s was stopped", last[len(last)-1].node, other.Name)
	}
	if lines := slices.DeleteFunc(append(other.Lines(), owner.Lines()...), func(s said) bool { return !s.Lost }); len(lines) != 1 {
		t.Errorf("leases were lost %d times: %+v", len(lines), lines)
	}
}

// testKilled: the owner is killed in the middle of a batch, as with kill -9. Another node continues.
func testKilled(t *testing.T, d *owners) {
	owner, other, held := d.halfWay(t)
	owner.Kill()
	d.insert(t, more)
	d.delivered(t)
	d.check(t, held)
	other.End(t)
	for _, e := range d.effects(t) {
		if e.token > held.Token && e.node != other.Name {
			t.Errorf("%+v after the owner's death", e)
		}
	}
}

// owners is a table of orders, its poller, and the nodes that run it.
type owners struct {
	account azure.Account
	dsn     string
	poller  string
	db      *sql.DB
	store   poller.Store
	rows    int
	nodes   int
}

type process = drill.Node[said]

func newOwners(t *testing.T) *owners {
	t.Helper()
	_, dsn := server.Database(t)
	d := &owners{account: storage.Account(t), dsn: dsn, poller: strings.ToLower(azuritetest.Name("orders")), db: open(t, dsn)}
	run(t, d.db, schema)
	b := testenv.Must(azure.NewBlobs(d.account))(t)
	d.store = poller.BlobStore{Blobs: b}
	testenv.OK(t, d.store.Create(t.Context()))
	return d
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db := testenv.Must(sql.Open("pgx", dsn))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	testenv.Must(db.ExecContext(t.Context(), statement, args...))(t)
}

// halfWay starts two nodes. The first is in the middle of a delivered batch, and the second waits for its lease.
func (d *owners) halfWay(t *testing.T) (owner, other *process, held said) {
	t.Helper()
	d.insert(t, orders)
	owner = d.launch(t, holdAt)
	held = owner.Await(t, "a batch is held", func(s said) bool { return s.Token > 0 })
	if len(held.Rows) != batch || !slices.Contains(held.Rows, holdAt) {
		t.Fatalf("held: %+v", held)
	}
	other = d.launch(t, 0)
	other.Await(t, "the other node waits", func(s said) bool { return s.Held })
	return owner, other, held
}

// insert adds orders, each in its own transaction.
func (d *owners) insert(t *testing.T, n int) {
	t.Helper()
	for range n {
		run(t, d.db, "INSERT INTO orders DEFAULT VALUES")
	}
	d.rows += n
}

// delivered waits until all rows are committed.
func (d *owners) delivered(t *testing.T) {
	t.Helper()
	testenv.Until(t, "all rows are delivered", func() bool {
		var n int
		testenv.OK(t, d.db.QueryRowContext(t.Context(), "SELECT count(DISTINCT row) FROM effects").Scan(&n))
		var last struct{ ID int }
		if place := d.state(t).Cursor(); json.Unmarshal(place.Tiebreaker, &last) != nil {
			return false
		}
		return n == d.rows && last.ID == d.rows
	})
}

func (d *owners) state(t *testing.T) *poller.Document {
	t.Helper()
	view := testenv.Must(poller.Operator{Store: d.store}.Show(t.Context(), d.poller))(t)
	return view.Document
}

// effect is a row that a handler received.
type effect struct {
	node  string
	token int64
	row   int64
	event string
}

// effects returns all of them, in the order of their arrival.
func (d *owners) effects(t *testing.T) (all []effect) {
	t.Helper()
	rows := testenv.Must(d.db.QueryContext(t.Context(), "SELECT node, token, row, event FROM effects ORDER BY n"))(t)
	defer rows.Close()
	for rows.Next() {
		var e effect
		testenv.OK(t, rows.Scan(&e.node, &e.token, &e.row, &e.event))
		all = append(all, e)
	}
	testenv.OK(t, rows.Err())
	return all
}

// check: every row was delivered, only those of the held batch twice, and those as the same events. Tokens grow, and
// each belongs to one node.
func (d *owners) check(t *testing.T, held said) {
	t.Helper()
	times, events, owners := map[int64]int{}, map[int64]string{}, map[int64]string{}
	last := effect{}
	for _, e := range d.effects(t) {
		times[e.row]++
		if known, ok := events[e.row]; ok && known != e.event {
			t.Errorf("row %d is event %s, and then %s", e.row, known, e.event)
		}
		if owner, ok := owners[e.token]; ok && owner != e.node {
			t.Errorf("token %d is that of %s and of %s", e.token, owner, e.node)
		}
		if e.token < last.token || e.row <= last.row && e.token == last.token {
			t.Errorf("%+v comes behind %+v", e, last)
		}
		events[e.row], owners[e.token], last = e.event, e.node, e
	}
	want := map[int64]int{}
	for row := range int64(d.rows) {
		want[row+1] = 1
	}
	for _, row := range held.Rows {
		want[row]++
	}
	if diff := cmp.Diff(want, times); diff != "" {
		t.Errorf("how often each row came: -want +got\n%s", diff)
	}
}

// launch starts a node.
func (d *owners) launch(t *testing.T, holdAt int64) *process {
	t.Helper()
	name := fmt.Sprintf("node-%d", d.nodes)
	d.nodes++
	return drill.Launch[said](t, name, nodeEnv, nodeConfig{Name: name, Poller: d.poller, Connection: d.account.ConnectionString(), DSN: d.dsn, HoldAt: holdAt})
}
