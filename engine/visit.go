package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// settleTimeout bounds the writes that end a delivery; they go on when the invocation's time is over.
const settleTimeout = 30 * time.Second

// visit is the work on one delivery.
type visit struct {
	*Pipeline
	def     Definition
	journey journey
	body    []byte
	message Message
	broken  error // why the body is no message
	attempt int   // the number of this attempt, those before a put-back included
	past    pastRun
	began   time.Time

	fate  Fate
	err   error // what Handle returns
	cause error // what the log gives as the reason
}

func (p *Pipeline) visit(def Definition, d Delivery) *visit {
	v := &visit{Pipeline: p, def: def, began: p.config.Now()}
	v.journey, v.body = unwrap(d)
	if checkID("message id", v.journey.MessageID) != nil {
		// Storage and the host give UUIDs; anything else gets one here, the same for every delivery.
		v.journey.MessageID = deriveCorrelationID(v.journey.MessageID)
	}
	v.message, v.broken = def.decodeMessage(v.body, v.journey.MessageID)
	if v.broken == nil && def.Singleton == PerTenant && v.message.TenantID == "" {
		v.broken = fmt.Errorf("the engine %s has one run at a time for a tenant, and the message names none", def.Name)
	}
	v.attempt = v.journey.Attempts + d.DequeueCount
	return v
}

// rest decides what becomes of the delivery, and does it.
func (v *visit) rest(ctx context.Context) {
	switch {
	case v.broken != nil:
		v.bury(ctx, reasonOf(v.broken), v.broken)
		return
	case v.message.Engine != "" && v.message.Engine != v.def.Name:
		v.bury(ctx, ReasonUnknownEngine, fmt.Errorf("the message is for the engine %.128q, which does not read the queue %s", v.message.Engine, v.def.Queue))
		return
	}
	if !v.recall(ctx) {
		return
	}
	if v.past.succeeded() {
		v.fate = Duplicate
		return
	}
	if v.attempt >= v.def.MaxAttempts && !v.waits(ctx) {
		return
	}
	if v.free(ctx) {
		v.run(ctx)
	}
}

// waits is for a message whose attempts are used up: it says that its run waits for what comes by a signal, and goes on
// without the message, which only could not be acknowledged. Any other it gives up.
func (v *visit) waits(ctx context.Context) bool {
	out, err := v.found(ctx)
	if err == nil && waitsForSignals(out) {
		return true
	}
	v.giveUp(ctx, ReasonAttemptsExhausted, out, err)
	return false
}

// waitsForSignals says that no process has to do anything for the run until a signal comes.
func waitsForSignals(out orchestrator.Outcome) bool {
	waits := out.Status == orchestrator.Suspended
	for _, c := range out.Calls {
		if open := c.EndedAt.IsZero(); open && c.Kind == orchestrator.ActivityCall {
			return false
		} else if open && out.Status == orchestrator.Running {
			waits = true
		}
	}
	return waits
}

// recall looks the correlation id up in the history (standard, section 1.4). It comes before the attempts are counted:
// a message that succeeded and could not be acknowledged is no dead letter, however often it is delivered.
func (v *visit) recall(ctx context.Context) bool {
	entries, err := v.config.History.Run(ctx, v.def.Name, v.message.CorrelationID)
	if err != nil {
		v.fail(err)
		return false
	}
	v.past = pastRun{entries}
	return true
}

// giveUp buries a message that is not tried again, given where its orchestration stands, or why nobody knows. One that has
// completed, and only the history does not say so yet, is settled; one that is stalled goes on without the message.
func (v *visit) giveUp(ctx context.Context, reason Reason, out orchestrator.Outcome, err error) {
	switch {
	case err == nil && out.Status == orchestrator.Stalled:
		v.stalled(ctx, out)
	case err == nil && out.Ended() && out.Status != orchestrator.Failed:
		v.settle(ctx, out)
	case err == nil:
		v.abandon(ctx, reason, v.lastError(out))
	case errors.Is(err, orchestrator.ErrNotFound):
		v.bury(ctx, reason, v.lastError(orchestrator.Outcome{}))
	case errors.Is(err, orchestrator.ErrCorrupt):
		v.bury(ctx, ReasonInconsistent, err)
	default:
		v.fail(err)
	}
}

// abandon ends an orchestration that nobody brings again, and then buries its message, in this order: whoever can retry the
// dead letter finds the orchestration ended, and after a crash in between the message comes again and finds it so, too. When
// the dead letter is there already, only the acknowledgement was lost, and what runs now may be its retry.
func (v *visit) abandon(ctx context.Context, reason Reason, cause error) {
	ctx, cancel := settling(ctx)
	defer cancel()
	_, err := v.config.DeadLetters.Get(ctx, v.def.Name, v.letter(reason, cause).key())
	if errors.Is(err, ErrNotFound) {
		err = v.end(ctx, cause)
	}
	if err != nil {
		v.fail(err)
		return
	}
	v.bury(ctx, reason, cause)
}

