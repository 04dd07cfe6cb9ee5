package outbox

import (
	"cmp"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
)

// This file converts the result of a delivery to the message's next state.

// maxConfigurationDelay bounds the interval at which a message without configuration is checked.
const maxConfigurationDelay = 5 * time.Minute

// settlement is a new state of a message that has to be written.
type settlement struct {
	// h is the message in its new state; its row is still the claimed one.
	h    *claimedMessage
	kind settlementKind
	// hadFailed means that an f- row exists.
	hadFailed bool
	// next is the new p- row of a message that stays pending.
	next string
	// promoted means that the next message of the order key has become due. lost means that another dispatcher has the
	// claim.
	promoted, lost bool
}

type settlementKind int

const (
	kindPostponed settlementKind = iota + 1 // not tried: only the p- row moves
	kindFailed                              // tried, and will be retried
	kindEnded                               // processed or dead
	kindStale                               // processed before, by a program without index rows
	kindMissing                             // its m- row does not exist
)

func newSettlement(h *claimedMessage, kind settlementKind) *settlement {
	h.settlement = nonce()
	s := &settlement{h: h, kind: kind, hadFailed: h.hasFailed()}
	h.unclaim()
	return s
}

// postponed leaves the message unchanged, due after a while.
func (d *Dispatcher) postponed(h *claimedMessage, wait time.Duration) *settlement {
	s := newSettlement(h, kindPostponed)
	h.postpone(d.o.now().Add(wait))
	s.next = pendingRow(h.NextAttemptAt, h.ID)
	return s
}

func (d *Dispatcher) messageMissing(h *claimedMessage) *settlement {
	return newSettlement(h, kindMissing)
}

// alreadyProcessed is for a message whose m- row has the status processed.
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
	d.configured(h)
	h.log(attempt)
	h.Destination = attempt.Destination
	h.Status, h.IsProcessed, h.ProcessedAt = StatusProcessed, true, d.o.now()
	h.Error, h.NextAttemptAt = "", time.Time{}
	return s
}

// failed counts a failure: the message is retried after the back-off, or becomes dead. A message without the
// configuration to send it waits.
func (d *Dispatcher) failed(h *claimedMessage, attempt Attempt, cause error) *settlement {
	hadFailed, before := h.hasFailed(), h.Error
	h.Error = clip(redact.Text(cause.Error()), d.o.options.MaxErrorTextLength)
	h.Destination = attempt.Destination
	attempt.Error = h.Error
	if errors.Is(cause, ErrMisconfigured) {
		if h.WaitsSince.IsZero() || h.Error != before {
			h.log(attempt) // each once: they are many, and the log is short
		}
		return d.unsent(h, hadFailed)
	}
	d.configured(h)
	h.RetryCount++
	var deliveryErr *DeliveryError
	if errors.As(cause, &deliveryErr) {
		attempt.Status = deliveryErr.Status
	}
	h.log(attempt)
	permanent := deliveryErr != nil && deliveryErr.Permanent
	if permanent || h.RetryCount >= d.o.options.MaxRetries {
		h.givenUp = string(reasonOf(permanent))
		s := d.markDead(h)
		s.hadFailed = hadFailed
		return s
	}
	wait := d.o.options.Delay(h.RetryCount, d.o.random())
	if deliveryErr != nil {
		wait = max(wait, min(deliveryErr.RetryAfter, d.o.options.MaxRetryDelay))
	}
	return d.retry(h, wait, hadFailed)
}

// unsent keeps a message pending that lacks the configuration to send it. After a while, it gets a dead letter, once.
func (d *Dispatcher) unsent(h *claimedMessage, hadFailed bool) *settlement {
	now := d.o.now()
	if h.WaitsSince.IsZero() {
		h.WaitsSince = now
	}
	waited := now.Sub(h.WaitsSince)
	if waited >= d.o.options.MisconfiguredAfter && h.ReportedAt.IsZero() {
		h.ReportedAt = now
		h.owe(debt{At: now})
	}
	base := time.Duration(d.o.options.BaseRetryDelaySeconds) * time.Second
	wait := min(max(base, waited), max(base, maxConfigurationDelay))
	return d.retry(h, wait/2+time.Duration(float64(wait/2)*d.o.random()), hadFailed)
}

// configured records that the message could be sent. An open dead letter about its configuration ends, and another life
// of the message starts.
func (d *Dispatcher) configured(h *claimedMessage) {
	h.WaitsSince = time.Time{}
	if h.ReportedAt.IsZero() {
		return
	}
	now := d.o.now()
	h.ReportedAt, h.RevivedAt = time.Time{}, now
	h.owe(debt{Close: ClosedConfigured, At: now})
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

// markDead marks the message as dead. An earlier open letter ends when that of its death is opened.
func (d *Dispatcher) markDead(h *claimedMessage) *settlement {
	s := newSettlement(h, kindEnded)
	h.givenUp = cmp.Or(h.givenUp, string(ReasonExhausted))
	h.Status, h.DeadAt, h.NextAttemptAt = StatusDead, d.o.now(), time.Time{}
	h.owe(debt{At: h.DeadAt})
	return s
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
