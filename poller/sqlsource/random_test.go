package sqlsource_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

var (
	randomSeed   = flag.Uint64("random.seed", 1, "the seed of TestRandom's first table; the next ones follow it, 0 is any")
	randomTables = flag.Int("random.tables", 0, "how many random tables of each database there are, before sampling; 0: 8 or 24")
)

const (
	randomWriters = 4
	// randomTransactions is the minimum number of transactions of a writer, mostTransactions the maximum while the bound
	// does not move.
	randomTransactions = 25
	mostTransactions   = 40 * randomTransactions
)

// Random tables with random writers are compared with their final contents: each existing row with a cursor was
// delivered, rows came in the order of the database, and after each earlier position come exactly the rows that the
// database itself has after it.
func TestRandom(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	first := *randomSeed
	if first == 0 {
		first = uint64(rand.Uint32()) + 1
	}
	for name, tables := range map[string]int{"postgres": 24, "sqlite": 24, "mariadb": 8} {
		if *randomTables > 0 {
			tables = *randomTables
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, n := range sample.Seeds(t, tables) {
				seed := first + uint64(n) - 1
				t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
					sample.Repeat(t, fmt.Sprint("-random.seed=", seed), "-random.tables=1")
					t.Parallel()
					randomTable(t, databases()[name](t), rand.New(rand.NewPCG(seed, 0)))
				})
			}
		})
	}
}

func randomTable(t *testing.T, d database, random *rand.Rand) {
	g := newGenerated(d, random)
	t.Logf("%s", g)
	db := d.open(t)
	run(t, db, g.ddl()...)
	w := &writing{generated: g, db: d.openWriters(t)}
	r := newReading(t, g, db, random)
	done := make(chan struct{})
	var writers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer writers.Wait() // also when the reader has ended the test
	defer stop()
	for i := range randomWriters {
		random := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		writers.Go(func() {
			if err := w.write(ctx, random); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	go func() {
		writers.Wait()
		close(done)
	}()
	r.readUntil(done, &w.moved)
	<-done
	want := g.current(t, db)
	t.Logf("%d transactions committed, %d rolled back, %d rows, %d deliveries, %d restarts, %d resets", w.committed.Load(), w.rolledBack.Load(), len(want), len(r.delivered), r.restarts, r.resets)
	if w.committed.Load() == 0 {
		t.Fatal("nothing was written")
	}
	r.finish(want)
	r.checkOrder()
	r.checkPlaces(want)
}

// openWriters opens the database for the writers.
func (d database) openWriters(t testing.TB) *sql.DB {
	t.Helper()
	if d.dialect == sqlsource.SQLite {
		d.dsn += "&_txlock=immediate"
	}
	return d.open(t)
}

// version identifies a row as written by one statement.
type version struct{ ID, Version int64 }

// current returns the existing rows with a cursor that meet the conditions, in the order of the database.
func (g *generated) current(t testing.TB, db *sql.DB) (all []version) {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), "SELECT id, version FROM things q WHERE "+g.condition()+" ORDER BY "+g.order("q"))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var v version
		testenv.OK(t, rows.Scan(&v.ID, &v.Version))
		all = append(all, v)
	}
	testenv.OK(t, rows.Err())
	return all
}
