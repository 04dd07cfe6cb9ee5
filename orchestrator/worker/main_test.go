package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/worker"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

const (
	signalQueue   = "orchestration-signals"
	activityQueue = "orchestration-activities"
)

// world is storage that outlives workers, and counts of the activities that ran.
type world struct {
	tables tables.Store
	queues queues.Store
	blobs  blobs.Store

	mu   sync.Mutex
	runs map[string]int // of activities, by input
}

func newWorld() *world {
	return &world{tables: tables.NewMemory(), queues: queues.NewMemory(), blobs: blobs.NewMemory(), runs: map[string]int{}}
}

// did counts a run.
func (w *world) did(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[what]++
}

func (w *world) count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[what]
}

// step returns an activity that returns its input after a while.
func (w *world) step(takes time.Duration) *orchestrator.Activity[string, string] {
	return orchestrator.NewActivity("step", func(ctx context.Context, in string) (string, error) {
		if takes > 0 {
			select {
			case <-time.After(takes):
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		w.did(in)
		return in, nil
	})
}

// order returns an orchestrator that uses every feature of a worker: activities, a timer that outlasts a driver, and
// an event.
func order(delay time.Duration, step *orchestrator.Activity[string, string]) *orchestrator.Orchestrator[string, string] {
	return orchestrator.NewOrchestrator("order", func(ctx *orchestrator.Context, in string) (string, error) {
		first, err := step.Call(ctx, in+"-first").Await()
		if err != nil {
			return "", err
		}
		if err := ctx.Sleep(delay); err != nil {
			return "", err
		}
		paid, err := orchestrator.Event[string](ctx, "paid").Await()
		if err != nil {
			return "", err
		}
		last, err := step.Call(ctx, in+"-last").Await()
		return first + " " + paid + " " + last, err
	})
}

// config returns the configuration of a worker of the world, with storage that a plan breaks; nil breaks nothing.
func (w *world) config(plan *faults.Plan, orchestrators []orchestrator.AnyOrchestrator, activities ...orchestrator.AnyActivity) worker.Config {
	c := worker.Config{Runtime: orchestrator.Config{Tables: w.tables, Queues: w.queues, Blobs: w.blobs, Orchestrators: orchestrators, Activities: activities,
		Log: slog.New(slog.DiscardHandler)}}
	if plan != nil {
		intercept := func(ctx context.Context, call faults.Call, next func(context.Context) error) error {
			switch {
			case call.Operation != "Receive": // too many polls, and none of them changes anything
				return plan.Intercept(ctx, call, next)
			case plan.Crashed():
				return faults.ErrCrashed
			default:
				return next(ctx)
			}
		}
		c.Runtime.Tables, c.Runtime.Queues, c.Runtime.Blobs = faults.Tables(w.tables, intercept), faults.Queues(w.queues, intercept), faults.Blobs(w.blobs, intercept)
	}
	return c
}

// mustRun starts a worker; stop ends it and waits until Run returns.
func mustRun(t *testing.T, c worker.Config) (w *worker.Worker, stop func()) {
	t.Helper()
	w = must(worker.New(t.Context(), c))(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w, stop
}

// mustEnd waits for the end of an orchestration.
func mustEnd(t *testing.T, w *worker.Worker, id string) orchestrator.Outcome {
	t.Helper()
	out := must(w.Runtime().Wait(t.Context(), id))(t)
	return out
}

func (w *world) mustLength(t *testing.T, queue string, want int) {
	t.Helper()
	if n, err := w.queues.Length(t.Context(), queue); err != nil || n != want {
		t.Errorf("%d messages in %s, want %d: %v", n, queue, want, err)
	}
}

func orchestrators(all ...orchestrator.AnyOrchestrator) []orchestrator.AnyOrchestrator { return all }

func TestConfig(t *testing.T) {
	t.Parallel()
	nothing := orchestrator.NewOrchestrator("nothing", func(*orchestrator.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
	known := orchestrator.Config{Orchestrators: orchestrators(nothing)}
	good := worker.Schedule{Name: "s", Cron: "0 * * * * *", Orchestrator: "nothing"}
	change := func(do func(s *worker.Schedule)) []worker.Schedule {
		s := good
		do(&s)
		return []worker.Schedule{s}
	}
	for name, c := range map[string]worker.Config{
		"some stores":           {Runtime: orchestrator.Config{Tables: tables.NewMemory()}},
		"a short visibility":    {Visibility: time.Second},
		"negative":              {Concurrency: -1},
		"a bad runtime":         {Runtime: orchestrator.Config{MaxActivities: -1}},
		"a nameless schedule":   {Runtime: known, Schedules: change(func(s *worker.Schedule) { s.Name = "" })},
		"schedules of a name":   {Runtime: known, Schedules: []worker.Schedule{good, good}},
		"a bad expression":      {Runtime: known, Schedules: change(func(s *worker.Schedule) { s.Cron = "often" })},
		"nothing to start":      {Runtime: known, Schedules: change(func(s *worker.Schedule) { s.Orchestrator = "other" })},
		"input that is none":    {Runtime: known, Schedules: change(func(s *worker.Schedule) { s.Input = []byte("{") })},
		"a catch-up too long":   {Runtime: known, Retention: time.Hour, Schedules: change(func(s *worker.Schedule) { s.CatchUp = time.Hour })},
		"a catch-up below zero": {Runtime: known, Schedules: change(func(s *worker.Schedule) { s.CatchUp = -1 })},
	} {
		if _, err := worker.New(t.Context(), c); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, c := range map[string]worker.Config{"nothing": {}, "a schedule": {Runtime: known, Schedules: []worker.Schedule{good}}} {
		if _, err := worker.New(t.Context(), c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Run may be called once.
func TestRunTwice(t *testing.T) {
	t.Parallel()
	w, stop := mustRun(t, newWorld().config(nil, nil))
	stop()
	if err := w.Run(t.Context()); err == nil {
		t.Error("it ran a second time")
	}
}

func failure(t *testing.T, err error) *orchestrator.Failure {
	t.Helper()
	f, ok := errors.AsType[*orchestrator.Failure](err)
	if !ok {
		t.Fatalf("%v is no failure", err)
	}
	return f
}

func id(n int) string { return fmt.Sprintf("order-%d", n) }

// inBubble runs a test in a bubble of synctest, in parallel with others.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// noError ends a test whose preparation failed.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errorOf returns the error of a call whose result does not matter.
func errorOf[T any](_ T, err error) error { return err }

// must returns the result of a call, and ends a test whose preparation failed.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		noError(t, err)
		return v
	}
}
