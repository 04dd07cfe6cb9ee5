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
	"github.com/vibedata/roundhouse/orchestrator"
)

// identity is the work that an engine does under a correlation id. A message, the run that carries it, the row that reserves the
// correlation id and an entry of the history have one each; an empty field is unknown.
type identity struct {
	tenant, instance string
	// work is a digest of operation, instance and input.
	work string
}

// same reports whether two identities under one correlation id are the same work. Everything else is a conflict.
func (i identity) same(other identity) bool {
	return i.sameOwner(other) && (i.work == "" || other.work == "" || i.work == other.work)
}

// sameOwner reports whether two identities are for the same tenant and instance.
func (i identity) sameOwner(other identity) bool {
	return (i.instance == "" || other.instance == "" || i.instance == other.instance) &&
		(tenant.Sees(i.tenant, other.tenant) || other.tenant == "")
}

// identity returns the identity of a message.
func (d Definition) identity(m Message) identity {
	return identity{cleanText(m.TenantID), cleanText(m.InstanceID), d.work(m)}
}

// identity returns the identity of the work that an entry is about. Only ends of attempts have a digest.
func (e Entry) identity() identity { return identity{e.TenantID, e.InstanceID, e.Work} }

// work returns a digest of the request of a message. A natural key identifies the input, so details may differ.
func (d Definition) work(m Message) string {
	input := ""
	switch {
	case d.Adapt != nil && m.NaturalKey:
	case m.Blob != "":
		input = path.Base(m.Blob) // digest of its content
	default:
		input = digestOf(m.Input)
	}
	return DeriveCorrelationID("work", d.operationOf(m), m.InstanceID, input)
}

// digestOf returns a digest of a JSON document, blanks apart; "" for none.
func digestOf(document json.RawMessage) string {
	var compact bytes.Buffer
	if json.Compact(&compact, document) != nil || compact.String() == "null" {
		return ""
	}
	sum := sha256.Sum256(compact.Bytes())
	return hex.EncodeToString(sum[:])
}

// same reports whether a run that carries a message was started for the same work. An unreadable message counts as
// the same.
func (d Definition) same(m Message) func(carry []byte) bool {
	own := d.identity(m)
	return func(carry []byte) bool {
		h, body := splitHeader(Delivery{Body: carry})
		before, err := d.decodeMessage(body, h.MessageID)
		return len(carry) == 0 || err != nil || own.same(d.identity(before))
	}
}

// owns reports whether an entry under the correlation id of the message is about its work. An edited message continues the
// failures of the message that it replaces.
func (a *attempt) owns(e Entry) bool {
	own := a.def.identity(a.message)
	return own.same(e.identity()) || a.edited() && e.RunStatus != StatusSucceeded && own.sameOwner(e.identity())
}

// identify decides whether the correlation id is that of other work, before anything runs. If so, it dead-letters the message and
// returns false.
func (a *attempt) identify(ctx context.Context) bool {
	conflict, err := a.otherWork(ctx)
	switch {
	case err != nil:
		a.fail(err)
	case conflict != nil:
		a.refuseOtherWork(ctx, conflict)
	}
	return err == nil && conflict == nil
}

// otherWork returns a conflict if the correlation id belongs to other work, after readHistory. The runs of a singleton have the
// ids of their instances, so a row reserves the correlation id. Other engines have it in the id of the orchestration, whose first
// round reserves it.
func (a *attempt) otherWork(ctx context.Context) (conflict, err error) {
	if conflict = a.conflict; conflict == nil && a.def.Singleton != "" {
		own := a.def.identity(a.message)
		holder, err := a.config.History.reserve(ctx, a.def.Name, a.message.CorrelationID, own, a.redelivered, a.edited())
		if err != nil {
			return nil, err
		}
		if !own.same(holder) {
			conflict = fmt.Errorf("%w: it is reserved for %s", errOtherWork, holder.difference(own))
		}
	}
	if conflict == nil {
		return nil, nil
	}
	// An older version did not reserve correlation ids. A run of this very message continues.
	_, err = a.ownRun(ctx)
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(err, orchestrator.ErrNotFound), errors.Is(err, orchestrator.ErrOtherWork), errors.Is(err, orchestrator.ErrCorrupt):
		return conflict, nil
	default:
		return nil, err
	}
}

// conflictOf returns the conflict with an entry of other work that succeeded.
func (a *attempt) conflictOf(e Entry) error {
	return fmt.Errorf("%w: it succeeded at %s for %s", errOtherWork, e.CreatedAtUtc.Format(time.RFC3339), e.identity().difference(a.def.identity(a.message)))
}

// difference names the property that distinguishes the holder of a correlation id from other work. It shows nothing
// of another tenant.
func (i identity) difference(other identity) string {
	switch {
	case !identity{tenant: i.tenant}.sameOwner(identity{tenant: other.tenant}):
		return "another tenant"
	case i.instance != other.instance:
		return fmt.Sprintf("the instance %.200q", i.instance)
	default:
		return fmt.Sprintf("another operation or input for the instance %.200q", i.instance)
	}
}

// errOtherWork: the message is no repeat of the one that had its correlation id before.
var errOtherWork = errors.New("the correlation id belongs to other work: send the message with a correlation id of its own")

// refuseOtherWork dead-letters a message whose correlation id belongs to other work, which continues.
func (a *attempt) refuseOtherWork(ctx context.Context, cause error) {
	if !errors.Is(cause, errOtherWork) {
		cause = fmt.Errorf("%w (%w)", errOtherWork, cause)
	}
	a.deadLetter(ctx, ReasonCorrelationConflict, cause)
}

// hasLetter reports whether a pending dead letter exists for the work of the message.
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
