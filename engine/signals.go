package engine

import (
	"context"
	"errors"
	"log/slog"

	"github.com/vibedata/roundhouse/orchestrator"
)

// SignalEngine is the engine under which signals that nobody could apply are dead letters.
const SignalEngine = "orchestration"

// Ended settles a run whose end a signal has brought, as if its message had: the history, and for one that failed, the
// message in its queue again with its attempts raised. Give it to the runtime as Config.Ended.
func (p *Pipeline) Ended(ctx context.Context, out orchestrator.Outcome) error {
	def, ok := p.byName[out.Orchestrator]
	if !ok || len(out.Carry) == 0 {
		return nil // it was not started by a message
	}
	v := p.visit(def, Delivery{Queue: def.Queue, Body: out.Carry})
	v.attempt = v.journey.Attempts
	v.ended(ctx, out)
	v.report(ctx)
	return v.err
}

// ended is rest for a run that a signal has brought to its end. The history is written last, because it tells the next
// signal, a late one perhaps, that all is done: here no message comes again by itself.
func (v *visit) ended(ctx context.Context, out orchestrator.Outcome) {
	if !v.recall(ctx) {
		return
	}
	if v.past.succeeded() || v.past.has(entriesOf(v.def, v.message, out)) {
		v.fate = Duplicate
		return
	}
	if out.Status != orchestrator.Failed {
		v.settle(ctx, out)
		return
	}
	v.cause = out.Failure
	if out.Failure.Permanent {
		v.bury(ctx, ReasonPermanent, out.Failure)
	} else {
		v.putBack(ctx, v.def.Queue, v.attempt, v.config.ElsewhereDelay, Failed)
	}
	if v.err != nil {
		return
	}
	ctx, cancel := settling(ctx)
	defer cancel()
	if err := v.record(ctx, out); err != nil {
		v.fail(err)
	}
}

// HandleSignal takes one delivery of the runtime's signal queue. What cannot be understood is a dead letter at once.
func (p *Pipeline) HandleSignal(ctx context.Context, d Delivery) error {
	s, err := orchestrator.DecodeSignal(d.Body)
	if err != nil {
		return p.burySignal(ctx, d, s, ReasonUndecodable, d.DequeueCount, err)
	}
	out, err := p.config.Runtime.Deliver(ctx, s)
	if errors.Is(err, orchestrator.ErrElsewhere) {
		_, err = p.config.Queues.Send(ctx, d.Queue, d.Body, p.config.ElsewhereDelay)
	}
	p.config.Log.LogAttrs(ctx, slog.LevelInfo, "signal", slog.String("orchestration", s.InstanceID), slog.String("type", string(s.Type)),
		slog.String("signalId", s.SignalID), slog.String("status", string(out.Status)), slog.Bool("applied", err == nil))
	return err
}

// HandleSignalPoison tries a signal once more that the host gave up on, and makes it a dead letter if that fails, too.
func (p *Pipeline) HandleSignalPoison(ctx context.Context, d Delivery) error {
	s, err := orchestrator.DecodeSignal(d.Body)
	if err == nil {
		if _, err = p.config.Runtime.Deliver(ctx, s); err == nil {
			return nil
		}
	}
	return p.burySignal(ctx, d, s, ReasonPoison, p.config.HostMaxDequeueCount, err)
}

func (p *Pipeline) burySignal(ctx context.Context, d Delivery, s orchestrator.Signal, reason Reason, attempts int, cause error) error {
	ctx, cancel := settling(ctx)
	defer cancel()
	correlationID := s.InstanceID
	if checkID("correlation id", correlationID) != nil {
		correlationID = deriveCorrelationID(d.ID)
	}
	_, err := p.config.DeadLetters.Add(ctx, DeadLetter{
		Engine: SignalEngine, MessageID: d.ID, InsertedAtUtc: d.InsertedAt, OriginalQueue: p.config.Runtime.SignalQueue(), OriginalMessage: d.Body,
		ErrorMessage: cause.Error(), DetectedReason: reason, DequeueCount: attempts,
		LastFailureAtUtc: p.config.Now(), CorrelationID: correlationID,
	})
	return err
}
