package poller_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/tables"
)

const simulationSeeds = 1000

var simulationSeed = flag.Int("simulation.seed", 0, "the only seed that TestSimulation runs; 0: all")

// Several nodes with wrong clocks run one poller, are suspended for longer than their leases, and lose answers. Every
// write is checked: the token never decreases, a token has one committer, the checkpoint never goes back, and every row
// that it passes was delivered or quarantined.
func TestSimulation(t *testing.T) {
	t.Parallel()
	seeds := []int{*simulationSeed}
	if *simulationSeed == 0 {
		seeds = sample.Seeds(t, simulationSeeds)
	}
	var total tally
	t.Run("seeds", func(t *testing.T) {
		for _, seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				sample.Repeat(t, fmt.Sprint("-simulation.seed=", seed))
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { simulate(t, uint64(seed), &total) })
			})
		}
	})
	t.Logf("%+v", total.counts)
	if len(seeds) < 50 {
		return
	}
	// A simulation without trouble proves nothing.
	for what, n := range map[string]int{"leases lost": total.counts.lost, "rows unconfirmed": total.counts.unconfirmed,
		"duplicates": total.counts.duplicates, "rows quarantined": total.counts.quarantined, "tokens": total.counts.tokens} {
		if n < len(seeds)/10 {
			t.Errorf("%s: %d in %d seeds", what, n, len(seeds))
		}
	}
}

type tally struct {
	mu     sync.Mutex
	counts struct{ rows, lost, unconfirmed, duplicates, quarantined, tokens int }
}

// node is a process of a simulation.
type node struct {
	w    *world
	mu   sync.Mutex
	rng  *rand.Rand
	calm bool
}

func (n *node) chance(percent int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.calm && n.rng.IntN(100) < percent
}

func (n *node) span(most time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Duration(n.rng.Int64N(int64(most)))
}

// storage decides the outcome of a call of the state store.
func (n *node) storage(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	wait(n.span(300 * time.Millisecond))
	switch {
	case n.chance(3): // the process is suspended before the request leaves
		wait(n.span(8 * time.Minute))
		return next(context.WithoutCancel(ctx))
	case n.chance(3): // or before it reads the answer
		err := next(ctx)
		wait(n.span(8 * time.Minute))
		return err
	case n.chance(4):
		return tables.ErrOutcomeUnknown
	case n.chance(4):
		if err := next(ctx); err != nil {
			return err
		}
		return tables.ErrOutcomeUnknown
	case n.chance(3):
		return tables.ErrThrottled
	case n.chance(2): // it arrives after the caller has given up
		go func() {
			wait(n.span(5 * time.Minute))
			_ = next(context.WithoutCancel(ctx))
		}()
		return tables.ErrOutcomeUnknown
	}
	return next(ctx)
}

// deliver is the sink: sometimes slow, sometimes ignoring its context.
func (n *node) deliver(ctx context.Context, d poller.Delivery) error {
	switch {
	case n.chance(5):
		wait(n.span(6 * time.Minute)) // it ignores its context
	case n.chance(10):
		if !sleeps(ctx, n.span(3*time.Minute)) {
			return ctx.Err()
		}
	case n.chance(8):
		return errors.New("the sink is busy")
	}
	return poisoned(17, 40)(ctx, d)
}

func sleeps(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func simulate(t *testing.T, seed uint64, total *tally) {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	const nodes = 3
	var wg sync.WaitGroup
	runners := make([]*poller.Runner, nodes)
	end := time.Now().Add(time.Hour)
	for i := range nodes {
		n := &node{w: w, rng: rand.New(rand.NewPCG(seed, uint64(i+1)))}
		runners[i] = n.runner(rng, i)
		wg.Go(func() {
			for time.Now().Before(end) {
				_, _ = runners[i].Tick(t.Context())
				wait(n.span(2 * time.Minute))
			}
		})
	}
	wg.Go(func() {
		n := &node{rng: rand.New(rand.NewPCG(seed, 99))}
		for time.Now().Before(end) {
			w.source.Append(1 + int(n.span(6)))
			wait(n.span(8 * time.Minute))
			if n.chance(5) {
				_, _ = w.operator().BreakLease(t.Context(), name, poller.ChangeOptions{Force: true})
			}
		}
	})
	wg.Wait()
	wait(time.Hour) // for late writes
	rows := w.source.Append(1)
	calm := &node{w: w, calm: true, rng: rng}
	last := calm.runner(rng, nodes)
	for range 20 {
		_, _ = last.Tick(t.Context())
		wait(time.Hour)
	}
	d := w.document()
	if d.Cursor().Value != numberText(rows) {
		t.Errorf("it ended at %s of %d: %+v", d.Cursor(), rows, d.Failure)
	}
	total.mu.Lock()
	defer total.mu.Unlock()
	c := &total.counts
	c.rows += rows
	c.tokens += int(d.Lease.Token)
	c.duplicates += len(w.delivered) + len(w.quarantined) - rows
	c.quarantined += len(w.quarantined)
	for _, r := range runners {
		c.lost += int(r.Counters().LeasesLost)
		c.unconfirmed += int(r.Counters().Unconfirmed)
	}
}

// runner returns a poller on a node whose clock is up to ten minutes wrong, and slightly too fast or too slow.
func (n *node) runner(rng *rand.Rand, i int) *poller.Runner {
	skew := time.Duration(rng.Int64N(int64(20*time.Minute))) - 10*time.Minute
	drift := rng.Float64()*0.002 - 0.001
	began := time.Now()
	return n.w.process(nil, func(c *poller.RunnerConfig) {
		c.Owner = fmt.Sprint("node", i)
		c.Options = poller.Options{BatchSize: 4, MaxBatch: 8, MaxAttempts: 2, Budget: 10 * time.Minute}
		c.Store = poller.BlobStore{Blobs: faults.Blobs(n.w.state, n.storage)}
		c.Handler = poller.HandlerFunc(func(ctx context.Context, d poller.Delivery) error {
			if err := n.deliver(ctx, d); err != nil {
				return err
			}
			return n.w.handle(ctx, &faults.Plan{}, d)
		})
		c.Now = func() time.Time {
			now := time.Now()
			return now.Add(skew + time.Duration(float64(now.Sub(began))*drift)).Round(0)
		}
	})
}
