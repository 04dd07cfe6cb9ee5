package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// stallOffset is added to the insertion time of a message in the key of the dead letter that reports its stalled run.
// When the code is fixed, the run continues, and if it fails then, the message becomes another dead letter.
const stallOffset = time.Microsecond

// Stalled reports a stalled run that a signal woke, by one dead letter, however often it is called. When the code is
// fixed, the run continues by itself; retrying the dead letter only wakes it. Use it as Config.Stalled of the
// runtime.
func (p *Pipeline) Stalled(ctx context.Context, out orchestrator.Outcome) error {
	def, ok := p.byName[out.Orchestrator]
	if !ok || len(out.Carry) == 0 {
		return p.deadLetterUnstarted(ctx, out, header{})
	}
	a := p.newAttempt(def, Delivery{Queue: def.Queue, Body: out.Carry})
	a.number = a.header.Attempts
	a.deadLetterStalled(ctx, out)
	a.report(ctx)
	return a.err
}

// deadLetterStalled handles a message whose run is stalled. The message need not be redelivered.
func (a *attempt) deadLetterStalled(ctx context.Context, out orchestrator.Outcome) {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	if a.header.Retry == nil && len(out.Carry) > 0 { // this message may be another one for the same run
		a.header, a.body = splitHeader(Delivery{Body: out.Carry})
	}
	letter := a.newDeadLetter(ReasonStalled, out.Failure)
	letter.TenantID = tenantOf(a.message, out)
	if letter.InsertedAtUtc.IsZero() {
		letter.InsertedAtUtc = time.Unix(0, 0)
	}
	letter.InsertedAtUtc = letter.InsertedAtUtc.Add(stallOffset)
	if _, err := a.config.DeadLetters.Add(ctx, letter); err != nil {
		a.fail(err)
		return
	}
	a.fate, a.err, a.cause = Stalled, nil, out.Failure
}

// deadLetterUnstarted reports a stalled orchestration that no message started. Its dead letter holds a signal that
// wakes it. h is the header of that signal, if the signal is a retry; otherwise it is zero.
func (p *Pipeline) deadLetterUnstarted(ctx context.Context, out orchestrator.Outcome, h header) error {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	rt := p.config.Runtime
	letter := DeadLetter{
		Engine: SignalEngine, MessageID: out.ID, InsertedAtUtc: out.StartedAt, OriginalQueue: rt.SignalQueue(),
		ErrorMessage: out.Failure.Error(), DetectedReason: ReasonStalled, LastFailureAtUtc: p.config.Now(),
		CorrelationID: out.CorrelationID, TenantID: out.TenantID, Node: rt.Node(),
	}
	if _, known := p.byName[out.Orchestrator]; known {
		letter.Engine = out.Orchestrator // the place for lists of the engine and the timeline
	}
	if checkID("message id", letter.MessageID) != nil {
		letter.MessageID = DeriveCorrelationID("stalled", out.ID)
	}
	if checkID("correlation id", letter.CorrelationID) != nil {
		letter.CorrelationID = letter.MessageID
	}
	if h.Retry != nil {
		letter.InsertedAtUtc = h.InsertedAt
		letter.ParentRowKey, letter.RetryCount = h.parentLetter()
	}
	var err error
	letter.OriginalMessage, err = json.Marshal(orchestrator.Signal{SignalID: "stalled:" + letter.MessageID, InstanceID: out.ID,
		RuntimeProvider: signalProvider, Type: orchestrator.InternalContinue, OccurredAtUtc: out.StartedAt})
	if err != nil {
		return err // unreachable: all of it can be written
	}
	_, err = p.config.DeadLetters.Add(ctx, letter)
	return err
}

// signalProvider is the runtime provider in signals.
const signalProvider = "roundhouse"
