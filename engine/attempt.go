package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// frozenAfter is the longest delay after an invocation's deadline within which its handler notices the deadline. A
// longer delay means that the process was frozen.
const frozenAfter = time.Minute

// settleTimeout bounds the last writes of a delivery, which continue after the invocation timed out.
const settleTimeout = 30 * time.Second

// attempt is the handling of one delivery.
type attempt struct {
	*Pipeline
	def       Definition
	header    header
	body      []byte
	message   Message
	decodeErr error // why the body could not be decoded
	number    int   // number of this attempt, including those before a requeue
	// redelivered reports whether the message was delivered before.
	redelivered bool
	history     recordedRun // of the message's work
	conflict    error       // other work that succeeded under the correlation id; nil for none
	began       time.Time

	fate  Fate
	err   error // result of Handle
	cause error // reason in the log
}

func (p *Pipeline) newAttempt(def Definition, d Delivery) *attempt {
	a := &attempt{Pipeline: p, def: def, began: p.config.Now()}
	a.header, a.body = splitHeader(d)
	if checkID("message id", a.header.MessageID) != nil {
		// Message ids of storage and the host are UUIDs. Any other id is replaced by a derived one, the same for every delivery.
		a.header.MessageID = deriveCorrelationID(a.header.MessageID)
	}
	a.message, a.decodeErr = def.decodeMessage(a.body, a.header.MessageID)
	if a.decodeErr == nil && def.Singleton == PerTenant && a.message.TenantID == "" {
		a.decodeErr = fmt.Errorf("the engine %s has one run at a time for a tenant, and the message names none", def.Name)
	}
	a.number = a.header.Attempts + d.DequeueCount
	a.redelivered = a.number > 1 || len(a.body) < len(d.Body)
	return a
}

// handle chooses and performs the outcome of the delivery.
func (a *attempt) handle(ctx context.Context) {
	switch {
	case a.decodeErr != nil:
		a.deadLetter(ctx, reasonOf(a.decodeErr), a.decodeErr)
		return
	case a.message.Engine != "" && a.message.Engine != a.def.Name:
		a.deadLetter(ctx, ReasonUnknownEngine, fmt.Errorf("the message is for the engine %.128q, which does not read the queue %s", a.message.Engine, a.def.Queue))
		return
	}
	if !a.loadHistory(ctx) {
		return
	}
	if a.history.succeeded() {
		a.settleRepeat(ctx)
		return
	}
	if !a.identify(ctx) || a.number >= a.def.MaxAttempts && !a.waitsOrGiveUp(ctx) {
		return
	}
	if a.checkFree(ctx) {
		defer a.config.Runtime.Hold(a.orchestrationID())() // until the end is in the history
		a.run(ctx)
	}
}

// settleRepeat settles a message whose work has succeeded.
func (a *attempt) settleRepeat(ctx context.Context) {
	if err := a.supersede(ctx); err != nil { // the process that recorded the success may have died during it
		a.fail(err)
		return
	}
	a.fate = Duplicate
}

// waitsOrGiveUp handles a message whose attempts are used up. It reports true if its run waits for signals: the run
// continues without the message, which only has to be acknowledged. It also reports true if storage does not show
// those attempts. Otherwise it dead-letters the message.
func (a *attempt) waitsOrGiveUp(ctx context.Context) bool {
	out, err := a.ownRun(ctx)
	if err == nil && waitsForSignals(out) {
		return true
	}
	a.countAttempts(out, err)
	if a.number < a.def.MaxAttempts {
		return true
	}
	a.giveUp(ctx, ReasonAttemptsExhausted, out, err)
	return false
}

// countAttempts limits the attempts of the header, which any sender can write, to those of the message's run, given
// its state or the error of reading it. Without a run and without a failure in the history, the limit is 0.
func (a *attempt) countAttempts(out orchestrator.Outcome, err error) {
	shown := a.header.Attempts
	if err == nil {
		ran, _ := splitHeader(Delivery{Body: out.Carry})
		redeliveries := a.number - a.header.Attempts - 1
		shown = max(0, ran.Attempts-redeliveries) // its last attempt was a delivery of this message
	} else if _, _, failure := a.history.failures(); errors.Is(err, orchestrator.ErrNotFound) && failure == nil {
		shown = 0
	}
	if lost := a.header.Attempts - shown; lost > 0 {
		a.number, a.header.Attempts = a.number-lost, shown
	}
}

