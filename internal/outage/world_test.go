package outage_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	table     = "things"
	queue     = "things"
	container = "things"
)

// outageOf is a time in which storage does not answer.
type outageOf struct{ from, to time.Time }

// world is storage in memory with outages, and the callers that wait for it.
type world struct {
	outages []outageOf
	// lost is how often, in a hundred, a request is applied whose answer is lost because an outage has begun.
	lost int

	mu       sync.Mutex
	random   *rand.Rand
	requests []time.Time // those without an answer
	sent     map[string]error

	inTables tables.Store
	inQueues queues.Store
	inBlobs  blobs.Store
	tables   tables.Store
	queues   queues.Store
	blobs    blobs.Store
}

func newWorld(t *testing.T, seed uint64, outages ...outageOf) *world {
	t.Helper()
	w := &world{outages: outages, sent: map[string]error{}, random: rand.New(rand.NewPCG(seed, 0)), inTables: tables.NewMemory(), inQueues: queues.NewMemory(), inBlobs: blobs.NewMemory()}
	for _, err := range []error{w.inTables.CreateTable(t.Context(), table), w.inQueues.CreateQueue(t.Context(), queue), w.inBlobs.CreateContainer(t.Context(), container)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.tables = outage.Tables(faults.Tables(w.inTables, w.intercept), outage.Config{})
	w.queues = outage.Queues(faults.Queues(w.inQueues, w.intercept), outage.Config{})
	w.blobs = outage.Blobs(faults.Blobs(w.inBlobs, w.intercept), outage.Config{})
	return w
}

// gone reports whether storage is gone now.
func (w *world) gone() bool {
	now := time.Now()
	for _, o := range w.outages {
		if !now.Before(o.from) && now.Before(o.to) {
			return true
		}
	}
	return false
}

func (w *world) chance(percent int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(100) < percent
}

// intercept answers nothing during an outage. A request that meets its beginning may have been applied.
func (w *world) intercept(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	if !w.gone() {
		time.Sleep(10 * time.Millisecond)
		err := next(ctx)
		if w.gone() && w.chance(w.lost) {
			err = tables.ErrOutcomeUnknown
		}
		return err
	}
	w.mu.Lock()
	w.requests = append(w.requests, time.Now())
	w.mu.Unlock()
	if w.chance(50) {
		return tables.ErrThrottled
	}
	time.Sleep(time.Second) // as long as the adapter repeats
	return tables.ErrOutcomeUnknown
}

// unanswered returns the number of requests without an answer.
func (w *world) unanswered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

func row(key string) tables.Entity {
	return tables.Entity{Key: tables.Key{Partition: "p", Row: key}, Properties: map[string]any{"n": int64(1)}}
}

// invocation returns a context of work that has a budget.
func invocation(t *testing.T, budget time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), budget)
	t.Cleanup(cancel)
	return outage.Wait(ctx)
}
