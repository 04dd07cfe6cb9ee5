package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/vibedata/roundhouse/internal/tenant"
)

// work is a digest of what a message asks for: messages with one correlation id and one work are the same message. Senders
// whose messages an engine adapts have correlation ids of natural keys, and repeat themselves with other details.
func (d Definition) work(m Message) string {
	input := ""
	switch {
	case d.Adapt != nil:
	case m.Blob != "":
		input = path.Base(m.Blob) // the digest of what is in it
	default:
		input = digestOf(m.Input)
	}
	return DeriveCorrelationID("work", d.operationOf(m), m.InstanceID, input)
}

// digestOf is a digest of a JSON document, blanks apart; "" for none.
func digestOf(document json.RawMessage) string {
	var compact bytes.Buffer
	if json.Compact(&compact, document) != nil || compact.String() == "null" {
		return ""
	}
	sum := sha256.Sum256(compact.Bytes())
	return hex.EncodeToString(sum[:])
}

// same says whether a run that carries a message was started for the same work. What cannot be read is not judged.
func (d Definition) same(m Message) func(carry []byte) bool {
	own := d.work(m)
	return func(carry []byte) bool {
		h, body := splitHeader(Delivery{Body: carry})
		before, err := d.decodeMessage(body, h.MessageID)
		return len(carry) == 0 || err != nil || d.work(before) == own
	}
}

// otherWork says for what the correlation id of a message stands, if the run that succeeded under it did something else; nil
// when it is the same work.
func (a *attempt) otherWork() error {
	own := a.def.work(a.message)
	for _, e := range a.history.entries {
		if e.RunStatus != StatusSucceeded {
			continue
		}
		another := a.message.TenantID != "" && e.TenantID != "" && !tenant.Sees(a.message.TenantID, e.TenantID)
		if another || e.Work != "" && e.Work != own {
			return fmt.Errorf("%w: it succeeded at %s for the instance %.200q", errOtherWork, e.CreatedAtUtc.Format(time.RFC3339), e.InstanceID)
		}
	}
	return nil
}

// errOtherWork: the message is no repeat of the one that had its correlation id before.
var errOtherWork = errors.New("the correlation id belongs to a run that did other work: send the message with one of its own")

// refuseOtherWork makes a dead letter of a message whose correlation id belongs to other work. That goes on.
func (a *attempt) refuseOtherWork(ctx context.Context, cause error) {
	if !errors.Is(cause, errOtherWork) {
		cause = fmt.Errorf("%w (%w)", errOtherWork, cause)
	}
	a.deadLetter(ctx, ReasonCorrelationConflict, cause)
}

// hasLetter reports whether a pending dead letter is there for the work of the message.
func (a *attempt) hasLetter(ctx context.Context) (bool, error) {
	pending, err := a.config.DeadLetters.Pending(ctx, a.def.Name, a.message.CorrelationID)
	if err != nil {
		return false, err
	}
	for _, l := range pending {
		whole, err := a.config.DeadLetters.Get(ctx, a.def.Name, l.RowKey)
		switch {
		case errors.Is(err, ErrNotFound):
			continue
		case err != nil:
			return false, err
		case a.def.same(a.message)(whole.OriginalMessage):
			return true, nil
		}
	}
	return false, nil
}