// waitsForSignals reports whether no process has to do anything for the run until a signal comes.
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

// loadHistory reads the history of the correlation id (standard, section 1.4). It runs before the attempts are
// counted: a message whose run succeeded and that could not be acknowledged must not become a dead letter, however
// often it is delivered.
func (a *attempt) loadHistory(ctx context.Context) bool {
	if err := a.readHistory(ctx); err != nil {
		a.fail(err)
		return false
	}
	return true
}

// readHistory reads the entries of the message's work under the correlation id, and records other work that
// succeeded.
func (a *attempt) readHistory(ctx context.Context) error {
	entries, err := a.config.History.Run(ctx, a.def.Name, a.message.CorrelationID)
	if err != nil {
		return err
	}
	a.history, a.conflict = recordedRun{}, nil
	for _, e := range entries {
		switch {
		case a.owns(e):
			a.history.entries = append(a.history.entries, e)
		case e.RunStatus == StatusSucceeded:
			a.conflict = a.conflictOf(e)
		}
	}
	return nil
}

// giveUp dead-letters a message without attempts left, given the state of its orchestration, or the error of reading
// it. If the run completed and the history lacks it, giveUp records it instead. A stalled run continues without the
// message.
func (a *attempt) giveUp(ctx context.Context, reason Reason, out orchestrator.Outcome, err error) {
	switch {
	case err == nil && out.Status == orchestrator.Stalled:
		a.deadLetterStalled(ctx, out)
	case err == nil && out.Ended() && out.Status != orchestrator.Failed:
		a.settle(ctx, out)
	case err == nil:
		a.endAndDeadLetter(ctx, reason, a.lastError(out))
	case errors.Is(err, orchestrator.ErrNotFound):
		a.deadLetter(ctx, reason, a.lastError(orchestrator.Outcome{}))
	case errors.Is(err, orchestrator.ErrOtherWork):
		a.refuseOtherWork(ctx, err)
	case errors.Is(err, orchestrator.ErrCorrupt):
		a.deadLetter(ctx, ReasonInconsistent, err)
	default:
		a.fail(err)
	}
}

// endAndDeadLetter ends an orchestration without further retries, and then dead-letters its message. In this order, a
// retry of the dead letter finds the orchestration ended, and so does a redelivery after a crash in between. If the
// dead letter exists already, only the acknowledgement was lost: the current run may be its retry, which must not be
// ended.
func (a *attempt) endAndDeadLetter(ctx context.Context, reason Reason, cause error) {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	_, err := a.config.DeadLetters.Get(ctx, a.def.Name, a.newDeadLetter(reason, cause).Key())
	if errors.Is(err, ErrNotFound) {
		err = a.endRun(ctx, cause)
	}
	if err != nil {
		a.fail(err)
		return
	}
	a.deadLetter(ctx, reason, cause)
}

// endRun sets the orchestration of a message without further retries to Failed. If the id belongs to another run by
// now, the message's own run is over.
func (a *attempt) endRun(ctx context.Context, cause error) error {
	err := a.config.Runtime.GiveUp(ctx, a.orchestrationID(), a.message.CorrelationID, cause)
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) && !errors.Is(err, orchestrator.ErrConflict) {
		return err
	}
	return a.releaseLock(ctx)
}

// lastError returns the error of the last attempt.
func (a *attempt) lastError(out orchestrator.Outcome) error {
	if _, _, err := a.history.failures(); err != nil {
		return err
	}
	if out.Failure != nil {
		return out.Failure
	}
	return errors.New("no attempt could report an error: the process ended each time")
}

