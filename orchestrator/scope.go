package orchestrator

import (
	"context"
	"fmt"
	"time"
)

// scope holds the calls made with a Context that can be canceled by itself. A nil scope records none.
type scope struct {
	inner []*scope
	tasks []*task
	err   error // cause of the cancellation; nil before it
}

// WithCancel returns a Context that is canceled with ctx, or when cancel is called. Then the open calls and waits made
// with it return ErrCanceled, and so do later calls with it. Coroutines that got it from Go are canceled with it, too.
// Only the orchestrator may call cancel; further calls do nothing.
func WithCancel(ctx *Context) (scoped *Context, cancel func()) {
	s := &scope{}
	if ctx.scope != nil {
		ctx.scope.inner = append(ctx.scope.inner, s)
		s.err = ctx.scope.err
	}
	inner := *ctx
	inner.scope = s
	return &inner, func() { s.cancel(ctx.execution, ErrCanceled) }
}

// WithDeadline returns a Context that is canceled like that of WithCancel, and also when at has passed, by
// Context.Now. Then its Err, and the errors of the interrupted calls, are also context.DeadlineExceeded. Call cancel
// when the deadline is no longer needed.
func WithDeadline(ctx *Context, at time.Time) (scoped *Context, cancel func()) {
	scoped, cancelScope := WithCancel(ctx)
	late := Timer(ctx, at.Sub(ctx.Now()))
	watch := Go(ctx, func(*Context) (struct{}, error) {
		_, err := late.Await()
		if err == nil {
			scoped.scope.cancel(ctx.execution, fmt.Errorf("%w: %w", context.DeadlineExceeded, ErrCanceled))
		}
		return struct{}{}, nil
	})
	watch.task.awaited = true
	return scoped, func() {
		cancelScope()
		Cancel(ctx, late)
	}
}

// Err returns nil until the Context is canceled, with the orchestration or by itself, and then ErrCanceled. If a
// deadline of WithDeadline has passed, the error is also context.DeadlineExceeded.
func (c *Context) Err() error {
	switch {
	case c.scope != nil && c.scope.err != nil:
		return c.scope.err
	case c.execution.canceled != nil && !c.shielded:
		return ErrCanceled
	}
	return nil
}

// add records that a call belongs to the scope.
func (s *scope) add(t *task) {
	if s != nil {
		s.tasks = append(s.tasks, t)
	}
}

// cancel interrupts the open calls.
func (s *scope) cancel(x *execution, why error) {
	if s.err != nil {
		return
	}
	s.err = why
	for _, t := range s.tasks {
		if open := !t.done; open {
			if x.cancel(t); t.canceled {
				t.err = fmt.Errorf("%s: %w", t.name, why)
			}
		}
	}
	for _, inner := range s.inner {
		inner.cancel(x, why)
	}
}