// end makes the orchestration of a message Failed that nobody brings again. When the id is another run's by now, the
// message's own is over.
func (v *visit) end(ctx context.Context, cause error) error {
	err := v.config.Runtime.GiveUp(ctx, v.orchestrationID(), v.message.CorrelationID, cause)
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) && !errors.Is(err, orchestrator.ErrConflict) {
		return err
	}
	return v.unlock(ctx)
}

// lastError is the real error of the last attempt.
func (v *visit) lastError(out orchestrator.Outcome) error {
	if _, _, err := v.past.failures(); err != nil {
		return err
	}
	if out.Failure != nil {
		return out.Failure
	}
	return errors.New("no attempt lived long enough to say what happened: the process ended each time")
}

// run starts or resumes the orchestration and settles its outcome.
func (v *visit) run(ctx context.Context) {
	message, err := v.config.Claims.open(ctx, v.def.Name, v.message)
	switch {
	case errors.Is(err, errClaim):
		v.abandon(ctx, ReasonUndecodable, err)
		return
	case err != nil:
		v.broke(ctx, err)
		return
	}
	input, err := message.encode()
	if err != nil {
		v.abandon(ctx, reasonOf(err), fmt.Errorf("the message cannot be stored: %w", err))
		return
	}
	j := v.journey
	j.Attempts = v.attempt
	carry, err := j.wrap(v.body)
	if err != nil {
		v.fail(err)
		return
	}
	out, err := v.config.Runtime.Run(ctx, orchestrator.Start{
		ID:            v.orchestrationID(),
		Orchestrator:  v.def.Name,
		Input:         input,
		CorrelationID: v.message.CorrelationID,
		Carry:         carry,
		Timeout:       v.def.Timeout,
		WillRetry:     true,
		Reuse:         v.def.reuse(),
		Resume:        v.attempt > 1 || len(v.past.entries) > 0 || v.def.Singleton != "",
	})
	switch {
	case errors.Is(err, orchestrator.ErrStalled):
		v.stalled(ctx, out)
	case errors.Is(err, orchestrator.ErrElsewhere):
		v.putBack(ctx, v.def.Queue, v.attempt-1, v.config.ElsewhereDelay, Elsewhere)
	case errors.Is(err, orchestrator.ErrConflict) && v.def.Singleton != "":
		v.conflict(ctx, err, v.config.ConflictDelay)
	case errors.Is(err, orchestrator.ErrConflict):
		v.bury(ctx, ReasonPermanent, err)
	case errors.Is(err, orchestrator.ErrNotFound):
		v.purged(ctx, err)
	case errors.Is(err, orchestrator.ErrPayload): // the next attempt cannot even begin
		v.abandon(ctx, ReasonPermanent, err)
	case err != nil:
		v.broke(ctx, err)
	case out.Ended(), out.Status == orchestrator.Retrying:
		v.settle(ctx, out)
	case out.Woken:
		v.fate = Parked
		if err := v.show(ctx, out); err != nil {
			v.cause = err
			v.putBack(ctx, v.def.Queue, v.attempt-1, v.config.ElsewhereDelay, Parked) // to show it then
		}
	case out.Rounds == 0 && !out.Joined && !out.ResumeAt.After(v.config.Now()):
		v.broke(ctx, errors.New("the time of the invocation ran out before any activity ended: give it more time, or divide it"))
	default:
		v.cause = v.show(ctx, out) // what cannot be written now, the next delivery writes
		v.putBack(ctx, v.def.Queue, v.attempt-1, max(0, out.ResumeAt.Sub(v.config.Now())), Parked)
	}
}

// purged is rest for a run that was taken away while it ran here. Only what has ended can be purged, but how it ended nobody
// knows any more: to run it again may undo what a person wanted, and to drop it may lose it. So a person decides.
func (v *visit) purged(ctx context.Context, cause error) {
	ctx, cancel := settling(ctx)
	defer cancel()
	if !v.recall(ctx) {
		return
	}
	if v.past.succeeded() {
		v.fate = Duplicate
		return
	}
	v.bury(ctx, ReasonPermanent, cause)
}

// settle writes the history of a run that ended, or of an attempt that failed, and decides by its end.
func (v *visit) settle(ctx context.Context, out orchestrator.Outcome) {
	ctx, cancel := settling(ctx)
	defer cancel()
	if out.Failure != nil {
		if err := v.unlock(ctx); err != nil {
			v.fail(err)
			return
		}
	}
	if err := v.record(ctx, out); err != nil {
		v.fail(err)
		return
	}
	switch {
	case out.Failure == nil && out.Joined:
		v.fate = Duplicate
	case out.Failure == nil:
		v.fate = Succeeded
	case out.Status == orchestrator.Terminated, out.Status == orchestrator.Canceled:
		v.fate = Terminated
	case out.Failure.Permanent:
		v.bury(ctx, ReasonPermanent, out.Failure)
	default:
		v.fail(out.Failure)
	}
}