// run starts or resumes the orchestration and handles its outcome.
func (a *attempt) run(ctx context.Context) {
	message, err := a.config.Claims.resolve(ctx, a.def.Name, a.message)
	switch {
	case errors.Is(err, errClaimUnavailable):
		a.endAndDeadLetter(ctx, ReasonUndecodable, err)
		return
	case err != nil:
		a.failedOutside(ctx, err)
		return
	}
	message.NaturalKey = false // the run does not need it
	input, err := message.encode()
	if err != nil {
		a.endAndDeadLetter(ctx, reasonOf(err), fmt.Errorf("the message cannot be stored: %w", err))
		return
	}
	h := a.header
	h.Attempts = a.number
	carry, err := h.prepend(a.body)
	if err != nil {
		a.fail(err)
		return
	}
	out, err := a.config.Runtime.Run(ctx, orchestrator.Start{
		ID:            a.orchestrationID(),
		Orchestrator:  a.def.Name,
		Input:         input,
		CorrelationID: a.message.CorrelationID,
		TenantID:      cleanText(a.message.TenantID),
		Trace:         a.message.TraceParent,
		Carry:         carry,
		Same:          a.same(),
		Instead:       a.instead(),
		Timeout:       a.def.Timeout,
		WillRetry:     true,
		Reuse:         a.def.reuse(),
		Resume:        a.number > 1 || len(a.history.entries) > 0 || a.def.Singleton != "",
	})
	switch {
	case errors.Is(err, orchestrator.ErrStalled):
		a.deadLetterStalled(ctx, out)
	case errors.Is(err, orchestrator.ErrElsewhere):
		a.putBack(ctx, a.def.Queue, a.number-1, a.config.ElsewhereDelay, Elsewhere)
	case errors.Is(err, orchestrator.ErrOtherWork), errors.Is(err, orchestrator.ErrOtherTenant): // for a singleton, too: waiting does not help
		a.refuseOtherWork(ctx, err)
	case errors.Is(err, orchestrator.ErrConflict) && a.def.Singleton != "":
		a.putBackConflict(ctx, err, a.config.ConflictDelay)
	case errors.Is(err, orchestrator.ErrConflict):
		a.deadLetter(ctx, ReasonPermanent, err)
	case errors.Is(err, orchestrator.ErrNotFound):
		a.handlePurged(ctx, err)
	case errors.Is(err, orchestrator.ErrPayload): // the next attempt cannot even begin
		a.endAndDeadLetter(ctx, ReasonPermanent, err)
	case err != nil:
		a.failedOutside(ctx, err)
	case out.Ended(), out.Status == orchestrator.Retrying:
		a.settle(ctx, out)
	case out.Woken:
		a.fate = Parked
		if err := a.recordProgress(ctx, out); err != nil {
			a.cause = err
			a.putBack(ctx, a.def.Queue, a.number-1, a.config.ElsewhereDelay, Parked) // the next delivery records the operations
		}
	case out.Rounds == 0 && !out.Joined && !out.ResumeAt.After(a.config.Now()) && !errors.Is(context.Cause(ctx), ErrDrained):
		a.failedOutside(ctx, a.outOfTime(ctx))
	default:
		a.cause = a.recordProgress(ctx, out) // after an error, the next delivery writes it
		a.putBack(ctx, a.def.Queue, a.number-1, max(0, out.ResumeAt.Sub(a.config.Now())), Parked)
	}
}

// outOfTime returns the reason why an attempt made no progress within its invocation. It uses the monotonic clock,
// which clock adjustments do not affect.
func (a *attempt) outOfTime(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if late := a.config.Now().Sub(deadline); ok && late > frozenAfter {
		return fmt.Errorf("the process was frozen: it noticed the end of its invocation %v late, and did nothing meanwhile. The attempt is repeated. "+
			"If this comes again, look at what stops the process %s: a machine or container that is suspended, a lack of CPU or memory, a debugger",
			late.Round(time.Second), a.config.Runtime.Node())
	}
	return errors.New("the time of the invocation ran out before any activity ended: give it more time, or divide it")
}

// handlePurged handles a run that was purged while it ran here. Only a run that has ended can be purged, but its
// result is lost. Another run may undo an operator's decision, and dropping the message may lose work, so it is
// dead-lettered for an operator.
func (a *attempt) handlePurged(ctx context.Context, cause error) {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	if !a.loadHistory(ctx) {
		return
	}
	if a.history.succeeded() {
		a.settleRepeat(ctx)
		return
	}
	a.deadLetter(ctx, ReasonPermanent, cause)
}

