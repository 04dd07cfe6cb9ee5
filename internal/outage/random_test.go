package outage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const budget = 8 * time.Minute

// soon is how long after the end of an outage all waiting calls have continued: the longest pause with its jitter, the
// read, the spread, and the requests.
const soon = 10 * time.Second

// schedule draws outages of a tenth of a second up to most, for about an hour.
func schedule(random *rand.Rand, most time.Duration) (all []outageOf) {
	for at := time.Now().Add(time.Second); at.Before(time.Now().Add(time.Hour)); {
		length := 100*time.Millisecond + time.Duration(random.Float64()*random.Float64()*float64(most))
		all = append(all, outageOf{at, at.Add(length)})
		at = at.Add(length + time.Second + time.Duration(random.Float64()*float64(3*most)))
	}
	return all
}

// number returns the count in a row.
func number(e tables.Entity) int64 { n, _ := e.Properties["n"].(int64); return n }

// increment counts up a row that workers count up, by comparing: a change that is applied twice is detected.
func (w *world) increment(ctx context.Context, key string) error {
	for {
		before, err := w.tables.Get(ctx, table, row(key).Key)
		if errors.Is(err, tables.ErrNotFound) {
			before, err = row(key), nil
			before.Properties["n"] = int64(0)
			if err := w.tables.Apply(ctx, table, tables.Insert(before)); err != nil && !errors.Is(err, tables.ErrExists) {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		next := before
		next.Properties = map[string]any{"n": number(before) + 1}
		mark := row(fmt.Sprintf("%s-%d", key, number(before)+1))
		err = w.tables.Apply(ctx, table, tables.Replace(next), tables.Insert(mark))
		if !errors.Is(err, tables.ErrPrecondition) {
			return err
		}
		if e, err := w.tables.Get(ctx, table, before.Key); err != nil || number(e) > number(before) {
			return err // another of the program's own requests came first: a worker has its key for itself
		}
	}
}

// program makes random calls until it has to end, and returns which of them failed.
func (w *world) program(ctx context.Context, name string, random *rand.Rand, until time.Time) (counted int, err error) {
	for time.Now().Before(until) {
		var err error
		switch random.IntN(6) {
		case 0, 1:
			err = w.increment(ctx, name)
			counted++
		case 2:
			err = w.send(ctx, fmt.Sprintf("%s-%d", name, random.Uint64()))
		case 3:
			err = w.blobs.Put(ctx, container, name, []byte(name))
		case 4:
			_, err = w.tables.Query(ctx, table, tables.Query{Partition: "p", Limit: 3})
		case 5:
			_, err = w.queues.Length(ctx, queue)
		}
		if err != nil {
			return counted, err
		}
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
	}
	return counted, nil
}

// send sends a message of its own. The sender ignores an unknown outcome.
func (w *world) send(ctx context.Context, body string) error {
	_, err := w.queues.Send(ctx, queue, []byte(body), 0)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[body] = err
	if errors.Is(err, queues.ErrOutcomeUnknown) && ctx.Err() == nil {
		return nil
	}
	return err
}

// checkMessages compares the messages with the results of their sends: none is lost, and none exists more than twice.
func (w *world) checkMessages(t *testing.T) {
	t.Helper()
	copies := map[string]int{}
	for {
		page, err := w.inQueues.Receive(context.Background(), queue, 32, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			copies[string(queues.Decode(m.Text))]++
		}
	}
	for body, err := range w.sent {
		switch n := copies[body]; {
		case n > 2:
			t.Errorf("message %s: %d copies, want 2 at most", body, n)
		case n == 0 && err == nil:
			t.Errorf("message %s is lost", body)
		case n > 0 && errors.Is(err, queues.ErrThrottled) && !errors.Is(err, queues.ErrOutcomeUnknown):
			t.Errorf("message %s is there, and its sender got %v", body, err)
		}
	}
}

// Random programs over random outages: nothing fails while time is left, no comparing change is applied twice, no
// message exists more than twice, and one read at a time is made.
func TestRandomOutages(t *testing.T) {
	t.Parallel()
	for _, n := range sample.Seeds(t, 24) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			sample.Repeat(t)
			seed := uint64(n)
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				w := newWorld(t, seed)
				w.outages, w.lost = schedule(random, []time.Duration{2 * time.Second, 30 * time.Second, 5 * time.Minute, 20 * time.Minute}[seed%4]), 30
				workers := 1 + random.IntN(30)
				var all sync.WaitGroup
				for n := range workers {
					mine := rand.New(rand.NewPCG(seed, uint64(n)+2))
					begin := time.Duration(random.Int64N(int64(50 * time.Minute)))
					all.Go(func() { w.work(t, fmt.Sprintf("w%d", n), mine, begin) })
				}
				all.Wait()
				w.checkRequests(t, workers)
				w.checkMessages(t)
			})
		})
	}
}

