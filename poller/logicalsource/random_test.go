package logicalsource_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

var lossTransactions = flag.Int("loss.transactions", 800, "how many transactions each writer of TestLoss makes, before sampling")

// errKilled is the store's answer to a killed process.
var errKilled = errors.New("killed")

// killer is a store that kills the process at some of its commits: before or after they are applied.
type killer struct {
	poller.Store
	rng   *rand.Rand
	kills int
}

func (k *killer) Swap(ctx context.Context, name string, data []byte, etag string) (poller.State, error) {
	switch k.rng.IntN(12) {
	case 0:
		k.kills++
		return poller.State{}, errKilled
	case 1:
		k.kills++
		if state, err := k.Store.Swap(ctx, name, data, etag); err != nil {
			return state, err
		}
		return poller.State{}, errKilled
	}
	return k.Store.Swap(ctx, name, data, etag)
}

// Writers insert, change, delete and move rows in short, long, large and rolled back transactions, while the process of
// a poller is killed repeatedly between delivery and commit. The deliveries, applied in their order, make the table;
// every change is delivered, and repeated ones are equal.
func TestLoss(t *testing.T) {
	sample.Repeat(t)
	t.Parallel()
	d := newDatabase(t)
	d.run("CREATE TABLE orders (id int PRIMARY KEY, n bigint, tags int[])", "CREATE TABLE lines (id int PRIMARY KEY, n bigint, tags int[])", "CREATE TABLE noise (id int)")
	d.publish("orders, lines")
	var wg sync.WaitGroup
	var mu sync.Mutex
	changes := 0
	seeds := sample.Seeds(t, *lossTransactions)
	for i := range 4 {
		wg.Go(func() {
			for _, seed := range seeds {
				n, err := write(t.Context(), d.DB, rand.New(rand.NewPCG(uint64(seed), uint64(i))))
				if err != nil {
					t.Errorf("write: %v", err)
					return
				}
				mu.Lock()
				changes += n
				mu.Unlock()
			}
		})
	}
	memory := blobs.NewMemory()
	store := &killer{Store: &later{Store: poller.BlobStore{Blobs: memory}}, rng: rand.New(rand.NewPCG(7, 99))}
	testenv.OK(t, (poller.BlobStore{Blobs: memory}).Create(t.Context()))
	reader := &reader{t: t, seen: map[string]string{}, tables: map[string]map[string]string{"public.orders": {}, "public.lines": {}}}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for idle := 0; idle < 2; {
		source := d.source()
		result, err := reader.process(source, store).Tick(t.Context())
		if closing := source.Close(); closing != nil {
			t.Fatal(closing)
		}
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		select {
		case <-done:
			if err == nil && result.Drained && result.Rows == 0 {
				idle++
			}
		default:
		}
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d changes, %d came twice or more, %d kills", changes, reader.again, store.kills)
	if len(reader.seen) != changes {
		t.Errorf("%d changes were made, and %d have come", changes, len(reader.seen))
	}
	if changes == 0 || changes > 1000 && (store.kills == 0 || reader.again == 0) {
		t.Error("nothing has happened that could show anything")
	}
	for table, got := range reader.tables {
		if diff := cmp.Diff(d.contents(table), got); diff != "" {
			t.Errorf("%s (-database +applied):\n%.2000s", table, diff)
		}
	}
}

// write makes one transaction, and returns the number of committed changes.
func write(ctx context.Context, db *sql.DB, rng *rand.Rand) (changes int, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	table := []string{"orders", "lines"}[rng.IntN(2)]
	// A writer uses one table at a time in one order of rows, which avoids deadlocks.
	if _, err := tx.ExecContext(ctx, "LOCK TABLE "+table+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
		return 0, err
	}
	for range 1 + rng.IntN(4) {
		id := rng.IntN(60)
		statement := []string{
			fmt.Sprintf("INSERT INTO %s SELECT g, %d, ARRAY[g, %d] FROM generate_series(%d, %d) g ON CONFLICT (id) DO UPDATE SET n = excluded.n", table, rng.Int64(), id, id, id+rng.IntN(5)),
			fmt.Sprintf("UPDATE %s SET n = n / 2 + %d WHERE id BETWEEN %d AND %d", table, id, id, id+rng.IntN(10)),
			fmt.Sprintf("DELETE FROM %s WHERE id BETWEEN %d AND %d", table, id, id+rng.IntN(10)),
			fmt.Sprintf("UPDATE %s SET id = id + 100000 + %d WHERE id = %d AND NOT EXISTS (SELECT 1 FROM %s WHERE id = %d)", table, id, id, table, 100000+2*id),
			"INSERT INTO noise SELECT 1 WHERE false",
		}[rng.IntN(5)]
		savepoint := rng.IntN(4) == 0
		if savepoint {
			if _, err := tx.ExecContext(ctx, "SAVEPOINT s"); err != nil {
				return 0, err
			}
		}
		result, err := tx.ExecContext(ctx, statement)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", statement, err)
		}
		n, err := result.RowsAffected()
		if err != nil {
			return 0, err
		}
		if savepoint {
			if _, err := tx.ExecContext(ctx, "ROLLBACK TO s"); err != nil {
				return 0, err
			}
			n = 0
		}
		changes += int(n)
	}
	if rng.IntN(5) == 0 {
		return 0, nil // rolled back
	}
	return changes, tx.Commit()
}

// contents returns the data of each row by its key.
func (d database) contents(table string) map[string]string {
	d.t.Helper()
	rows := testenv.Must(d.QueryContext(d.t.Context(), "SELECT id, n, to_jsonb(tags)::text FROM "+table))(d.t)
	defer rows.Close()
	found := map[string]string{}
	for rows.Next() {
		var id, n int64
		var tags string
		testenv.OK(d.t, rows.Scan(&id, &n, &tags))
		found[fmt.Sprintf(`{"id":%d}`, id)] = fmt.Sprintf(`{"id":%d,"n":%d,"tags":%s}`, id, n, tags)
	}
	testenv.OK(d.t, rows.Err())
	return found
}

// reader applies the deliveries to its own tables.
type reader struct {
	t testing.TB
	// seen is the data by the event id, tables the rows by table and key.
	seen   map[string]string
	tables map[string]map[string]string
	again  int
	last   poller.LogPosition
}

// process runs a process until it is killed.
func (r *reader) process(source poller.Source, store poller.Store) *poller.Runner {
	runner, err := poller.NewRunner(poller.RunnerConfig{Name: "orders", Source: source, Store: store, Owner: "test", Handler: poller.HandlerFunc(r.deliver),
		Options: poller.Options{BatchSize: 3, MaxBatch: 50, IdleHeartbeat: 1}})
	if err != nil {
		r.t.Fatal(err)
	}
	return runner
}

func (r *reader) deliver(_ context.Context, delivery poller.Delivery) error {
	for i, row := range delivery.Rows {
		if data, known := r.seen[delivery.EventIDs[i]]; known {
			r.again++
			if data != string(row.Data) {
				return fmt.Errorf("%s came as %s, and before as %s", row.Cursor, row.Data, data)
			}
			continue
		}
		place := parse(r.t, row.Cursor.Value)
		if place.Compare(r.last) <= 0 {
			r.t.Errorf("%s came behind %s", place, r.last)
		}
		r.last = place
		r.seen[delivery.EventIDs[i]] = string(row.Data)
		c, data := change(r.t, row)
		table := r.tables[c.Table]
		if c.OldKey != nil {
			delete(table, string(c.OldKey))
		}
		if table[string(row.Key)] = data; row.Deleted {
			delete(table, string(row.Key))
		}
	}
	return nil
}
