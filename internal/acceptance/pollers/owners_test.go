package pollers

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/postgres"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

// patience bounds every wait for something that has to come.
const patience = 3 * time.Minute

const (
	// orders is how many rows there are at the beginning, and more how many come each time later on.
	orders, more = 100, 30
	// holdAt is a row of the third batch.
	holdAt = 50
)

const schema = `
	CREATE TABLE orders (id bigserial PRIMARY KEY, change xid8 NOT NULL DEFAULT pg_current_xact_id());
	CREATE TABLE effects (n bigserial PRIMARY KEY, node text NOT NULL, token bigint NOT NULL, row bigint NOT NULL, event text NOT NULL)`

// TestOwners: what became of a batch that its owner has delivered, and could not commit.
func TestOwners(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server, err := postgres.Start(ctx)
	testenv.Started(t, err)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, test := range map[string]func(*testing.T, *drill){"stopped": testStopped, "killed": testKilled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newDrill(t, server))
		})
	}
}

// testStopped: the owner stands still beyond its lease, in the middle of a batch. Another takes over and does everything. The
// owner goes on as if nothing had been, and cannot commit; then it is a node like any other.
func testStopped(t *testing.T, d *drill) {
	owner, other, held := d.halfWay(t)
	owner.signal(t, syscall.SIGSTOP)
	d.insert(t, more)
	d.delivered(t)
	place := d.state(t)
	if place.Lease.Token <= held.Token {
		t.Errorf("token %d after %d", place.Lease.Token, held.Token)
	}
	if _, err := io.WriteString(owner.stdin, "go on\n"); err != nil {
		t.Fatal(err)
	}
	owner.signal(t, syscall.SIGCONT)
	lost := owner.await(t, "the owner loses its lease", func(s said) bool { return s.Lost })
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
	other.end(t)
	d.insert(t, more)
	d.delivered(t)
	d.check(t, held)
	if last := d.effects(t); last[len(last)-1].node != owner.name {
		t.Errorf("%s delivers after %s was stopped", last[len(last)-1].node, other.name)
	}
	if n := other.count(func(s said) bool { return s.Lost }) + owner.count(func(s said) bool { return s.Lost }); n != 1 {
		t.Errorf("leases were lost %d times", n)
	}
}

// testKilled: the owner dies in the middle of a batch, as with kill -9. Another goes on.
func testKilled(t *testing.T, d *drill) {
	owner, other, held := d.halfWay(t)
	owner.kill()
	d.insert(t, more)
	d.delivered(t)
	d.check(t, held)
	other.end(t)
	for _, e := range d.effects(t) {
		if e.token > held.Token && e.node != other.name {
			t.Errorf("%+v after the owner's death", e)
		}
	}
}

// drill is a table of orders, the poller that reads it, and the nodes that run it.
type drill struct {
	account azure.Account
	dsn     string
	poller  string
	db      *sql.DB
	store   poller.Store
	rows    int
	nodes   []*process
}

func newDrill(t *testing.T, server *postgres.Server) *drill {
	t.Helper()
	name := "t" + strings.ReplaceAll(uuid.NewString(), "-", "")
	d := &drill{account: storage.Account(t), dsn: server.DSN(name), poller: strings.ToLower(azuritetest.Name("orders")), db: open(t, server.DSN(name))}
	run(t, open(t, server.DSN(postgres.User)), "CREATE DATABASE "+name)
	run(t, d.db, schema)
	b, err := azure.NewBlobs(d.account)
	if err != nil {
		t.Fatal(err)
	}
	d.store = poller.BlobStore{Blobs: b}
	if err := d.store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range d.nodes {
			p.kill()
		}
	})
	return d
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// halfWay starts two nodes. The first is in the middle of a batch, which it has delivered, and the other waits for its lease.
func (d *drill) halfWay(t *testing.T) (owner, other *process, held said) {
	t.Helper()
	d.insert(t, orders)
	owner = d.launch(t, holdAt)
	held = owner.await(t, "a batch is held", func(s said) bool { return s.Token > 0 })
	if len(held.Rows) != batch || !slices.Contains(held.Rows, holdAt) {
		t.Fatalf("held: %+v", held)
	}
	other = d.launch(t, 0)
	other.await(t, "the other node waits", func(s said) bool { return s.Held })
	return owner, other, held
}

