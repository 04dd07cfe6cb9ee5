package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
)

// This file turns the result of a delivery into the message's next state.

// settlement is a new state of a message that has to be written.
type settlement struct {
	// h is the message in its new state; its row is still the claimed one.
	h    *claimedMessage
	kind settlementKind
	// hadFailed says that there is an f- row.
	hadFailed bool
	// next is the new p- row of a message that stays pending.
	next string
	// promoted says that the next message of the order key has become due. lost says that somebody else has the claim
	// already.
	promoted, lost bool
}

type settlementKind int

const (
	kindPostponed settlementKind = iota + 1 // not tried: only the p- row moves
	kindFailed                              // tried, and will be tried again
	kindEnded                               // processed or dead
	kindStale                               // processed before, by a program that does not know index rows
	kindMissing                             // its m- row does not exist
)

func newSettlement(h *claimedMessage, kind settlementKind) *settlement {
	h.settlement = nonce()
	s := &settlement{h: h, kind: kind, hadFailed: h.RetryCount > 0}
	h.unclaim()
	return s
}

// postponed leaves the message as it was, due after a while.
func (d *Dispatcher) postponed(h *claimedMessage, wait time.Duration) *settlement {
	s := newSettlement(h, kindPostponed)
	h.postpone(d.o.now().Add(wait))
	s.next = pendingRow(h.NextAttemptAt, h.ID)
	return s
}

func (d *Dispatcher) messageMissing(h *claimedMessage) *settlement {
	return newSettlement(h, kindMissing)
}

// alreadyProcessed is for a message whose m- row says that it was processed.
func (d *Dispatcher) alreadyProcessed(h *claimedMessage, m message) *settlement {
	s := newSettlement(h, kindStale)
	key := h.IdempotencyKey
	h.message = m
	h.IdempotencyKey = key
	h.unclaim()
	return s
}

// succeeded marks the message as processed (outbox document, "Dispatcher Behavior").
func (d *Dispatcher) succeeded(h *claimedMessage, attempt Attempt) *settlement {
	s := newSettlement(h, kindEnded)
	h.log(attempt)
	h.Destination = attempt.Destination
	h.Status, h.IsProcessed, h.ProcessedAt = StatusProcessed, true, d.o.now()
	h.Error, h.NextAttemptAt = "", time.Time{}
	return s
}

// failed counts a failure: the message is tried again after the back-off, or becomes dead.
func (d *Dispatcher) failed(ctx context.Context, h *claimedMessage, attempt Attempt, cause error) *settlement {
	event := h.event(h.Payload)
	hadFailed := h.RetryCount > 0
	h.RetryCount++
	h.Error = clip(redact.Text(cause.Error()), d.o.options.MaxErrorTextLength)
	attempt.Error = h.Error
	var deliveryErr *DeliveryError
	if errors.As(cause, &deliveryErr) {
		attempt.Status = deliveryErr.Status
	}
	h.log(attempt)
	h.Destination = attempt.Destination
	permanent := deliveryErr != nil && deliveryErr.Permanent
	if permanent || h.RetryCount >= d.o.options.MaxRetries {
		h.givenUp = string(reasonOf(permanent))
		s := d.markDead(ctx, h, event)
		s.hadFailed = hadFailed
		return s
	}
	wait := d.o.options.Delay(h.RetryCount, d.o.random())
	if deliveryErr != nil {
		wait = max(wait, min(deliveryErr.RetryAfter, d.o.options.MaxRetryDelay))
	}
	return d.retry(h, wait, hadFailed)
}

// retry keeps the message pending.
func (d *Dispatcher) retry(h *claimedMessage, wait time.Duration, hadFailed bool) *settlement {
	s := newSettlement(h, kindFailed)
	s.hadFailed = hadFailed
	h.postpone(d.o.now().Add(wait))
	s.next = pendingRow(h.NextAttemptAt, h.ID)
	h.indexRow = s.next
	return s
}

func reasonOf(permanent bool) DeadReason {
	if permanent {
		return ReasonPermanent
	}
	return ReasonExhausted
}

// markDead marks the message as dead once the Dead hook has succeeded. Until then it stays pending without being
// delivered, and the hook is called again.
func (d *Dispatcher) markDead(ctx context.Context, h *claimedMessage, event Event) *settlement {
	if h.givenUp == "" {
		h.givenUp = string(ReasonExhausted)
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.o.options.DeliveryTimeout)
	defer cancel()
	if err := d.dead(limited, d.deadEvent(limited, h, event)); err != nil {
		d.o.logger.ErrorContext(ctx, "outbox dead-letter hook failed, called again later", "id", h.ID, "tenant", h.TenantID, "error", err)
		return d.retry(h, d.o.options.Delay(h.RetryCount, d.o.random()), h.RetryCount > 0)
	}
	s := newSettlement(h, kindEnded)
	h.Status, h.DeadAt, h.NextAttemptAt = StatusDead, d.o.now(), time.Time{}
	return s
}

func (d *Dispatcher) deadEvent(ctx context.Context, h *claimedMessage, event Event) DeadEvent {
	if len(event.Payload) == 0 {
		// The error is ignored, because an unreadable payload may be why the message becomes dead.
		event.Payload, _ = d.o.payload(ctx, &h.message)
	}
	event.Attempt = h.RetryCount
	e := DeadEvent{
		Event: event, Destination: h.Destination, Reason: DeadReason(h.givenUp), Error: h.Error, RetryCount: h.RetryCount,
		FirstFailureAt: h.CreatedAt, LastFailureAt: h.CreatedAt,
	}
	if n := len(h.Attempts); n > 0 {
		e.FirstFailureAt, e.LastFailureAt = h.Attempts[0].At, h.Attempts[n-1].At
	}
	return e
}

// count adds the settlement to a result.
func (s *settlement) count(r *Result) {
	switch {
	case s.lost:
		r.Lost++
	case s.kind == kindPostponed:
		r.PutOff++
	case s.kind == kindFailed:
		r.Failed++
	case s.kind == kindStale || s.kind == kindMissing:
		r.Skipped++
	case s.h.Status == StatusDead:
		r.Dead++
	default:
		r.Delivered++
	}
}