// work is a worker: invocations of half of a budget, one after the other.
func (w *world) work(t *testing.T, name string, random *rand.Rand, begin time.Duration) {
	time.Sleep(begin)
	counted := 0
	for n := range 3 {
		began := time.Now()
		ctx := invocation(t, budget)
		key := fmt.Sprintf("%s-%d", name, n)
		more, err := w.program(ctx, key, random, began.Add(budget/4))
		counted += more
		switch lasted := time.Since(began); {
		case err != nil && lasted < budget:
			t.Errorf("%s failed with %v left: %v", key, budget-lasted, err)
		case err != nil && lasted > budget+2*time.Second:
			t.Errorf("%s failed %v after its end: %v", key, lasted-budget, err)
		case err == nil && w.quietFor(began.Add(budget/4)) && lasted > budget/4+soon+time.Second:
			t.Errorf("%s took %v", key, lasted)
		case err == nil:
			e, err := w.inTables.Get(context.Background(), table, row(key).Key)
			if got := number(e); more > 0 && (err != nil || got != int64(more)) {
				t.Errorf("%s counted to %d, and %d is stored: %v", key, more, got, err)
			}
		}
	}
}

// quietFor reports whether no outage occurred at a time and shortly before.
func (w *world) quietFor(at time.Time) bool {
	for _, o := range w.outages {
		if o.from.Before(at) && o.to.After(at.Add(-soon)) {
			return false
		}
	}
	return true
}

// checkRequests bounds the requests without an answer: for each outage and service the reads of one prober, and the
// calls that met its beginning.
func (w *world) checkRequests(t *testing.T, workers int) {
	allowed := 0
	for _, o := range w.outages {
		reads := 6 + int(o.to.Sub(o.from)/(4*time.Second))
		allowed += 3 * (reads + workers)
	}
	if got := w.unanswered(); got > allowed {
		t.Errorf("%d requests in vain, at most %d are allowed", got, allowed)
	}
}

// A thousand waiting callers probe as one, and continue one after the other.
func TestAThousandWait(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		length time.Duration
		reads  int
	}{"12 s": {12 * time.Second, 8}, "2 min": {2 * time.Minute, 30}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				end := began.Add(tt.length)
				w := newWorld(t, 1, outageOf{began, end})
				ctx := invocation(t, budget)
				if err := w.tables.Apply(outage.Hurry(ctx), table, tables.Insert(row("first"))); err == nil {
					t.Error("a request did not notice")
				}
				synctest.Wait()
				time.Sleep(2 * time.Second)
				before := w.unanswered()
				var mu sync.Mutex
				perTenth := map[time.Duration]int{}
				var all sync.WaitGroup
				for n := range 1000 {
					all.Go(func() {
						if err := w.tables.Apply(ctx, table, tables.Insert(row(fmt.Sprint(n)))); err != nil {
							t.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						late := time.Since(end)
						if perTenth[late.Truncate(100*time.Millisecond)]++; late > soon {
							t.Errorf("%d came back %v late", n, late)
						}
					})
				}
				all.Wait()
				if reads := w.unanswered() - before; reads > tt.reads {
					t.Errorf("%d reads in vain, at most %d are allowed", reads, tt.reads)
				}
				for at, n := range perTenth {
					if n > 200 {
						t.Errorf("%d came back in the tenth of a second at %v", n, at)
					}
				}
			})
		})
	}
}
