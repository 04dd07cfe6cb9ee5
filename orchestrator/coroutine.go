package orchestrator

import (
	"encoding/json"
	"slices"
)

// coroutine is a coroutine of an execution. Coroutines run one at a time, in the order in which they were made, so
// that a replay runs them in the same order.
type coroutine struct {
	number    int   // from 1, in the order in which they were made
	task      *task // represents the coroutine in the waits of others
	body      resumable
	waiting   []*task     // any of these lets it continue; empty before its first turn
	until     func() bool // also lets it continue when it returns true
	waits     int         // how often it has waited
	scheduled bool        // it is in the queue of the scheduler
	noted     bool        // it is among the coroutines that may wait for a call
	ended     bool
	goroutine int64 // id of its goroutine, for the watchdog; 0 without one
}

func (f *coroutine) ready() bool {
	if len(f.waiting) == 0 || slices.ContainsFunc(f.waiting, func(t *task) bool { return t.done }) {
		return true
	}
	return f.until != nil && conditionHolds(f.until)
}

// conditionHolds calls a condition outside of its coroutine. A condition that panics counts as true, so that it panics
// again within the coroutine.
func conditionHolds(condition func() bool) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = true
		}
	}()
	return condition()
}

// Go runs fn as a coroutine next to the orchestrator. It can make calls and wait on its own; only one coroutine runs
// at a time. The Future returns the result of fn, and the identical error value. A panic in fn fails the
// orchestration, and so does runtime.Goexit. When the orchestrator's function returns, a coroutine ends as soon as it
// waits for neither an activity nor a sub-orchestration.
func Go[T any](ctx *Context, fn func(*Context) (T, error)) *Future[T] {
	x := ctx.execution
	t := &task{kind: coroutineTask, name: "Go"}
	x.spawn(t, func() (json.RawMessage, error) {
		v, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		return marshal(v)
	}, func(*task) {})
	return &Future[T]{ctx: ctx, task: t}
}

// Waitable is a Future of any type.
type Waitable interface{ waitable() *task }

func (f *Future[T]) waitable() *task { return f.task }

// Any waits until one of the futures is done and returns its index; of several, the index of the first that was done.
// Add a Timer for a wait with a timeout. The other calls continue; those that are still open when the orchestration
// ends are canceled. Any panics without futures.
func Any(ctx *Context, futures ...Waitable) int {
	if len(futures) == 0 {
		panic("orchestrator.Any: nothing to wait for")
	}
	tasks := make([]*task, len(futures))
	for i, f := range futures {
		tasks[i] = f.waitable()
		tasks[i].awaited = true
	}
	ctx.execution.waitAny(tasks)
	first := -1
	for i, t := range tasks {
		if !t.done {
			continue
		}
		ctx.execution.noteResultSeen(t)
		if first < 0 || t.doneOrder < tasks[first].doneOrder {
			first = i
		}
	}
	return first
}

// WaitUntil waits until condition returns true. The condition is called after each event that the orchestration learns
// and each turn of another coroutine. So it may only read variables that coroutines share, and must change nothing.
// The error is ErrCanceled.
func WaitUntil(ctx *Context, condition func() bool) error {
	return ctx.execution.waitUntil(ctx, "a condition", condition)
}

// waitUntil returns when the condition holds or the wait is canceled. Only the running coroutine may call it.
func (x *execution) waitUntil(ctx *Context, name string, condition func() bool) error {
	if condition() {
		return nil
	}
	if ctx.isCanceled() {
		return canceledError(name)
	}
	t := &task{kind: conditionTask, name: name, shielded: ctx.shielded}
	ctx.scope.add(t)
	x.waitUntilTrue(x.current, []*task{t}, condition)
	if condition() {
		return nil
	}
	return t.err
}

// waitUntilTrue makes the running coroutine wait until the condition holds or one of the tasks is done.
func (x *execution) waitUntilTrue(f *coroutine, tasks []*task, condition func() bool) {
	x.waitFor(f, tasks)
	f.until = condition
	x.scheduler.conditional = append(x.scheduler.conditional, f)
	if !f.ready() && x.unread.len() > 0 {
		x.deliverKept(tasks)
	}
	for !f.ready() {
		f.body.pause()
	}
	f.until = nil
	x.scheduler.conditional = slices.DeleteFunc(x.scheduler.conditional, func(other *coroutine) bool { return other == f })
}
