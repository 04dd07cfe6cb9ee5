package orchestrator

import "slices"

// Case is one branch of Select.
type Case interface {
	// task returns the task that the case waits for; nil for a condition.
	task() *task
	ready() bool
	// waits is called when Select begins (1) or ends (-1) to wait.
	waits(change int)
	run() error
}

// Select waits until one of the cases is ready, picks the first ready one of the list, and returns the result of its
// function. A done future is always ready, so leave it out of the next Select. A Future of Event gets an event only
// while Select waits for it. The error is ErrCanceled when the wait is canceled. Select panics without cases.
func Select(ctx *Context, cases ...Case) error {
	if len(cases) == 0 {
		panic("orchestrator.Select: nothing to wait for")
	}
	if i := slices.IndexFunc(cases, Case.ready); i >= 0 {
		return cases[i].run()
	}
	if err := ctx.Err(); err != nil {
		return canceledError("select")
	}
	canceled := &task{kind: conditionTask, name: "select", shielded: ctx.shielded}
	ctx.scope.add(canceled)
	tasks := []*task{canceled}
	for _, c := range cases {
		if c.waits(1); c.task() != nil {
			tasks = append(tasks, c.task())
		}
	}
	ctx.execution.waitUntilTrue(ctx.execution.current, tasks, func() bool { return slices.ContainsFunc(cases, Case.ready) })
	for _, c := range cases {
		c.waits(-1)
	}
	if i := slices.IndexFunc(cases, Case.ready); i >= 0 {
		return cases[i].run()
	}
	return canceled.err
}

// OnResult is ready when the future is done; fn gets the results of Await.
func OnResult[T any](f *Future[T], fn func(T, error) error) Case { return resultCase[T]{f, fn} }

type resultCase[T any] struct {
	future *Future[T]
	fn     func(T, error) error
}

func (c resultCase[T]) task() *task {
	c.future.task.awaited = true
	return c.future.task
}
func (c resultCase[T]) ready() bool { return c.future.task.done }
func (c resultCase[T]) waits(int)   {}
func (c resultCase[T]) run() error  { return c.fn(c.future.Await()) }

// OnReceive is ready when the channel has a value or is closed; fn gets the results of Receive.
func OnReceive[T any](from *Channel[T], fn func(v T, ok bool) error) Case {
	return receiveCase[T]{from, fn}
}

type receiveCase[T any] struct {
	channel *Channel[T]
	fn      func(T, bool) error
}

func (c receiveCase[T]) task() *task      { return nil }
func (c receiveCase[T]) ready() bool      { return c.channel.closed || len(c.channel.values) > 0 }
func (c receiveCase[T]) waits(change int) { c.channel.waiting += change }
func (c receiveCase[T]) run() error       { return c.fn(c.channel.TryReceive()) }

// Otherwise is always ready, so Select picks it if no case before it is.
func Otherwise(fn func() error) Case { return otherwise(fn) }

type otherwise func() error

func (otherwise) task() *task   { return nil }
func (otherwise) ready() bool   { return true }
func (otherwise) waits(int)     {}
func (fn otherwise) run() error { return fn() }
