package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// stallMark is what is added to the time at which a message came, in the key of the dead letter that tells of its stalled
// run: the run goes on when its code is mended, and if it fails then, the message is a dead letter of its own.
const stallMark = time.Microsecond

// Stalled tells people of a run that a signal woke and whose code cannot go on: by one dead letter, however often it is
// called. The run goes on by itself when the code is mended; to retry the dead letter only wakes it. Give it to the runtime
// as Config.Stalled.
func (p *Pipeline) Stalled(ctx context.Context, out orchestrator.Outcome) error {
	def, ok := p.byName[out.Orchestrator]
	if !ok || len(out.Carry) == 0 {
		return p.stalledByItself(ctx, out, journey{})
	}
	v := p.visit(def, Delivery{Queue: def.Queue, Body: out.Carry})
	v.attempt = v.journey.Attempts
	v.stalled(ctx, out)
	v.report(ctx)
	return v.err
}

// stalled is rest for a message whose run cannot go on: nobody has to bring it again.
func (v *visit) stalled(ctx context.Context, out orchestrator.Outcome) {
	ctx, cancel := settling(ctx)
	defer cancel()
	if v.journey.Retry == nil && len(out.Carry) > 0 { // it may be another message for the same run
		v.journey, v.body = unwrap(Delivery{Body: out.Carry})
	}
	letter := v.letter(ReasonStalled, out.Failure)
	if letter.InsertedAtUtc.IsZero() {
		letter.InsertedAtUtc = time.Unix(0, 0)
	}
	letter.InsertedAtUtc = letter.InsertedAtUtc.Add(stallMark)
	if _, err := v.config.DeadLetters.Add(ctx, letter); err != nil {
		v.fail(err)
		return
	}
	v.fate, v.err, v.cause = Stalled, nil, out.Failure
}

// stalledByItself is the same for an orchestration that no message started. Its dead letter holds a signal that wakes it. j
// is the journey of that signal, if a retry has sent it; the zero journey otherwise.
func (p *Pipeline) stalledByItself(ctx context.Context, out orchestrator.Outcome, j journey) error {
	ctx, cancel := settling(ctx)
	defer cancel()
	rt := p.config.Runtime
	letter := DeadLetter{
		Engine: SignalEngine, MessageID: out.ID, InsertedAtUtc: out.StartedAt, OriginalQueue: rt.SignalQueue(),
		ErrorMessage: out.Failure.Error(), DetectedReason: ReasonStalled, LastFailureAtUtc: p.config.Now(),
		CorrelationID: out.CorrelationID, Node: rt.Node(),
	}
	if checkID("message id", letter.MessageID) != nil {
		letter.MessageID = DeriveCorrelationID("stalled", out.ID)
	}
	if checkID("correlation id", letter.CorrelationID) != nil {
		letter.CorrelationID = letter.MessageID
	}
	if j.Retry != nil {
		letter.InsertedAtUtc = j.InsertedAt
		letter.ParentRowKey, letter.RetryCount = j.parent()
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

// signalProvider is what the runtime calls itself in signals.
const signalProvider = "roundhouse"
