package trigger

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/engine"
)

// Gate lets invocations in while the program is to work.
type Gate interface {
	// Enter lets work in, which goes on in the context that it gives and calls leave at its end. That context ends when the gate
	// is closed, with a cause that is engine.ErrDrained. With open false the work does not begin.
	Enter(ctx context.Context) (work context.Context, leave func(), open bool)
}

// ErrClosed is the cause of the contexts of what is inside when a gate closes. For who looks at the time, that is over as well.
var ErrClosed = fmt.Errorf("%w: %w", engine.ErrDrained, ErrBudget)

// gated is the work of an invocation behind the gate. What is not let in, and what the closing of the gate made fail, is put back
// without using up an attempt.
func (r router) gated(inv invocation) func(context.Context) error {
	if r.gate == nil || inv.ungated {
		return inv.run
	}
	return func(ctx context.Context) error {
		work, leave, open := r.gate.Enter(ctx)
		if !open {
			return r.turnAway(ctx, inv, engine.ErrDrained)
		}
		defer leave()
		err := inv.run(work)
		if err == nil || !errors.Is(context.Cause(work), engine.ErrDrained) {
			return err
		}
		return r.turnAway(ctx, inv, err)
	}
}

// turnAway puts a message back, or leaves out what is done later without it.
func (r router) turnAway(ctx context.Context, inv invocation, reason error) error {
	if inv.expendable {
		return fmt.Errorf("%w: %w", ErrIdle, reason)
	}
	return inv.putBackFor(ctx, reason)
}
