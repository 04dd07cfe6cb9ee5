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
	// awayFor is the delay of a message that arrived while the app was drained, or before the program was ready.
	awayFor = time.Minute
	// passOn is the delay of a message that arrived at a stopping program. Its host, which still receives messages,
	// would get it again immediately otherwise.
	passOn = time.Second
)

// Gate admits invocations while the program is to work.
type Gate interface {
	// Enter admits work, which runs in the returned context and calls leave at its end. That context ends when the
	// gate is closed, with a cause that is engine.ErrDrained. After an error, which is engine.ErrDrained, the work
	// does not begin.
	Enter(ctx context.Context) (work context.Context, leave func(), err error)
}

// ErrClosed is the cause of the contexts inside when a gate closes. It is also ErrBudget, for code that checks the
// time.
var ErrClosed = fmt.Errorf("%w: %w", engine.ErrDrained, ErrBudget)

// ErrStopping is the cause of the contexts of running work when the program stops, or when the host no longer waits
// for an answer. It is ErrClosed for the work, which parks. Requeued messages are visible for other processes
// immediately.
var ErrStopping error = stopping{}

// stopping is ErrClosed with a text of its own: the app is not drained.
type stopping struct{}

func (stopping) Error() string { return "the program stops" }

func (stopping) Unwrap() error { return ErrClosed }

// gated returns the work of an invocation behind the gate. It waits for storage, because the host keeps the message
// meanwhile. Refused work, and work that failed because the gate closed, is requeued without using up an attempt.
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

// turnAway requeues a message, or skips work that is done later without it. The cause is the reason of the closed
// gate; when the program ends, the message is delayed by soon, and otherwise by a minute.
func (inv invocation) turnAway(ctx context.Context, cause, reason error, soon time.Duration) error {
	if !errors.Is(cause, ErrStopping) {
		soon = awayFor
	}
	if inv.expendable && (inv.putBack == nil || soon == awayFor) {
		return fmt.Errorf("%w: %w", ErrIdle, reason)
	}
	return inv.putBackFor(ctx, reason, soon)
}