// record writes the history of a run, executions that failed before and that it does not have yet included.
func (v *visit) record(ctx context.Context, out orchestrator.Outcome) error {
	for _, earlier := range out.Earlier {
		if err := v.config.History.Record(ctx, v.past.missing(entriesOf(v.def, v.message, earlier))...); err != nil {
			return err
		}
	}
	entries := v.past.missing(entriesOf(v.def, v.message, out))
	if err := v.config.History.Record(ctx, entries...); err != nil {
		return err
	}
	v.past.entries = append(v.past.entries, entries...)
	return nil
}

// broke handles an attempt that failed outside of its orchestration. The history keeps the error, so that a dead letter
// can name it; when that fails too, the error at hand is the one to report.
func (v *visit) broke(ctx context.Context, cause error) {
	ctx, cancel := settling(ctx)
	defer cancel()
	entry := brokenEntry(v.def, v.message, cause, v.began, v.config.Now())
	if err := v.config.History.Record(ctx, entry); err != nil {
		cause = errors.Join(cause, err)
	}
	v.fail(cause)
}

func (v *visit) fail(err error) {
	v.fate, v.err, v.cause = Failed, err, err
}

// putBack sends the message to a queue again, for later, with the attempts that are used up.
func (v *visit) putBack(ctx context.Context, queue string, attempts int, delay time.Duration, fate Fate) {
	ctx, cancel := settling(ctx)
	defer cancel()
	j := v.journey
	j.Attempts = attempts
	body, err := j.wrap(v.body)
	if err == nil {
		_, err = v.config.Queues.Send(ctx, queue, body, min(delay, queues.MaxDelay))
	}
	if err != nil {
		v.fail(errors.Join(v.cause, fmt.Errorf("put message %s back into %s: %w", v.journey.MessageID, queue, err)))
		return
	}
	v.fate, v.err = fate, nil
}

// bury writes the dead letter (standard, sections 1.3 and 2).
func (v *visit) bury(ctx context.Context, reason Reason, cause error) {
	ctx, cancel := settling(ctx)
	defer cancel()
	if _, err := v.config.DeadLetters.Add(ctx, v.letter(reason, cause)); err != nil {
		v.fail(err)
		return
	}
	v.fate, v.err, v.cause = DeadLettered, nil, cause
}

// letter is the message as a dead letter.
func (v *visit) letter(reason Reason, cause error) DeadLetter {
	first, last, _ := v.past.failures()
	if last.IsZero() {
		last = v.config.Now()
	}
	parent, retries := v.journey.parent()
	return DeadLetter{
		Engine:            v.def.Name,
		MessageID:         v.journey.MessageID,
		InsertedAtUtc:     v.journey.InsertedAt,
		InstanceID:        v.message.InstanceID,
		OriginalQueue:     v.def.Queue,
		OriginalMessage:   v.body,
		ErrorMessage:      cause.Error(),
		DetectedReason:    reason,
		DequeueCount:      v.attempt,
		FirstFailureAtUtc: first,
		LastFailureAtUtc:  last,
		CorrelationID:     v.message.CorrelationID,
		ParentRowKey:      parent,
		RetryCount:        retries,
		Node:              v.config.Runtime.Node(),
	}
}

// poisoned is rest for a message that the host has moved to the poison queue. A poison queue has none of its own: what
// failed there too often would stay, hidden, for ever. So it is put back as long as storage does not take it.
func (v *visit) poisoned(ctx context.Context) {
	v.restPoisoned(ctx)
	if v.err != nil {
		v.putBack(ctx, v.def.Queue+PoisonSuffix, v.attempt-1, v.config.ElsewhereDelay, Parked)
	}
}

func (v *visit) restPoisoned(ctx context.Context) {
	// The host has counted from the beginning in the queue that it gave up on; here it counts again.
	v.attempt = max(v.config.HostMaxDequeueCount, v.journey.Attempts+1)
	known, err := v.config.DeadLetters.Pending(ctx, v.def.Name, v.message.CorrelationID)
	if err != nil {
		v.fail(err)
		return
	}
	if len(known) > 0 {
		v.fate = Duplicate
		v.endOfStalled(ctx)
		return
	}
	if !v.recall(ctx) {
		return
	}
	if v.past.succeeded() {
		v.fate = Duplicate
		return
	}
	if v.broken != nil {
		v.bury(ctx, ReasonPoison, v.broken)
		return
	}
	out, err := v.found(ctx)
	v.giveUp(ctx, ReasonPoison, out, err)
}

// endOfStalled gives up a run of which a dead letter tells that it was stalled, and which has gone on since and failed: the
// message was to bring it again.
func (v *visit) endOfStalled(ctx context.Context) {
	out, err := v.found(ctx)
	switch {
	case err == nil && out.Status == orchestrator.Retrying:
		v.abandon(ctx, ReasonPoison, v.lastError(out))
	case err != nil && !errors.Is(err, orchestrator.ErrNotFound) && !errors.Is(err, orchestrator.ErrCorrupt):
		v.fail(err)
	}
}

// settling gives the last writes of a delivery their own time: they matter more than the end of the invocation.
func settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
}
