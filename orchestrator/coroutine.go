package orchestrator

import (
	"encoding/json"
	"slices"
)

// coroutine is one of the coroutines of an execution. Fibers take turns in the order in which they were made, one at a time,
// so that a replay runs them as before.
type coroutine struct {
	number    int   // from 1, in the order in which they were made
	task      *task // what it is for others
	body      *resumable
	waiting   []*task     // any of them lets it go on; none before its first turn
	until     func() bool // lets it go on, too
	waits     int         // how often it has waited
	scheduled bool        // it may go on
	ended     bool
	goroutine int64 // number, for those who look where it stands; 0 when nobody does
}

func (f *coroutine) ready() bool {
	if len(f.waiting) == 0 || slices.ContainsFunc(f.waiting, func(t *task) bool { return t.done }) {
		return true
	}
	return f.until != nil && conditionHolds(f.until)
}

// conditionHolds asks a condition outside of its coroutine. One that panics counts as true, so that it panics where it belongs.
func conditionHolds(condition func() bool) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = true
		}
	}()
	return condition()
}

// Go runs fn beside the orchestrator, as a coroutine: it may call and wait on its own, and only one of the two runs at a
// time. The Future gives what fn returns; its error is the very one that fn returned. A panic in fn fails the
// orchestration. When the orchestrator's function returns, a coroutine ends once nothing that it waits for is an activity
// or a sub-orchestration.
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

// Any waits until one of the futures is done, and returns its index: of several, that of the one that was done first.
// With a Timer among them it is a wait with a time-out. A call that loses goes on; when the orchestration ends before it,
// it is called back. Any panics without futures.
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

// WaitUntil waits until condition says true. It is asked whenever the orchestration has learned something or another
// coroutine has run, so it only looks at variables that coroutines share, and changes nothing. The error is ErrCanceled.
func WaitUntil(ctx *Context, condition func() bool) error {
	return ctx.execution.waitUntil(ctx, "a condition", condition)
}

// waitUntil returns when the condition holds, or when the wait is canceled. Only the fiber that runs may call it.
func (x *execution) waitUntil(ctx *Context, name string, condition func() bool) error {
	if condition() {
		return nil
	}
	if ctx.isCanceled() {
		return canceledError(name)
	}
	t := &task{kind: conditionTask, name: name, shielded: ctx.shielded}
	f := x.current
	x.waitUntilTrue(f, t, condition)
	if condition() {
		return nil
	}
	return t.err
}

// waitUntilTrue has the fiber that runs wait until the condition holds, or the task is done.
func (x *execution) waitUntilTrue(f *coroutine, t *task, condition func() bool) {
	x.waitFor(f, []*task{t})
	f.until = condition
	x.scheduler.conditional = append(x.scheduler.conditional, f)
	for !f.ready() {
		f.body.pause()
	}
	f.until = nil
	x.scheduler.conditional = slices.DeleteFunc(x.scheduler.conditional, func(other *coroutine) bool { return other == f })
}
