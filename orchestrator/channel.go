package orchestrator

// Channel carries values in order from one coroutine of an orchestration to another, like a Go channel. Like a
// variable, it does not survive the execution: drain it before the orchestration continues as new.
type Channel[T any] struct {
	capacity int
	values   []T
	waiting  int // how many receivers wait
	closed   bool
}

// NewChannel makes a channel that buffers up to capacity values. With capacity 0, Send waits for a receiver.
func NewChannel[T any](_ *Context, capacity int) *Channel[T] {
	return &Channel[T]{capacity: max(capacity, 0)}
}

// Send waits until the channel has room for the value or a receiver takes it. The error is ErrCanceled. Send panics
// when the channel is closed.
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

// TryReceive returns the next value if the channel holds one. It does not wait.
func (c *Channel[T]) TryReceive() (v T, ok bool) {
	if len(c.values) == 0 {
		return v, false
	}
	v, c.values = c.values[0], c.values[1:]
	return v, true
}

// Close closes the channel: once receivers have taken all sent values, they get ok false.
func (c *Channel[T]) Close() { c.closed = true }

// WaitGroup waits for coroutines, like sync.WaitGroup does for goroutines. The zero value is ready to use.
type WaitGroup struct{ count int }

// Add adds delta, which may be negative, to the counter. It panics when the counter becomes negative.
func (g *WaitGroup) Add(delta int) {
	if g.count += delta; g.count < 0 {
		panic("orchestrator: a WaitGroup with a negative count")
	}
}

// Done decrements the counter.
func (g *WaitGroup) Done() { g.Add(-1) }

// Wait waits until the counter is zero. The error is ErrCanceled.
func (g *WaitGroup) Wait(ctx *Context) error {
	return ctx.execution.waitUntil(ctx, "a wait group", func() bool { return g.count == 0 })
}
