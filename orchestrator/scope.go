package orchestrator

import (
	"context"
	"fmt"
	"time"
)

// scope is what was called with a Context that can be canceled by itself. A nil scope takes nothing.
type scope struct {
	inner []*scope
	tasks []*task
	err   error // why it was canceled; nil while it is not
}

// WithCancel returns a Context that is canceled with ctx, or when cancel is called: then what was called with it, and waits, gives
// ErrCanceled, and so do later calls with it. Coroutines that got it from Go are canceled with it, too. Only the orchestrator may call
// cancel; more than once does nothing.
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

// WithDeadline returns a Context that is canceled like one of WithCancel, and when at has passed, by Context.Now. Its Err, and the errors
// of what it interrupts, are then context.DeadlineExceeded, too. Call cancel when the deadline is of no interest any more.
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

// Err is nil until the Context is canceled, with the orchestration or by itself, and then why: it is ErrCanceled, and
// context.DeadlineExceeded, too, when a deadline of WithDeadline has passed.
func (c *Context) Err() error {
	switch {
	case c.scope != nil && c.scope.err != nil:
		return c.scope.err
	case c.execution.canceled != nil && !c.shielded:
		return ErrCanceled
	}
	return nil
}

// add notes that a call belongs to the scope.
func (s *scope) add(t *task) {
	if s != nil {
		s.tasks = append(s.tasks, t)
	}
}

// cancel interrupts what is open.
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
