package enginetest

import (
	"context"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/queues"
)

const (
	// Visibility is the delay before a refused message is redelivered, as in the host.json of new modules.
	Visibility = 30 * time.Second
	// hold is the time for which the host hides a message in delivery; it renews it while the process handles it.
	hold = 10 * time.Minute
	// patience is the time for which the host pauses without due messages, for messages that others send meanwhile.
	patience = 5 * time.Minute
	// maxDeliveries bounds Run.
	maxDeliveries = 10_000
)

// Deliver delivers the due messages, and those that they cause, until none is due. It returns the number of
// deliveries.
func (w *World) Deliver() (deliveries int) {
	w.t.Helper()
	for w.round(w.Process, &deliveries) {
	}
	return deliveries
}

// Run delivers messages until none is left; while none is due, it advances the time. It returns the number of
// deliveries. A test that waits has to be in a bubble of synctest.
func (w *World) Run() (deliveries int) {
	w.t.Helper()
	return w.run(w.Process)
}

// Run is World.Run for one of several processes that share the work. If it crashes, another one replaces it.
func (p *Process) Run() (deliveries int) {
	p.world.t.Helper()
	return p.world.run(func() *Process {
		if p.plan.Crashed() {
			plan := &Plan{}
			p = p.world.start(plan, plan.Intercept)
		}
		return p
	})
}

// Pass advances the time, and delivers the messages that become due. It returns the number of deliveries.
func (w *World) Pass(d time.Duration) (deliveries int) {
	w.t.Helper()
	for end := time.Now().Add(d); ; {
		for w.round(w.Process, &deliveries) {
		}
		left := time.Until(end)
		if left <= 0 {
			return deliveries
		}
		next, _ := w.next()
		time.Sleep(min(left, next))
	}
}

func (w *World) run(next func() *Process) (deliveries int) {
	w.t.Helper()
	for {
		for w.round(next, &deliveries) {
		}
		wait, found := w.next()
		if !found {
			if next().plan.Wait(); !w.left() { // for calls that storage carries out late
				return deliveries
			}
			continue
		}
		time.Sleep(wait)
	}
}

// round delivers at most one message of each queue, and reports whether any was due.
func (w *World) round(next func() *Process, deliveries *int) (any bool) {
	w.t.Helper()
	limit := w.Config.MaxDeliveries
	if limit == 0 {
		limit = maxDeliveries
	}
	for at := range next().queues {
		p := next()
		q := p.queues[at]
		messages, err := w.Queues.Receive(w.t.Context(), q.name, 1, hold)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, m := range messages {
			any = true
			if *deliveries++; *deliveries > limit {
				w.t.Fatalf("after %d deliveries there are still messages, the last in %s: %s", limit, q.name, m.Text)
			}
			w.deliver(q, m)
		}
	}
	return any
}

// deliver delivers one message as the host does: it renews the message while the process handles it, and then deletes
// it, or makes it visible again.
func (w *World) deliver(q queue, m queues.Message) {
	w.t.Helper()
	var mu sync.Mutex
	var timer *time.Timer
	renew := func() {
		mu.Lock()
		defer mu.Unlock()
		if receipt, err := w.Queues.Renew(w.t.Context(), q.name, m.ID, m.PopReceipt, hold); err == nil {
			m.PopReceipt = receipt
			timer.Reset(hold / 2)
		}
	}
	mu.Lock()
	timer = time.AfterFunc(hold/2, renew)
	mu.Unlock()
	handled := q.handle(w.t.Context(), Delivery(q.name, m))
	if handled != nil && w.Config.Log != nil {
		w.Config.Log.Warn("A message is delivered again.", "queue", q.name, "error", handled)
	}
	mu.Lock()
	defer mu.Unlock()
	timer.Stop()
	err := error(nil)
	switch {
	case handled != nil && m.DequeueCount >= HostMaxDequeueCount && q.poison != "":
		w.Send(q.poison, string(queues.Decode(m.Text)))
		err = w.Queues.Delete(w.t.Context(), q.name, m.ID, m.PopReceipt)
	case handled != nil:
		_, err = w.Queues.Renew(w.t.Context(), q.name, m.ID, m.PopReceipt, Visibility)
	default:
		err = w.Queues.Delete(w.t.Context(), q.name, m.ID, m.PopReceipt)
	}
	if err != nil {
		w.t.Errorf("settle a message of %s: %v", q.name, err)
	}
}

// Delivery converts a received message to the host's delivery.
func Delivery(queue string, m queues.Message) engine.Delivery {
	return engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount),
		InsertedAt: m.InsertedAt}
}

// DeliverTo delivers one due message of a queue to handle, and reports whether a message was due.
func (w *World) DeliverTo(name string, handle func(context.Context, engine.Delivery) error) bool {
	w.t.Helper()
	messages, err := w.Queues.Receive(w.t.Context(), name, 1, hold)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range messages {
		w.deliver(queue{name: name, handle: handle}, m)
	}
	return len(messages) > 0
}

// Take removes the only due message of a queue, and returns it as the host would deliver it.
func (w *World) Take(queue string) engine.Delivery {
	w.t.Helper()
	messages, err := w.Queues.Receive(w.t.Context(), queue, 2, hold)
	if err != nil || len(messages) != 1 {
		w.t.Fatalf("%d messages are due in %s, want one; %v", len(messages), queue, err)
	}
	if err := w.Queues.Delete(w.t.Context(), queue, messages[0].ID, messages[0].PopReceipt); err != nil {
		w.t.Fatal(err)
	}
	return Delivery(queue, messages[0])
}

// next returns the time until the next delivery, and whether a message is left.
func (w *World) next() (wait time.Duration, found bool) {
	w.t.Helper()
	wait = patience
	for _, q := range w.Process().queues {
		at, ok, err := w.Queues.NextVisible(w.t.Context(), q.name)
		if err != nil {
			w.t.Fatal(err)
		}
		if ok {
			found, wait = true, min(wait, time.Until(at))
		}
	}
	return max(wait, 0), found
}

// left reports whether a message is left.
func (w *World) left() bool {
	w.t.Helper()
	_, found := w.next()
	return found
}