// insert adds orders, each in a transaction of its own.
func (d *drill) insert(t *testing.T, n int) {
	t.Helper()
	for range n {
		run(t, d.db, "INSERT INTO orders DEFAULT VALUES")
	}
	d.rows += n
}

// delivered waits until all rows are committed.
func (d *drill) delivered(t *testing.T) {
	t.Helper()
	until(t, "all rows are delivered", func() bool {
		var n int
		if err := d.db.QueryRowContext(t.Context(), "SELECT count(DISTINCT row) FROM effects").Scan(&n); err != nil {
			t.Fatal(err)
		}
		var last struct{ ID int }
		if place := d.state(t).Cursor(); json.Unmarshal(place.Tiebreaker, &last) != nil {
			return false
		}
		return n == d.rows && last.ID == d.rows
	})
}

func (d *drill) state(t *testing.T) *poller.Document {
	t.Helper()
	view, err := poller.Operator{Store: d.store}.Show(t.Context(), d.poller)
	if err != nil {
		t.Fatal(err)
	}
	return view.Document
}

// effect is a row that a handler got.
type effect struct {
	node  string
	token int64
	row   int64
	event string
}

// effects are all of them, in the order in which they came.
func (d *drill) effects(t *testing.T) (all []effect) {
	t.Helper()
	rows, err := d.db.QueryContext(t.Context(), "SELECT node, token, row, event FROM effects ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var e effect
		if err := rows.Scan(&e.node, &e.token, &e.row, &e.event); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// check: every row has come, only those of the held batch twice, and those as the same events. Tokens grow, and each is one
// node's.
func (d *drill) check(t *testing.T, held said) {
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

// process is a node.
type process struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	output sync.WaitGroup

	mu   sync.Mutex
	said []said
}

// launch starts a node.
func (d *drill) launch(t *testing.T, holdAt int64) *process {
	t.Helper()
	p := &process{name: fmt.Sprintf("node-%d", len(d.nodes))}
	document, err1 := json.Marshal(nodeConfig{Name: p.name, Poller: d.poller, Connection: d.account.ConnectionString(), DSN: d.dsn, HoldAt: holdAt})
	log, err2 := os.Create(filepath.Join(t.TempDir(), p.name+".log"))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the log of %s:\n%s", p.name, text[max(0, len(text)-4000):])
		}
	})
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), nodeEnv+"="+string(document))
	p.cmd.Stderr = log
	stdout, err1 := p.cmd.StdoutPipe()
	p.stdin, err2 = p.cmd.StdinPipe() // the node ends with it, should this process die
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	d.nodes = append(d.nodes, p)
	p.output.Go(func() { p.listen(stdout) })
	return p
}

// listen reads what the node says until it has ended.
func (p *process) listen(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var line said
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		p.mu.Lock()
		p.said = append(p.said, line)
		p.mu.Unlock()
	}
}

// await waits until the node has said something.
func (p *process) await(t *testing.T, what string, is func(said) bool) (found said) {
	t.Helper()
	until(t, what, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		i := slices.IndexFunc(p.said, is)
		if i >= 0 {
			found = p.said[i]
		}
		return i >= 0
	})
	return found
}

// count is how many lines of the node are such.
func (p *process) count(is func(said) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.said {
		if is(line) {
			n++
		}
	}
	return n
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// end lets the node finish, and give its lease back.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.stdin.Close(); err != nil {
		t.Error(err)
	}
	p.output.Wait()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%s: %v", p.name, err)
	}
}

// kill kills the node, as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be dead already
	p.output.Wait()
	_ = p.cmd.Wait() // the error says that it was killed
}

// until polls until done says so: what it waits for happens in another process.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
