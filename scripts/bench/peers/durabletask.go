package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/microsoft/durabletask-go/api"
	"github.com/microsoft/durabletask-go/backend"
	"github.com/microsoft/durabletask-go/backend/sqlite"
	"github.com/microsoft/durabletask-go/task"
)

const (
	// parallel is the number of work items of each kind in progress. The library's default is 1.
	parallel = 100
	// pollEvery is the interval of its polls. The library's own delay begins at 50 ms and is not configurable.
	pollEvery = time.Millisecond
)

// durableTask runs orchestrations whose whole history is loaded and replayed for each turn.
type durableTask struct {
	store   *attentive
	client  backend.TaskHubClient
	started atomic.Int64
	reached chan time.Time // when a cut-off orchestration was beyond its history
}

// newDurableTask keeps the database in a file in WAL mode, or in memory without one.
func newDurableTask(ctx context.Context, file string) (*durableTask, error) {
	if file != "" {
		file = "file:" + file + "?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)"
	}
	l := &durableTask{reached: make(chan time.Time, 1)}
	log := silent{}
	l.store = &attentive{Backend: sqlite.NewSqliteBackend(sqlite.NewSqliteOptions(file), log)}
	registry := task.NewTaskRegistry()
	err := errors.Join(
		registry.AddActivityN("step", func(ctx task.ActivityContext) (any, error) {
			var n int
			err := ctx.GetInput(&n)
			return n + 1, err
		}),
		registry.AddOrchestratorN("sequence", durableSequence),
		registry.AddOrchestratorN("fanout", durableFanOut),
		registry.AddOrchestratorN("cutoff", l.cutOff),
	)
	if err != nil {
		return nil, err
	}
	executor := task.NewTaskExecutor(registry)
	hub := backend.NewTaskHubWorker(l.store,
		backend.NewOrchestrationWorker(l.store, executor, log, backend.WithMaxParallelism(parallel)),
		backend.NewActivityTaskWorker(l.store, executor, log, backend.WithMaxParallelism(parallel)), log)
	l.client = backend.NewTaskHubClient(l.store)
	return l, hub.Start(ctx)
}

func (l *durableTask) run(ctx context.Context, shape string, n int) error {
	id := api.InstanceID(shape + "-" + strconv.FormatInt(l.started.Add(1), 10))
	ended := l.store.watch(id)
	if _, err := l.client.ScheduleNewOrchestration(ctx, shape, api.WithInstanceID(id), api.WithInput(n)); err != nil {
		return err
	}
	<-ended
	data, err := l.client.FetchOrchestrationMetadata(ctx, id)
	if err == nil && data.SerializedOutput != strconv.Itoa(n) {
		err = fmt.Errorf("orchestration %s is %v with output %q", id, data.RuntimeStatus, data.SerializedOutput)
	}
	return err
}

func durableSequence(ctx *task.OrchestrationContext) (any, error) {
	var n, sum int
	if err := ctx.GetInput(&n); err != nil {
		return nil, err
	}
	for range n {
		if err := ctx.CallActivity("step", task.WithActivityInput(sum)).Await(&sum); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

func durableFanOut(ctx *task.OrchestrationContext) (any, error) {
	var n, sum int
	if err := ctx.GetInput(&n); err != nil {
		return nil, err
	}
	tasks := make([]task.Task, n)
	for i := range tasks {
		tasks[i] = ctx.CallActivity("step", task.WithActivityInput(0))
	}
	for _, t := range tasks {
		var one int
		if err := t.Await(&one); err != nil {
			return nil, err
		}
		sum += one
	}
	return sum, nil
}

// cutOff fans out n activities. Then it waits for events, for ever.
func (l *durableTask) cutOff(ctx *task.OrchestrationContext) (any, error) {
	if _, err := durableFanOut(ctx); err != nil {
		return nil, err
	}
	for {
		if !ctx.IsReplaying {
			l.reached <- time.Now()
		}
		if err := ctx.WaitForSingleEvent("again", -1).Await(nil); err != nil {
			return nil, err
		}
	}
}

// replay raises one event after the other: each makes a turn, which replays the previous ones.
func (l *durableTask) replay(ctx context.Context, activities int, d time.Duration) ([]float64, error) {
	if _, err := l.client.ScheduleNewOrchestration(ctx, "cutoff", api.WithInstanceID("cut-off"), api.WithInput(activities)); err != nil {
		return nil, err
	}
	<-l.reached
	runtime.GC() // earlier garbage must not count for the replays
	var us []float64
	for began := time.Now(); len(us) == 0 || time.Since(began) < d; {
		if err := l.client.RaiseEvent(ctx, "cut-off", "again"); err != nil {
			return nil, err
		}
		at := <-l.reached
		us = append(us, micros(at.Sub(*l.store.loaded.Load())))
	}
	return us, nil
}

// attentive is a store that polls often, and signals when an orchestration ends, so that the library's own delays do
// not count.
type attentive struct {
	backend.Backend
	watched sync.Map                  // of channels, by instance
	loaded  atomic.Pointer[time.Time] // when the last history load began
}

// watch returns a channel that is closed when the instance has ended.
func (a *attentive) watch(id api.InstanceID) <-chan struct{} {
	ended := make(chan struct{})
	a.watched.Store(id, ended)
	return ended
}

// GetOrchestrationWorkItem waits for one.
func (a *attentive) GetOrchestrationWorkItem(ctx context.Context) (*backend.OrchestrationWorkItem, error) {
	return await(ctx, a.Backend.GetOrchestrationWorkItem)
}

// GetActivityWorkItem waits for one.
func (a *attentive) GetActivityWorkItem(ctx context.Context) (*backend.ActivityWorkItem, error) {
	return await(ctx, a.Backend.GetActivityWorkItem)
}

// GetOrchestrationRuntimeState records its start.
func (a *attentive) GetOrchestrationRuntimeState(ctx context.Context, item *backend.OrchestrationWorkItem) (*backend.OrchestrationRuntimeState, error) {
	began := time.Now()
	a.loaded.Store(&began)
	return a.Backend.GetOrchestrationRuntimeState(ctx, item)
}

// CompleteOrchestrationWorkItem signals the watcher of the instance when that was its end.
func (a *attentive) CompleteOrchestrationWorkItem(ctx context.Context, item *backend.OrchestrationWorkItem) error {
	err := a.Backend.CompleteOrchestrationWorkItem(ctx, item)
	if err == nil && item.State.IsCompleted() {
		if ended, ok := a.watched.LoadAndDelete(item.InstanceID); ok {
			close(ended.(chan struct{}))
		}
	}
	return err
}

func await[T any](ctx context.Context, get func(context.Context) (*T, error)) (*T, error) {
	for {
		item, err := get(ctx)
		if !errors.Is(err, backend.ErrNoWorkItems) {
			return item, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// silent is a log that keeps nothing.
type silent struct{}

func (silent) Debug(...any)          {}
func (silent) Debugf(string, ...any) {}
func (silent) Info(...any)           {}
func (silent) Infof(string, ...any)  {}
func (silent) Warn(...any)           {}
func (silent) Warnf(string, ...any)  {}
func (silent) Error(...any)          {}
func (silent) Errorf(string, ...any) {}
