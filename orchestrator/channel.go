package orchestrator

// Channel carries values from one coroutine of an orchestration to another, in order, like a channel of Go. What is in it
// is lost with the execution, like a variable: before an orchestration continues as new, it drains it.
type Channel[T any] struct {
	capacity int
	values   []T
	waiting  int // receivers
	closed   bool
}

// NewChannel makes a channel that holds capacity values for which nobody waits; 0 lets Send wait for a receiver.
func NewChannel[T any](_ *Context, capacity int) *Channel[T] {
	return &Channel[T]{capacity: max(capacity, 0)}
}

// Send waits until there is room for the value, or somebody who takes it. The error is ErrCanceled. Send panics when the
// channel is closed.
func (c *Channel[T]) Send(ctx *Context, v T) error {
	free := func() bool { return c.closed || len(c.values) < c.capacity+c.waiting }
	if err := ctx.execution.waitUntil(ctx, "send to a channel", free); err != nil {
		return err
	}
	if c.closed {
		panic("orchestrator: send to a closed channel")
	}
	c.values = append(c.values, v)
	return nil
}

// Receive waits for the next value; ok is false when the channel is closed and empty. The error is ErrCanceled.
func (c *Channel[T]) Receive(ctx *Context) (v T, ok bool, err error) {
	c.waiting++
	defer func() { c.waiting-- }()
	if err := ctx.execution.waitUntil(ctx, "receive from a channel", func() bool { return c.closed || len(c.values) > 0 }); err != nil {
		return v, false, err
	}
	v, ok = c.TryReceive()
	return v, ok, nil
}

// TryReceive takes the next value if there is one, without waiting.
func (c *Channel[T]) TryReceive() (v T, ok bool) {
	if len(c.values) == 0 {
		return v, false
	}
	v, c.values = c.values[0], c.values[1:]
	return v, true
}

// Close lets those go on who wait for a value, once those that were sent are taken.
func (c *Channel[T]) Close() { c.closed = true }

// WaitGroup waits for coroutines, like that of the package sync. The zero value is ready to use.
type WaitGroup struct{ count int }

// Add adds delta, which may be negative, to the number of coroutines that are waited for. It panics when that falls below
// zero.
func (g *WaitGroup) Add(delta int) {
	if g.count += delta; g.count < 0 {
		panic("orchestrator: a WaitGroup with a negative count")
	}
}

// Done says that one of them is done.
func (g *WaitGroup) Done() { g.Add(-1) }

// Wait waits until all are. The error is ErrCanceled.
func (g *WaitGroup) Wait(ctx *Context) error {
	return ctx.execution.waitUntil(ctx, "a wait group", func() bool { return g.count == 0 })
}
