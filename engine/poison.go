package engine

import (
	"context"
	"errors"

	"github.com/vibedata/roundhouse/orchestrator"
)

// handlePoison handles a message that the host has moved to the poison queue. A poison queue has no poison queue: a
// message that failed there too often would stay hidden for ever. So it is requeued while it cannot be handled.
func (a *attempt) handlePoison(ctx context.Context) {
	a.tryPoison(ctx)
	if a.err != nil {
		a.putBack(ctx, a.def.Queue+PoisonSuffix, a.number-1, a.config.ElsewhereDelay, Parked)
	}
}

func (a *attempt) tryPoison(ctx context.Context) {
	// The dequeue count starts again in the poison queue; in the original queue it had reached the host's maximum.
	a.number = max(a.config.HostMaxDequeueCount, a.header.Attempts+1)
	known, err := a.hasLetter(ctx)
	if err != nil {
		a.fail(err)
		return
	}
	if known {
		a.fate = Duplicate
		a.endFailedAfterStall(ctx)
		return
	}
	if !a.loadHistory(ctx) {
		return
	}
	if a.history.succeeded() {
		a.settleRepeat(ctx)
		return
	}
	if a.decodeErr != nil {
		a.deadLetter(ctx, ReasonPoison, a.decodeErr)
		return
	}
	if !a.identify(ctx) {
		return
	}
	out, err := a.ownRun(ctx)
	a.giveUp(ctx, ReasonPoison, out, err)
}

// endFailedAfterStall ends a run whose stall a dead letter reports, and which has continued since and failed: the
// message was to start its next attempt. Other work under the same correlation id is not affected.
func (a *attempt) endFailedAfterStall(ctx context.Context) {
	out, err := a.ownRun(ctx)
	switch {
	case err == nil && out.Status == orchestrator.Retrying:
		a.endAndDeadLetter(ctx, ReasonPoison, a.lastError(out))
	case err != nil && !errors.Is(err, orchestrator.ErrNotFound) && !errors.Is(err, orchestrator.ErrCorrupt) &&
		!errors.Is(err, orchestrator.ErrOtherWork):
		a.fail(err)
	}
}
