package orchestrator

import "encoding/json"

// fiber is one of the coroutines of an execution. Fibers take turns in the order in which they were made, one at a time,
// so that a replay runs them as before.
type fiber struct {
	task      *task // what it is for others
	coroutine *coroutine
	waiting   []*task // any of them lets it go on; none before its first turn
	ended     bool
}

func (f *fiber) ready() bool {
	if len(f.waiting) == 0 {
		return true
	}
	for _, t := range f.waiting {
		if t.done {
			return true
		}
	}
	return false
}

// Go runs fn beside the orchestrator, as a coroutine: it may call and wait on its own, and only one of the two runs at a
// time. The Future gives what fn returns; its error is the very one that fn returned.
func Go[T any](ctx *Context, fn func(*Context) (T, error)) *Future[T] {
	x := ctx.execution
	t := &task{kind: fiberTask, name: "Go"}
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
		if t.done && (first < 0 || t.place < tasks[first].place) {
			first = i
		}
	}
	return first
}
