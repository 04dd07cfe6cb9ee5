package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/internal/tenant"
)

// Edit is a message to send in place of the original one of a dead letter.
type Edit struct {
	// Message is the whole message, as its sender would have sent it.
	Message []byte
	// IfMatch is the ETag that the dead letter must have, unless the same retry has begun already; "" for any.
	IfMatch string
}

// isOf reports whether the dead letter sends, or has sent, the edited message; a nil Edit matches every retry.
func (e *Edit) isOf(l DeadLetter) bool { return e == nil || bytes.Equal(e.Message, l.SentMessage) }

// RetryEdited is Retry with another message. The dead letter keeps the original message, and stores the other one as
// SentMessage before it is sent. The run of the original message, if any, starts over with the edited one, and keeps
// no results. Repeating the call with the same message changes nothing and returns the same; a later Retry continues
// it. The errors are those of Retry, ErrNotEditable, ErrEdit, ErrChanged, and ErrOtherMessage when a retry has begun
// with other bytes.
func (r *Retrier) RetryEdited(ctx context.Context, engine, rowKey, by string, edit Edit) (DeadLetter, error) {
	letter, err := r.retryEdited(ctx, engine, rowKey, by, edit)
	if err != nil {
		return DeadLetter{}, fmt.Errorf("retry dead letter with an edited message: %w", err)
	}
	return letter, nil
}

func (r *Retrier) retryEdited(ctx context.Context, engine, rowKey, by string, edit Edit) (DeadLetter, error) {
	l, err := r.config.DeadLetters.Get(ctx, engine, rowKey)
	if err != nil {
		return DeadLetter{}, err
	}
	if l.Status == StatusPending && l.RetryID == "" {
		if err := r.checkEdit(ctx, l, edit.Message); err != nil {
			return DeadLetter{}, err
		}
	}
	return r.retry(ctx, engine, rowKey, by, &edit)
}

func (r *Retrier) checkEdit(ctx context.Context, l DeadLetter, message []byte) error {
	if r.config.CheckEdit == nil || r.config.Starts[l.Engine] != nil {
		return fmt.Errorf("%w: what it is about is kept elsewhere: change it there", ErrNotEditable)
	}
	return r.config.CheckEdit(ctx, l, message)
}

// CheckEdit returns the reason why a message cannot be sent in place of the original one of a dead letter, nil when
// it can: the engine must decode it, the engine's function must accept its input, and it must be for the same work.
// The errors are ErrNotEditable, ErrEdit, and those of storage.
func (p *Pipeline) CheckEdit(ctx context.Context, l DeadLetter, message []byte) error {
	def, ok := p.byName[l.Engine]
	if !ok || def.Queue != l.OriginalQueue {
		return fmt.Errorf("%w: it did not come from the queue of an engine", ErrNotEditable)
	}
	if err := l.whyNotEditable(); err != nil {
		return err
	}
	if bytes.Equal(message, l.OriginalMessage) {
		return fmt.Errorf("%w: it is as it was: retry the dead letter without an edit", ErrEdit)
	}
	if err := def.checkEdit(l, message); err != nil {
		return fmt.Errorf("%w: %w", ErrEdit, err)
	}
	entries, err := p.config.History.Run(ctx, def.Name, l.CorrelationID)
	if err != nil {
		return err
	}
	if (recordedRun{entries}).succeeded() {
		return fmt.Errorf("%w: work with the correlation id %q has succeeded in the meantime: resolve the dead letter, or send the message as a new one", ErrNotEditable, l.CorrelationID)
	}
	return nil
}

// whyNotEditable returns the reason why no other message can be sent for a dead letter.
func (d DeadLetter) whyNotEditable() error {
	_, encoding := d.MessageText()
	switch {
	case encoding != "":
		return fmt.Errorf("%w: its message is not text", ErrNotEditable)
	case d.DetectedReason == ReasonStalled:
		return fmt.Errorf("%w: its run is stalled, and goes on by itself when its code can", ErrNotEditable)
	case d.DetectedReason == ReasonInconsistent:
		return fmt.Errorf("%w: its run is damaged", ErrNotEditable)
	}
	return nil
}

// checkEdit checks that the engine accepts an edited message, and that its fixed parts are unchanged.
func (d Definition) checkEdit(l DeadLetter, message []byte) error {
	m, err := d.decodeMessage(message, l.MessageID)
	if err != nil {
		return err
	}
	if strings.Contains(string(message), redact.Mark) && !bytes.Contains(l.OriginalMessage, []byte(redact.Mark)) {
		return fmt.Errorf("it has %s where the original has a secret, which nobody is shown: put the secret there", redact.Mark)
	}
	before, undecodable := d.decodeMessage(l.OriginalMessage, l.MessageID)
	errs := []error{d.checkOwner(m)}
	if m.Blob != "" && (undecodable != nil || m.Blob != before.Blob) {
		errs = append(errs, errors.New("it names a blob with its input that the original does not name: put the input into the message"))
	}
	if undecodable == nil {
		errs = append(errs, stays("correlation id", l.CorrelationID, m.CorrelationID), stays("instance", before.InstanceID, m.InstanceID),
			stays("tenant", tenant.Fold(before.TenantID), tenant.Fold(m.TenantID)))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	input, err := m.encode()
	if err == nil {
		err = d.Orchestrator.CheckInput(input)
	}
	if err != nil {
		return fmt.Errorf("its input is not what the engine %s takes: %w", d.Name, err)
	}
	return nil
}

// checkOwner returns the reason why the engine does not start a run for a message.
func (d Definition) checkOwner(m Message) error {
	switch {
	case m.Engine != "" && m.Engine != d.Name:
		return fmt.Errorf("it is for the engine %.128q, and the queue is that of the engine %s", m.Engine, d.Name)
	case d.Singleton == PerTenant && m.TenantID == "":
		return fmt.Errorf("the engine %s has one run at a time for a tenant, and the message names none", d.Name)
	}
	return nil
}

// stays returns an error if a field that identifies the owner of a message has changed.
func stays(what, before, after string) error {
	if before == after {
		return nil
	}
	return fmt.Errorf("the %s has to stay %q, and is %.128q: what is for another is another message", what, before, after)
}

// editOf returns the id of the original bytes, for the header of the edited message.
func editOf(original []byte) string { return DeriveCorrelationID("unedited", string(original)) }

// edited reports whether the message was edited before it was sent.
func (a *attempt) edited() bool { return a.header.Retry != nil && a.header.Retry.Edited != "" }

// instead returns orchestrator.Start.Instead: an edited message replaces the run of the original message.
func (a *attempt) instead() func(carry []byte) bool {
	own := a.header.Retry
	if !a.edited() {
		return nil
	}
	return func(carry []byte) bool {
		h, body := splitHeader(Delivery{Body: carry})
		if h.Retry != nil && h.Retry.ID == own.ID {
			return false // that is this retry, which has begun
		}
		return h.MessageID == a.header.MessageID || editOf(body) == own.Edited
	}
}

// same returns orchestrator.Start.Same. For an engine that adapts foreign messages, an edited message and the
// original one are the same work, so the retry id distinguishes them.
func (a *attempt) same() func(carry []byte) bool {
	same := a.def.same(a.message)
	own := a.header.Retry
	if !a.edited() || a.def.Adapt == nil {
		return same
	}
	return func(carry []byte) bool {
		h, _ := splitHeader(Delivery{Body: carry})
		return h.Retry != nil && h.Retry.ID == own.ID
	}
}
