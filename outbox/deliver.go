package outbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// settleLinger is how long a delivered message waits to be settled together with others.
	settleLinger = 50 * time.Millisecond
	// settleTimeout bounds the settlement of deliveries that ended before ctx.
	settleTimeout = 30 * time.Second
)

// deliverAll delivers a batch to one destination and settles it in parts, as the deliveries end. promoted means that
// other messages have become due.
//
// A delivery keeps its slot until it is settled. So a dead process leaves at most MaxPerDestination unsettled
// deliveries to a destination, regardless of the number of its claims.
func (d *Dispatcher) deliverAll(ctx context.Context, to *destination, batch []*claimedMessage) (result Result, promoted bool, err error) {
	b := &batchDelivery{d: d, to: to, done: make(chan *settlement, len(batch))}
	todo := make(chan *claimedMessage, len(batch))
	for _, h := range batch {
		todo <- h
	}
	close(todo)
	var wg sync.WaitGroup
	for range min(len(batch), d.o.options.MaxPerDestination) {
		wg.Go(func() {
			for h := range todo {
				s := d.deliver(ctx, b, h)
				if h.slot {
					b.inFlight.Add(-1)
				}
				b.done <- s
			}
		})
	}
	defer wg.Wait()
	return b.settleAll(ctx, len(batch))
}

// batchDelivery is the delivery of a batch to one destination.
type batchDelivery struct {
	d    *Dispatcher
	to   *destination
	done chan *settlement
	// inFlight counts the running deliveries with a slot.
	inFlight atomic.Int32

	ready    []*settlement
	result   Result
	promoted bool
	errs     []error
}

// settleAll settles n deliveries as they end. It settles ended deliveries together: once no other delivery can start,
// or when the first of them has waited for a while.
func (b *batchDelivery) settleAll(ctx context.Context, n int) (result Result, promoted bool, err error) {
	timer := time.NewTimer(settleLinger)
	defer timer.Stop()
	for n > 0 {
		select {
		case s := <-b.done:
			n--
			if b.ready = append(b.ready, s); len(b.ready) == 1 {
				timer.Reset(settleLinger)
			}
			if n == 0 || len(b.done) == 0 && b.inFlight.Load() == 0 && b.to.noFreeSlot() {
				b.flush(ctx)
			}
		case <-timer.C:
			b.flush(ctx)
		}
	}
	return b.result, b.promoted, errors.Join(b.errs...)
}

// noFreeSlot reports whether the destination has no slot for another delivery.
func (t *destination) noFreeSlot() bool {
	if t.slots.TryAcquire(1) {
		t.slots.Release(1)
		return false
	}
	return true
}

// flush settles the ended deliveries, even if ctx has ended.
func (b *batchDelivery) flush(ctx context.Context) {
	if len(b.ready) == 0 {
		return
	}
	ctx, cancel := outage.Finish(ctx, settleTimeout)
	defer cancel()
	b.errs = append(b.errs, b.d.settle(ctx, b.ready))
	b.payLetters(ctx)
	for _, s := range b.ready {
		s.count(&b.result)
		b.promoted = b.promoted || s.promoted
		if s.h.slot {
			b.to.slots.Release(1)
		}
	}
	b.ready = nil
}

// payLetters updates the dead letters of the settled messages. The next sweep does the rest.
func (b *batchDelivery) payLetters(ctx context.Context) {
	var owing []string
	for _, s := range b.ready {
		if s.h.owed != nil && !s.lost && (s.kind == kindFailed || s.kind == kindEnded) {
			owing = append(owing, s.h.ID)
		}
	}
	if len(owing) > 0 {
		_ = b.d.o.payAll(ctx, b.ready[0].h.TenantID, owing) // logged
	}
}

// deliver tries to deliver one message, if it gets a slot in time. It returns the settlement to write.
func (d *Dispatcher) deliver(ctx context.Context, b *batchDelivery, h *claimedMessage) *settlement {
	to := b.to
	if s := d.prepare(ctx, h); s != nil {
		return s
	}
	payload, err := d.o.payload(ctx, &h.message)
	switch {
	case errors.Is(err, ErrCorrupt):
		return d.failed(h, Attempt{At: d.o.now(), Node: h.as, Destination: to.name}, &DeliveryError{Permanent: true, Err: err})
	case err != nil:
		d.o.logger.WarnContext(ctx, "outbox payload not read", "eventId", h.ID, "error", err)
		return d.postponed(h, d.o.options.Delay(1, d.o.random()))
	}
	event := h.event(payload)
	if h.givenUp != "" || h.RetryCount >= d.o.options.MaxRetries {
		return d.markDead(h)
	}
	if to.slots.Acquire(ctx, 1) != nil {
		return d.postponed(h, 0)
	}
	h.slot = true
	b.inFlight.Add(1)
	if d.slots.Acquire(ctx, 1) != nil {
		return d.postponed(h, 0)
	}
	defer d.slots.Release(1)
	return d.try(ctx, to, h, event)
}

