package trigger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/outage"
)

const (
	// awayFor is how long a message is away that came while the app is drained, or before the program was ready.
	awayFor = time.Minute
	// passOn is how long a message is away that came to a program that stops. Its host, which still takes messages, would get it
	// again at once.
	passOn = time.Second
)

// Gate lets invocations in while the program is to work.
type Gate interface {
	// Enter lets work in, which goes on in the context that it gives and calls leave at its end. That context ends when the gate
	// is closed, with a cause that is engine.ErrDrained. With an error, which is engine.ErrDrained, the work does not begin.
	Enter(ctx context.Context) (work context.Context, leave func(), err error)
}

// ErrClosed is the cause of the contexts of what is inside when a gate closes. For who looks at the time, that is over as well.
var ErrClosed = fmt.Errorf("%w: %w", engine.ErrDrained, ErrBudget)

// ErrStopping is the cause of the contexts of what runs when the program stops, or when the host does not wait for an answer any
// more. It is ErrClosed for who works: what runs parks. What is put back is there for other processes at once.
var ErrStopping error = stopping{}

// stopping is ErrClosed with a text of its own: nobody has drained the app.
type stopping struct{}

func (stopping) Error() string { return "the program stops" }

func (stopping) Unwrap() error { return ErrClosed }

// gated is the work of an invocation behind the gate. It waits for storage, because the host keeps the message for it meanwhile.
// What is not let in, and what the closing of the gate made fail, is put back without using up an attempt.
func (r router) gated(inv invocation) func(context.Context) error {
	run := func(ctx context.Context) error { return inv.run(outage.Wait(ctx)) }
	if r.gate == nil || inv.ungated {
		return run
	}
	return func(ctx context.Context) error {
		work, leave, err := r.gate.Enter(ctx)
		if err != nil {
			return inv.turnAway(ctx, err, err, passOn)
		}
		defer leave()
		err = run(work)
		cause := context.Cause(work)
		if err == nil || !errors.Is(cause, engine.ErrDrained) {
			return err
		}
		return inv.turnAway(ctx, cause, err, 0)
	}
}

// turnAway puts a message back, or leaves out what is done later without it. The cause says what has closed the gate; when that is
// the end of the program, the message is away for soon, and otherwise for a minute.
func (inv invocation) turnAway(ctx context.Context, cause, reason error, soon time.Duration) error {
	if !errors.Is(cause, ErrStopping) {
		soon = awayFor
	}
	if inv.expendable && (inv.putBack == nil || soon == awayFor) {
		return fmt.Errorf("%w: %w", ErrIdle, reason)
	}
	return inv.putBackFor(ctx, reason, soon)
}
