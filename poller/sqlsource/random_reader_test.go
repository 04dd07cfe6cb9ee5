package sqlsource_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

const (
	randomName = "things"
	// randomPlaces bounds the positions from which a table is read again.
	randomPlaces = 150
	randomTick   = 10 * time.Millisecond
)

// delivery is a delivered row, with the run between two resets.
type delivery struct {
	run   int
	place poller.Cursor
	version
}

// reading is a poller of a random table, with its state in memory.
type reading struct {
	*generated
	t        *testing.T
	db       *sql.DB
	random   *rand.Rand
	operator poller.Operator
	runner   *poller.Runner
	// delivered are all rows in the order of their delivery; run counts resets.
	delivered             []delivery
	run, restarts, resets int
}

func newReading(t *testing.T, g *generated, db *sql.DB, random *rand.Rand) *reading {
	t.Helper()
	store := poller.BlobStore{Blobs: blobs.NewMemory()}
	testenv.OK(t, store.Create(t.Context()))
	r := &reading{generated: g, t: t, db: db, random: rand.New(rand.NewPCG(random.Uint64(), 0)), operator: poller.Operator{Store: store}}
	r.start()
	return r
}

// start starts a new process with a random batch size.
func (r *reading) start() {
	r.t.Helper()
	most := 1 + r.random.IntN(20)
	runner, err := poller.NewRunner(poller.RunnerConfig{Name: randomName, Source: source(r.t, r.config()), Store: r.operator.Store, Handler: poller.HandlerFunc(r.handle),
		Options: poller.Options{BatchSize: most, MaxBatch: most, MaxBytes: pick(r.random, []int{1, 1000, 5000, 1 << 20}), Budget: time.Duration(1 + r.random.Int64N(int64(time.Second)))}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.runner = runner
}

func (r *reading) handle(_ context.Context, d poller.Delivery) error {
	for _, row := range d.Rows {
		var data struct {
			version
			Gone any
		}
		if err := json.Unmarshal(row.Data, &data); err != nil {
			return fmt.Errorf("%s: %w", row.Data, err)
		}
		if gone := data.Gone == true || data.Gone == 1.0; r.deleted && row.Deleted != gone {
			r.t.Errorf("%s: deleted is %v", row.Data, row.Deleted)
		}
		r.delivered = append(r.delivered, delivery{r.run, row.Cursor, data.version})
	}
	return nil
}

// disturb occasionally restarts the process, or resets it to an earlier position; a process needs time to learn its
// bound.
func (r *reading) disturb() {
	r.t.Helper()
	switch r.random.IntN(int(3 * max(r.d.settle, r.cursor.settle) / randomTick)) {
	case 0:
		r.restarts++
		r.start()
	case 1:
		if len(r.delivered) > 0 && r.resets < 6 {
			r.reset()
		}
	}
}

// tick reads on.
func (r *reading) tick() poller.Result {
	r.t.Helper()
	result := testenv.Must(r.runner.Tick(r.t.Context()))(r.t)
	if result.Skipped != nil {
		r.t.Fatal(result.Skipped)
	}
	return result
}

// reset resets to an earlier position, as operators do.
func (r *reading) reset() {
	r.t.Helper()
	to := pick(r.random, r.delivered).place
	var err error
	if r.random.IntN(2) == 0 {
		_, err = r.operator.ResetToCursor(r.t.Context(), randomName, to, poller.ChangeOptions{})
	} else {
		_, err = r.operator.ResetToCheckpoint(r.t.Context(), randomName, checkpoint(r.t, to), poller.ChangeOptions{})
	}
	if err != nil {
		r.t.Fatalf("reset to %s: %v", to, err)
	}
	r.run++
	r.resets++
}

func checkpoint(t *testing.T, at poller.Cursor) []byte {
	t.Helper()
	return testenv.Must(json.Marshal(map[string]any{"cursor": at}))(t)
}

// readUntil reads until the writers are done. It sets moved when the bound has moved several times.
func (r *reading) readUntil(done <-chan struct{}, moved *atomic.Bool) {
	ticker := time.NewTicker(randomTick)
	defer ticker.Stop()
	for moves := 0; ; {
		r.disturb()
		if r.tick().Rows > 0 {
			moves++
			moved.Store(moves >= 3)
		}
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}

// finish reads until all rows were delivered.
func (r *reading) finish(want []version) {
	r.t.Helper()
	testenv.Until(r.t, "the rows that are held back", func() bool {
		result := r.tick()
		lost := r.missing(want)
		if len(lost) > 0 && result.Drained && result.HeldBack == "" {
			r.t.Fatalf("of %d rows %d are lost: %v", len(want), len(lost), lost[:min(len(lost), 5)])
		}
		return len(lost) == 0
	})
}

func (r *reading) missing(want []version) (lost []version) {
	seen := map[version]bool{}
	for _, d := range r.delivered {
		seen[d.version] = true
	}
	for _, v := range want {
		if !seen[v] {
			lost = append(lost, v)
		}
	}
	return lost
}

// literals returns the values of a position as SQL literals.
func (r *reading) literals(at poller.Cursor) string {
	r.t.Helper()
	value := at.Value
	if strings.HasPrefix(at.Kind, "timestamp") && r.d.dialect == sqlsource.MySQL {
		value = strings.TrimSuffix(strings.Replace(value, "T", " ", 1), "Z")
	}
	values := []string{r.d.literal(value)}
	var keys map[string]json.RawMessage
	if len(at.Tiebreaker) > 0 {
		if err := json.Unmarshal(at.Tiebreaker, &keys); err != nil {
			r.t.Fatalf("%s: %v", at, err)
		}
	}
	for i, name := range r.names() {
		text := string(keys[name])
		if r.own {
			text = r.keys[i].value(r.random)
		} else if strings.HasPrefix(text, `"`) {
			var plain string
			if err := json.Unmarshal(keys[name], &plain); err != nil {
				r.t.Fatalf("%s: %v", at, err)
			}
			if kind, _, _ := strings.Cut(r.keys[i].typ, "("); r.d.dialect == sqlsource.MySQL && (strings.HasPrefix(kind, "datetime") || strings.HasPrefix(kind, "timestamp")) {
				plain = strings.TrimSuffix(strings.Replace(plain, "T", " ", 1), "Z")
			}
			text = r.d.literal(plain)
		}
		values = append(values, text)
	}
	return strings.Join(values, ", ")
}

// record writes positions into their table, where the database compares them as it does rows.
func (r *reading) record(run int, places []poller.Cursor) {
	r.t.Helper()
	for n, chunk := 0, []poller.Cursor(nil); n < len(places); n += len(chunk) {
		chunk = places[n:min(n+100, len(places))]
		var rows []string
		for i, at := range chunk {
			rows = append(rows, fmt.Sprintf("(%d, %d, %s)", run, n+i, r.literals(at)))
		}
		run := "INSERT INTO places (run, n, cur, " + strings.Join(r.names(), ", ") + ") VALUES " + strings.Join(rows, ", ")
		if _, err := r.db.ExecContext(r.t.Context(), run); err != nil {
			r.t.Fatalf("%s: %v", run, err)
		}
	}
}

// checkOrder makes the database confirm that each row comes after the previous one.
func (r *reading) checkOrder() {
	r.t.Helper()
	runs := map[int][]poller.Cursor{}
	for _, d := range r.delivered {
		runs[d.run] = append(runs[d.run], d.place)
	}
	for run, places := range runs {
		r.record(run, places)
	}
	rows, err := r.db.QueryContext(r.t.Context(), "SELECT a.run, a.n FROM places a JOIN places b ON b.run = a.run AND b.n = a.n + 1 WHERE NOT "+r.behind("b", "a"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var run, n int
		testenv.OK(r.t, rows.Scan(&run, &n))
		r.t.Errorf("%s came before %s", runs[run][n], runs[run][n+1])
	}
	testenv.OK(r.t, rows.Err())
}

// checkPlaces starts at earlier positions, and compares the rows with those that the database has after them.
func (r *reading) checkPlaces(want []version) {
	r.t.Helper()
	places := r.places()
	const run = 1000
	r.record(run, places)
	behind := r.expected(run)
	s := source(r.t, r.config())
	r.await(s, want)
	for n, at := range places {
		if diff := cmp.Diff(behind[n], r.versions(r.all(s, at))); diff != "" {
			r.t.Errorf("behind %s (-want +got):\n%s", at, diff)
		}
	}
	end := testenv.Must(s.End(r.t.Context()))(r.t)
	rows := r.all(s, poller.Cursor{})
	if len(rows) == 0 {
		return
	}
	if last := rows[len(rows)-1].Cursor; !end.Equal(last) {
		r.t.Errorf("the end is %s, the last row at %s", end, last)
	}
}

// places returns some earlier positions, each once, as in the states of two pollers.
func (r *reading) places() (all []poller.Cursor) {
	r.t.Helper()
	seen := map[string]bool{}
	for _, i := range r.random.Perm(len(r.delivered)) {
		at := r.delivered[i].place
		if seen[at.Kind+at.String()] || len(all) == randomPlaces {
			continue
		}
		seen[at.Kind+at.String()] = true
		restored := r.restored("first", func() error {
			_, err := r.operator.ResetToCheckpoint(r.t.Context(), "first", checkpoint(r.t, at), poller.ChangeOptions{})
			return err
		})
		again := r.restored("first", func() error {
			_, err := r.operator.ResetToCursor(r.t.Context(), "first", poller.Cursor{Value: restored.Value, Tiebreaker: restored.Tiebreaker}, poller.ChangeOptions{})
			return err
		})
		if !restored.Equal(at) || !again.Equal(at) {
			r.t.Errorf("%s %s became %s and %s", at.Kind, at, restored, again)
		}
		all = append(all, again)
	}
	return all
}

func (r *reading) restored(name string, reset func() error) poller.Cursor {
	r.t.Helper()
	testenv.OK(r.t, reset())
	view := testenv.Must(r.operator.Show(r.t.Context(), name))(r.t)
	return view.Document.Cursor()
}

// expected returns the rows after each recorded position, in the order of the database.
func (r *reading) expected(run int) map[int][]version {
	r.t.Helper()
	rows, err := r.db.QueryContext(r.t.Context(), fmt.Sprintf("SELECT p.n, q.id, q.version FROM places p JOIN things q ON %s WHERE p.run = %d AND %s ORDER BY p.n, %s",
		r.behind("q", "p"), run, r.condition(), r.order("q")))
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	behind := map[int][]version{}
	for rows.Next() {
		var n int
		var v version
		testenv.OK(r.t, rows.Scan(&n, &v.ID, &v.Version))
		behind[n] = append(behind[n], v)
	}
	testenv.OK(r.t, rows.Err())
	return behind
}

// await reads from the beginning until no rows are held back.
func (r *reading) await(s *sqlsource.Source, want []version) {
	r.t.Helper()
	var got []version
	testenv.Until(r.t, fmt.Sprintf("%d rows from the beginning", len(want)), func() bool {
		got = r.versions(r.all(s, poller.Cursor{}))
		return len(got) == len(want)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("from the beginning (-want +got):\n%s", diff)
	}
}

// all reads to the end, in batches of any size.
func (r *reading) all(s *sqlsource.Source, after poller.Cursor) (rows []poller.Row) {
	r.t.Helper()
	for {
		b, err := s.Fetch(r.t.Context(), after, 1+r.random.IntN(100), 1<<r.random.IntN(20))
		if err != nil {
			r.t.Fatalf("behind %s: %v", after, err)
		}
		rows = append(rows, b.Rows...)
		if !b.More {
			return rows
		}
		after = b.Rows[len(b.Rows)-1].Cursor
	}
}

func (r *reading) versions(rows []poller.Row) (all []version) {
	r.t.Helper()
	for _, row := range rows {
		var v version
		testenv.OK(r.t, json.Unmarshal(row.Data, &v))
		all = append(all, v)
	}
	return all
}
