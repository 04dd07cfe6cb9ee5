package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// replayed is the number of activity calls in the replayed history. The last of them has not ended, so the history
// has the start, 5,000 calls and 4,999 results: 10,000 events.
const replayed = 5000

// replays measures how long a new process takes from Run until the orchestration is where it was.
func replays() scenario {
	return scenario{[]metric{{"memory/replay/10000/ms", "ms", "goal under 50"}}, func(ctx context.Context, d time.Duration) ([]float64, error) {
		c := newCutOff(replayed, calls)
		if err := c.begin(ctx); err != nil {
			return nil, err
		}
		us, err := c.median(ctx, d)
		return []float64{us / 1000}, err
	}}
}

// median returns the median time of replays, in microseconds.
func (c *cutOff) median(ctx context.Context, d time.Duration) (float64, error) {
	samples, err := repeat(ctx, d, func(ctx context.Context, slice time.Duration) ([]float64, error) {
		return timed(ctx, slice, 1, c.replay)
	})
	if err != nil {
		return 0, err
	}
	return median(samples), nil
}

// cutOff is an orchestration whose processes all end while its last activity runs. It can be replayed any number of times.
type cutOff struct {
	n       int
	calls   int // its calls, waits for events included
	code    code
	tables  *tables.Memory
	blobs   *blobs.Memory
	queues  *queues.Memory
	reached chan time.Duration                                             // when the last activity began
	before  func(ctx context.Context, runtime *orchestrator.Runtime) error // waits in the activity; nil for no wait
	// deliveries run in the process in which they began. timedFrom is the start of the timed part of its run, if not
	// the run's start.
	deliveries sync.WaitGroup
	timedFrom  time.Duration
	clock      func() time.Duration // for its times
}

const cutOffID = "cut-off"

// code is the body of the orchestration, done n times; then it calls last. wait is an activity during which other
// processes change the orchestration.
type code func(ctx *orchestrator.Context, n int, step, wait, last *orchestrator.Activity[int, int]) (int, error)

// calls calls n activities, one after the other, with last as the last of them.
func calls(ctx *orchestrator.Context, n int, step, _, last *orchestrator.Activity[int, int]) (int, error) {
	return sequence(ctx, n, func(i int) *orchestrator.Activity[int, int] {
		if i == n-1 {
			return last
		}
		return step
	})
}

func newCutOff(n int, code code) *cutOff {
	return &cutOff{n: n, calls: n, code: code, tables: tables.NewMemory(), blobs: blobs.NewMemory(), queues: queues.NewMemory(), reached: make(chan time.Duration, 1), clock: wall(time.Now())}
}

// wall returns a clock that began then.
func wall(then time.Time) func() time.Duration {
	return func() time.Duration { return time.Since(then) }
}

// begin runs the orchestration up to its last activity.
func (c *cutOff) begin(ctx context.Context) error {
	_, err := c.live(ctx)
	return err
}

// live is begin, and returns its duration.
func (c *cutOff) live(ctx context.Context) (time.Duration, error) {
	runtime, err := c.process()
	if err != nil {
		return 0, err
	}
	if err := runtime.Prepare(ctx); err != nil {
		return 0, err
	}
	took, _, err := c.drive(ctx, runtime, false)
	c.deliveries.Wait()
	c.timedFrom = 0
	return took, err
}

// process returns a runtime that knows nothing yet.
func (c *cutOff) process() (*orchestrator.Runtime, error) {
	var runtime *orchestrator.Runtime
	step := orchestrator.NewActivity("step", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	wait := orchestrator.NewActivity("wait", func(ctx context.Context, n int) (int, error) { return n, c.before(ctx, runtime) })
	last := orchestrator.NewActivity("last", func(ctx context.Context, n int) (int, error) {
		c.reached <- c.clock()
		<-ctx.Done()
		return n, ctx.Err()
	})
	var err error
	runtime, err = orchestrator.New(orchestrator.Config{Tables: c.tables, Blobs: c.blobs, Queues: c.queues, Log: slog.New(slog.DiscardHandler),
		MaxInlineActivities: max(1, c.n), // none goes to the queue, for any number of parallel calls
		Activities:          []orchestrator.AnyActivity{step, wait, last},
		Orchestrators: []orchestrator.AnyOrchestrator{orchestrator.NewOrchestrator("cut-off", func(ctx *orchestrator.Context, n int) (int, error) {
			return c.code(ctx, n, step, wait, last)
		})}})
	return runtime, err
}

// replay times one replay in a new process.
func (c *cutOff) replay(ctx context.Context) (time.Duration, error) {
	runtime, err := c.process()
	if err != nil {
		return 0, err
	}
	took, out, err := c.drive(ctx, runtime, true)
	if err == nil && (out.Rounds != 0 || len(out.Calls) != c.calls) {
		err = fmt.Errorf("it was not replayed only: %d new rounds, %d calls of %d", out.Rounds, len(out.Calls), c.calls)
	}
	return took, err
}

// drive runs the orchestration until the last activity begins, which ends the process, and returns the duration.
func (c *cutOff) drive(ctx context.Context, runtime *orchestrator.Runtime, resume bool) (time.Duration, orchestrator.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out orchestrator.Outcome
	var err error
	ended := make(chan struct{})
	began := c.clock()
	go func() {
		defer close(ended)
		out, err = runtime.Run(ctx, orchestrator.Start{ID: cutOffID, Orchestrator: "cut-off", Input: []byte(strconv.Itoa(c.n)), Resume: resume})
	}()
	select {
	case at := <-c.reached:
		cancel()
		<-ended
		return at - max(began, c.timedFrom), out, err
	case <-ended:
		return 0, out, errors.Join(err, fmt.Errorf("orchestration cut-off ended as %s before its last activity", out.Status))
	}
}
