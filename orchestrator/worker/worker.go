package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// storeTimeout bounds a storage call that is not canceled when the worker stops.
const storeTimeout = 30 * time.Second

// Worker runs the orchestrations of one storage account. New makes it.
type Worker struct {
	config    Config
	runtime   *orchestrator.Runtime
	queues    queues.Store
	listeners []*listener
	schedules []schedule
	locks     hostlock.Locks
	log       *slog.Logger
	ran       atomic.Bool
}

// New checks the configuration, returns every error in it, and creates missing tables, queues and the container.
// Messages are handled only after Run.
func New(ctx context.Context, c Config) (*Worker, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	w := &Worker{config: c, queues: c.Runtime.Queues, log: c.Runtime.Log}
	c.Runtime.Queues = announcing{c.Runtime.Queues, w.wake}
	var err error
	if w.runtime, err = orchestrator.New(c.Runtime); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	w.locks = hostlock.Locks{Tables: c.Runtime.Tables, Node: w.runtime.Node}
	for _, s := range c.Schedules {
		w.schedules = append(w.schedules, s.parsed())
	}
	signals := work{handle: w.signal, giveUp: w.giveUpSignal}
	activities := work{handle: w.runtime.RunActivities, giveUp: w.giveUpActivities, failsForGood: true}
	alone := make(chan struct{}, 1)
	for queue, work := range map[string]work{w.runtime.SignalQueue(): signals, w.runtime.ScheduleQueue(): signals, w.runtime.ActivityQueue(): activities} {
		w.listeners = append(w.listeners, w.listener(queue, work), w.poisonListener(queue, work, alone))
	}
	if err := w.prepare(ctx); err != nil {
		return nil, fmt.Errorf("worker: prepare the storage: %w", err)
	}
	return w, nil
}

func (w *Worker) prepare(ctx context.Context) error {
	errs := []error{w.runtime.Prepare(ctx), w.locks.CreateTable(ctx)}
	for _, l := range w.listeners {
		errs = append(errs, w.queues.CreateQueue(ctx, l.queue), w.queues.CreateQueue(ctx, l.dead))
	}
	return errors.Join(errs...)
}

// Runtime returns the runtime of the worker, which starts, signals, reads and stops orchestrations. It can be used as
// long as the stores, even without Run.
func (w *Worker) Runtime() *orchestrator.Runtime { return w.runtime }

// Run handles messages until ctx ends and all messages in progress are settled, which takes up to Config.StopTimeout,
// plus the Runtime.Grace of activities. It may be called once; a second call returns an error.
func (w *Worker) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return errors.New("worker: Run was called before: make another Worker")
	}
	defer w.runtime.Close()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	for _, l := range w.listeners {
		all.Go(func() { l.listen(ctx, work) })
	}
	for _, s := range w.schedules {
		all.Go(func() { w.follow(ctx, s) })
	}
	all.Go(func() { w.keepSweeping(ctx) })
	if w.config.Retention > 0 {
		all.Go(func() { w.keepPurging(ctx) })
	}
	rested := make(chan struct{})
	go func() {
		defer close(rested)
		all.Wait()
	}()
	<-ctx.Done()
	patience := time.NewTimer(w.config.StopTimeout)
	defer patience.Stop()
	select {
	case <-rested:
	case <-patience.C:
	}
	stop()
	<-rested
	return nil
}

// every calls do immediately and after each interval, until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	for ctx.Err() == nil {
		do()
		pause(ctx, interval)
	}
}

// pause waits; false says that ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// detached returns a context for a storage call that completes even when the worker stops.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
}