// prepare loads the parts of a message that the p- row does not hold. If it returns a settlement, no delivery is
// needed.
func (d *Dispatcher) prepare(ctx context.Context, h *claimedMessage) *settlement {
	if ctx.Err() != nil {
		return d.postponed(h, 0)
	}
	if h.owed != nil {
		m, err := d.o.pay(ctx, h.TenantID, h.ID) // its letter has to show the previous change before the next one
		if err != nil {
			return d.postponed(h, d.o.options.Delay(1, d.o.random()))
		}
		h.owed, h.DeadLetter = m.owed, m.DeadLetter
	}
	if h.hasPayload() {
		return nil
	}
	e, err := d.o.tables.Get(ctx, d.o.table, h.key())
	if errors.Is(err, tables.ErrNotFound) {
		d.o.logger.ErrorContext(ctx, "outbox message is gone: its index row is removed", "eventId", h.ID, "tenantId", h.TenantID)
		return d.messageMissing(h)
	}
	var m message
	if err == nil {
		m, err = decode(e)
	}
	if err != nil {
		d.o.logger.WarnContext(ctx, "outbox message not read", "eventId", h.ID, "error", err)
		return d.postponed(h, d.o.options.Delay(1, d.o.random()))
	}
	if m.Status != StatusPending || m.IsProcessed || !m.ProcessedAt.IsZero() {
		d.o.logSkipProcessed(ctx, &m)
		return d.alreadyProcessed(h, m)
	}
	key := h.IdempotencyKey
	h.message = m
	h.IdempotencyKey = key
	return nil
}

// try delivers a message that has a slot.
func (d *Dispatcher) try(ctx context.Context, to *destination, h *claimedMessage, event Event) *settlement {
	if err := d.o.nodes.Confirm(ctx, h.as); err != nil {
		d.o.logger.WarnContext(ctx, "outbox message not delivered: the node that claimed it may have been taken over from", "eventId", h.ID, "node", h.as, "error", err)
		return d.postponed(h, d.o.options.Delay(1, d.o.random()))
	}
	start := d.o.now()
	// A delivery must not outlive its claim, or another dispatcher would deliver concurrently.
	if start.Add(d.o.options.DeliveryTimeout).After(h.until) {
		return d.postponed(h, 0)
	}
	attempt := Attempt{At: start, Node: h.as, Destination: to.name}
	_, transport, err := d.router.Find(h.TenantID, h.EventType)
	if err != nil {
		d.observeAttempt(ctx, to.name, Unrouted, start)
		return d.failed(h, attempt, err)
	}
	if ok, until := to.circuit.begin(start); !ok {
		return d.postponed(h, until.Sub(start)+time.Duration(d.o.random()*float64(time.Second)))
	}
	err = deliverTo(noted(ctx, &attempt), transport, event, d.o.options.DeliveryTimeout)
	outcome := outcomeOf(err)
	if outcome == Misconfigured {
		to.circuit.leave()
	} else {
		to.circuit.end(d.o.now(), outcome != Failed, failureKind(err))
	}
	d.observeAttempt(ctx, to.name, outcome, start)
	attempt.TookMilliseconds = d.o.now().Sub(start).Milliseconds()
	if err != nil {
		return d.failed(h, attempt, err)
	}
	return d.succeeded(h, attempt)
}

func (d *Dispatcher) observeAttempt(ctx context.Context, destination string, outcome Outcome, start time.Time) {
	now := d.o.now()
	if outcome != Unrouted && outcome != Misconfigured { // nothing was sent
		d.o.window.attempted(now, outcome != Succeeded)
	}
	d.o.observe.Attempted(ctx, destination, outcome, now.Sub(start))
}

// deliverTo passes one event to a transport. It ends with its own timeout and not with ctx, because a started delivery
// has to be settled.
func deliverTo(ctx context.Context, t Transport, e Event, timeout time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the transport panicked: %v: %s", p, debug.Stack())
		}
	}()
	return t.Deliver(ctx, e)
}

func outcomeOf(err error) Outcome {
	var deliveryErr *DeliveryError
	switch {
	case err == nil:
		return Succeeded
	case errors.Is(err, ErrMisconfigured):
		return Misconfigured
	case errors.As(err, &deliveryErr) && deliveryErr.Permanent:
		return Refused
	}
	return Failed
}
