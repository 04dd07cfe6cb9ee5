package outbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Writer returns a Writer whose messages this Dispatcher delivers itself, immediately and concurrently with the caller:
// they are stored already claimed, and no dispatcher has to be woken for them. It accepts at most as many as it would
// claim. It wakes other dispatchers for messages without room, with an open circuit or an unknown destination, or that
// wait for others of their order key. After Close it does so for all messages.
//
// Add returns before the delivery. If the process ends before the settlement, the claim expires, or the successor of
// the node releases it, and another dispatcher delivers the message.
func (d *Dispatcher) Writer() *Writer { return &Writer{o: d.o, direct: d.direct} }

// Close stops the direct deliveries, and returns when the running ones are settled, or ctx ends. It returns messages
// that had not started to other dispatchers. It may be called again.
func (d *Dispatcher) Close(ctx context.Context) error {
	d.direct.close()
	return d.Settled(ctx)
}

// Settled returns when no message of the Writer is in flight, or ctx ends.
func (d *Dispatcher) Settled(ctx context.Context) error {
	select {
	case <-d.direct.idle():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// direct delivers the messages that this process adds.
type direct struct {
	d *Dispatcher
	// work ends with Close.
	work context.Context
	end  context.CancelFunc

	mu      sync.Mutex
	running int
	ended   chan struct{} // closed when running is 0; nil without a waiter
	groups  map[groupName]*group
}

// ticket allows the direct delivery of one message, and has the claim with which it is inserted.
type ticket struct {
	x     *direct
	to    *destination
	row   string
	until time.Time
	as    string
	letGo func()
}

func newDirect(d *Dispatcher) *direct {
	work, end := context.WithCancel(context.Background())
	return &direct{d: d, work: work, end: end, groups: map[groupName]*group{}}
}

// reserve returns a ticket for a message, or nil if other dispatchers have to deliver it.
func (x *direct) reserve(m *message) *ticket {
	if x == nil {
		return nil
	}
	name, _, err := x.d.router.Find(m.TenantID, m.EventType)
	if err != nil {
		return nil
	}
	to := x.d.destination(name)
	if to.circuit.open() || !to.depth.TryAcquire(1) {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.work.Err() != nil {
		to.depth.Release(1)
		return nil
	}
	x.running++
	o := x.d.o
	until := o.now().Add(o.options.ClaimDuration)
	letGo := o.nodes.Hold("")
	return &ticket{x: x, to: to, row: pendingRow(until.Add(claimGrace), m.ID), until: until, as: o.node(), letGo: letGo}
}

// drop returns a ticket; it may be nil.
func (t *ticket) drop() {
	if t == nil {
		return
	}
	t.letGo()
	t.to.depth.Release(1)
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	t.x.running--
	if t.x.running == 0 && t.x.ended != nil {
		close(t.x.ended)
		t.x.ended = nil
	}
}

// run delivers a message that was inserted for a ticket, concurrently with the caller.
func (x *direct) run(ctx context.Context, m *message, t *ticket) {
	h := &claimedMessage{message: *m, row: t.row, until: t.until, as: t.as}
	x.d.o.observe.Claimed(1)
	ctx, cancel := x.context(ctx)
	go func() {
		defer cancel()
		b := &batchDelivery{d: x.d, to: t.to}
		x.settle(ctx, x.d.deliver(ctx, b, h), t)
	}()
}

// context returns a caller's context that also ends with Close.
func (x *direct) context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(x.work, cancel)
	return ctx, func() { stop(); cancel() }
}

func (x *direct) close() {
	x.mu.Lock() // no more tickets from here on
	defer x.mu.Unlock()
	x.end()
}

// idle returns a channel that is closed when no delivery is in flight.
func (x *direct) idle() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.running == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if x.ended == nil {
		x.ended = make(chan struct{})
	}
	return x.ended
}

// groupName names a group: deliveries to one destination, of one tenant, because a transaction is about one tenant.
type groupName struct{ tenant, destination string }

// group is a set of ended deliveries that are settled together.
type group struct {
	ready   []*settlement
	tickets []*ticket
	full    chan struct{}
}

// settle settles a delivery together with others that end at about the same time. The first of a group waits for them.
func (x *direct) settle(ctx context.Context, s *settlement, t *ticket) {
	name := groupName{s.h.TenantID, t.to.name}
	x.mu.Lock()
	g := x.groups[name]
	first := g == nil
	if first {
		g = &group{full: make(chan struct{})}
		x.groups[name] = g
	}
	g.ready, g.tickets = append(g.ready, s), append(g.tickets, t)
	if len(g.ready) == claimChunk || t.to.noFreeSlot() {
		delete(x.groups, name)
		close(g.full)
	}
	x.mu.Unlock()
	if !first {
		return
	}
	timer := time.NewTimer(settleLinger)
	defer timer.Stop()
	select {
	case <-g.full:
	case <-timer.C:
	case <-x.work.Done():
	}
	x.mu.Lock()
	if x.groups[name] == g {
		delete(x.groups, name)
	}
	x.mu.Unlock()
	x.finish(ctx, t.to, g)
}

// finish settles a group, and handles the messages that have become due.
func (x *direct) finish(ctx context.Context, to *destination, g *group) {
	b := &batchDelivery{d: x.d, to: to, ready: g.ready}
	b.flush(ctx)
	o, tenant := x.d.o, g.ready[0].h.TenantID
	if err := errors.Join(b.errs...); err != nil {
		o.logger.WarnContext(ctx, "outbox deliveries not settled: they are repeated when their claims end", "tenantId", tenant, "error", err)
	}
	due := b.promoted
	for _, s := range g.ready {
		due = due || s.kind == kindPostponed && !s.lost && !s.h.NextAttemptAt.After(o.now())
	}
	switch {
	case due && ctx.Err() != nil:
		o.wake.notify(context.WithoutCancel(ctx), tenant)
	case due:
		if _, err := x.d.Dispatch(ctx, tenant); err != nil {
			o.logger.WarnContext(ctx, "outbox not dispatched: the sweep finds what is due", "tenantId", tenant, "error", err)
		}
	}
	for _, t := range g.tickets {
		t.drop()
	}
}
