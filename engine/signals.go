package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Ended handles the end of a run by a signal like the end by its message. It writes the history. For a run that is
// Retrying, it requeues the message with one more attempt; for a final failure, it writes a dead letter. Use it as
// Config.Ended of the runtime.
func (p *Pipeline) Ended(ctx context.Context, out orchestrator.Outcome) error {
	def, ok := p.byName[out.Orchestrator]
	if !ok || len(out.Carry) == 0 {
		return nil // it was not started by a message
	}
	a := p.newAttempt(def, Delivery{Queue: def.Queue, Body: out.Carry})
	a.number = a.header.Attempts
	a.settleEnded(ctx, out)
	if a.fate != Duplicate { // the end is recorded already, and no message is a duplicate
		a.report(ctx)
	}
	return a.err
}

// settleEnded is handle for a run that a signal ended. The history is written last: no message is redelivered here,
// and the history tells the next signal that everything is done.
func (a *attempt) settleEnded(ctx context.Context, out orchestrator.Outcome) {
	if !a.loadHistory(ctx) {
		return
	}
	if a.history.succeeded() || a.history.hasEnd(entriesOf(a.def, a.message, out)) {
		a.fate = Duplicate
		return
	}
	if out.Status != orchestrator.Failed && out.Status != orchestrator.Retrying {
		a.settle(ctx, out)
		return
	}
	a.cause = out.Failure
	if err := a.releaseLock(ctx); err != nil {
		a.fail(err)
		return
	}
	switch {
	case out.Status == orchestrator.Retrying:
		a.putBack(ctx, a.def.Queue, a.number, a.config.ElsewhereDelay, Failed)
	case out.Failure.Permanent:
		a.deadLetter(ctx, reasonOfFailure(out.Failure), out.Failure)
	default: // GiveUp has ended it
		a.deadLetter(ctx, ReasonAttemptsExhausted, out.Failure)
	}
	if a.err != nil {
		return
	}
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	if err := a.record(ctx, out); err != nil {
		a.fail(err)
	}
}

// recordRunning adds the progress of an unfinished run that a signal woke to the history. Operations from before the
// signal are recorded already, unless the signal is redelivered.
func (p *Pipeline) recordRunning(ctx context.Context, out orchestrator.Outcome, since time.Time, again bool) error {
	def, ok := p.byName[out.Orchestrator]
	if !ok || len(out.Carry) == 0 {
		return nil // it was not started by a message
	}
	a := p.newAttempt(def, Delivery{Queue: def.Queue, Body: out.Carry})
	if again {
		if !a.loadHistory(ctx) {
			return a.err
		}
		whole, err := p.config.Runtime.Get(ctx, out.ID)
		if errors.Is(err, orchestrator.ErrNotFound) {
			return nil // it was purged meanwhile
		}
		if err != nil {
			return err
		}
		return a.recordProgress(ctx, whole)
	}
	since = since.Truncate(time.Microsecond) // the precision of the rounds
	out.Calls = slices.DeleteFunc(slices.Clone(out.Calls), func(c orchestrator.Call) bool { return c.EndedAt.Before(since) })
	return a.recordProgress(ctx, out)
}

// HandleSignal handles one delivery of the runtime's signal queue or of its schedule queue. An unreadable message, or
// one without an orchestration, is dead-lettered immediately; an early event is requeued.
func (p *Pipeline) HandleSignal(ctx context.Context, d Delivery) error {
	m := p.runtimeMessage(d)
	if handled, err := p.receiveSign(ctx, m.body); handled {
		return err
	}
	s, err := orchestrator.DecodeSignal(m.body)
	if err != nil {
		return m.deadLetter(ctx, ReasonUndecodable, err)
	}
	tellReport(ctx, slog.String("orchestrationId", s.InstanceID), slog.String("type", string(s.Type)), slog.String("signalId", s.SignalID))
	began := p.config.Now()
	out, err := p.config.Runtime.Deliver(ctx, s)
	early, isEarly := errors.AsType[*orchestrator.EarlyError](err)
	switch {
	case isEarly:
		err = m.putBack(ctx, early.After)
	case errors.Is(err, orchestrator.ErrElsewhere):
		err = m.putBack(ctx, p.config.ElsewhereDelay)
	case errors.Is(err, orchestrator.ErrNotFound):
		err = m.deadLetter(ctx, ReasonNotFound, err) // another delivery would find no orchestration, either
	case err == nil && !out.Ended() && out.Status != orchestrator.Retrying:
		again := d.DequeueCount > 1 || len(m.body) < len(d.Body) // it was delivered before, or requeued
		err = p.recordRunning(ctx, out, began, again)
	}
	if err == nil && out.Status == orchestrator.Stalled && m.header.Retry != nil {
		err = p.deadLetterUnstarted(ctx, out, m.header) // the retry of the dead letter has failed
	}
	p.logDelivery(ctx, slog.LevelInfo, slog.String("orchestrationId", s.InstanceID), slog.String("type", string(s.Type)),
		slog.String("signalId", s.SignalID), slog.String("status", string(out.Status)))
	return err
}

// HandleSignalPoison retries a signal once that the host abandoned, and dead-letters it if that fails, too.
func (p *Pipeline) HandleSignalPoison(ctx context.Context, d Delivery) error {
	m := p.runtimeMessage(d)
	handled, err := p.receiveSign(ctx, m.body)
	if handled {
		return err
	}
	s, err := orchestrator.DecodeSignal(m.body)
	if err == nil {
		_, err = p.config.Runtime.Deliver(ctx, s)
	}
	early, isEarly := errors.AsType[*orchestrator.EarlyError](err)
	switch {
	case err == nil:
		return nil
	case isEarly:
		return m.putBack(ctx, early.After)
	case errors.Is(err, orchestrator.ErrElsewhere):
		return m.putBack(ctx, p.config.ElsewhereDelay)
	default:
		return m.deadLetterPoison(ctx, err)
	}
}
