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

// storeTimeout bounds a storage call that is not given up when the worker stops.
const storeTimeout = 30 * time.Second

// Worker works on the orchestrations of one storage account. New makes it.
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

// New checks the configuration, naming everything that is wrong with it, and creates the tables, queues and container that
// are missing. Nothing is worked on before Run.
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

// Runtime is what the worker runs orchestrations with: by it they are started, sent events, looked at and stopped. It may be
// used as long as the stores, Run or not.
func (w *Worker) Runtime() *orchestrator.Runtime { return w.runtime }

// Run works until ctx ends and everything at work has come to rest, which takes up to Config.StopTimeout, plus the
// Runtime.Grace of activities. It may be called once; the error says that it was.
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

// every does something at once, and again each time that an interval has passed, until ctx ends.
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

// detached is a context for a call of storage that is seen through when the worker stops.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
}