// settle writes the history of a run that ended, or of an attempt that failed, and settles the message.
func (a *attempt) settle(ctx context.Context, out orchestrator.Outcome) {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	if out.Failure != nil {
		if err := a.releaseLock(ctx); err != nil {
			a.fail(err)
			return
		}
	}
	if err := a.record(ctx, out); err != nil {
		a.fail(err)
		return
	}
	switch {
	case out.Failure == nil && out.Joined:
		a.fate = Duplicate
	case out.Failure == nil:
		a.fate = Succeeded
	case out.Status == orchestrator.Terminated, out.Status == orchestrator.Canceled:
		a.fate = Terminated
	case out.Failure.Permanent:
		a.deadLetter(ctx, reasonOfFailure(out.Failure), out.Failure)
	default:
		a.fail(out.Failure)
	}
}

// failedOutside handles an attempt that failed outside of its orchestration. The history keeps the error, so that a
// dead letter can name it; if it cannot be written, the error is only returned.
func (a *attempt) failedOutside(ctx context.Context, cause error) {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	entry := brokenEntry(a.def, a.message, cause, a.began, a.config.Now())
	if err := a.config.History.Record(ctx, entry); err != nil {
		cause = errors.Join(cause, err)
	}
	a.fail(cause)
}

func (a *attempt) fail(err error) {
	a.fate, a.err, a.cause = Failed, err, err
}

// putBack requeues the message, with a delay and the number of used attempts.
func (a *attempt) putBack(ctx context.Context, queue string, attempts int, delay time.Duration, fate Fate) {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	h := a.header
	h.Attempts = attempts
	body, err := h.prepend(a.body)
	if err == nil {
		_, err = a.config.Queues.Send(ctx, queue, body, min(delay, queues.MaxDelay))
	}
	if err != nil {
		a.fail(errors.Join(a.cause, fmt.Errorf("put message %s back into %s: %w", a.header.MessageID, queue, err)))
		return
	}
	a.fate, a.err = fate, nil
}

// deadLetter writes the dead letter (standard, sections 1.3 and 2).
func (a *attempt) deadLetter(ctx context.Context, reason Reason, cause error) {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	letter := a.newDeadLetter(reason, cause)
	created, err := a.config.DeadLetters.Add(ctx, letter)
	if err == nil && !created {
		err = a.addOther(ctx, letter)
	}
	if err != nil {
		a.fail(err)
		return
	}
	a.fate, a.err, a.cause = DeadLettered, nil, cause
}

// addOther adds a dead letter whose key exists, if the existing one is of another message: a sender has copied its
// header.
func (a *attempt) addOther(ctx context.Context, letter DeadLetter) error {
	there, err := a.config.DeadLetters.Get(ctx, letter.Engine, letter.Key())
	if errors.Is(err, ErrNotFound) || err == nil && bytes.Equal(there.OriginalMessage, letter.OriginalMessage) {
		return nil
	}
	if err == nil {
		letter.MessageID = DeriveCorrelationID("copied header", letter.MessageID, string(letter.OriginalMessage))
		_, err = a.config.DeadLetters.Add(ctx, letter)
	}
	return err
}

// newDeadLetter returns the dead letter for the message.
func (a *attempt) newDeadLetter(reason Reason, cause error) DeadLetter {
	first, last, _ := a.history.failures()
	if last.IsZero() {
		last = a.config.Now()
	}
	parent, retries := a.header.parentLetter()
	return DeadLetter{
		Engine:            a.def.Name,
		MessageID:         a.header.MessageID,
		InsertedAtUtc:     a.header.InsertedAt,
		InstanceID:        a.message.InstanceID,
		TenantID:          a.message.TenantID,
		OriginalQueue:     a.def.Queue,
		OriginalMessage:   a.body,
		ErrorMessage:      cause.Error(),
		DetectedReason:    reason,
		DequeueCount:      a.number,
		FirstFailureAtUtc: first,
		LastFailureAtUtc:  last,
		CorrelationID:     a.message.CorrelationID,
		ParentRowKey:      parent,
		RetryCount:        retries,
		Node:              a.config.Runtime.Node(),
	}
}

// withSettleTimeout returns a context for the last writes of a delivery, which must not be cut off by the end of the
// invocation.
func withSettleTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return outage.Finish(ctx, settleTimeout)
}
