package enginetest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// Outbox is an outbox with one receiver of all events, for engines that check the arrival of events. Its Publish fits
// Config.Publish.
type Outbox struct {
	// Down makes the receiver refuse events, permanently with Permanent.
	Down, Permanent bool

	t     testing.TB
	store tables.Store
	queue *queues.Memory
	blobs *blobs.Memory
	now   func() time.Time
}

// NewOutbox creates an outbox in storage. Now is its clock; nil is time.Now.
func NewOutbox(t testing.TB, store tables.Store, now func() time.Time) *Outbox {
	t.Helper()
	if now == nil {
		now = time.Now
	}
	o := &Outbox{t: t, store: store, queue: queues.NewMemory(), blobs: blobs.NewMemory(), now: now}
	if err := o.Over(store).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

// Over returns the outbox of a process that reaches storage through another store, such as one with faults.
func (o *Outbox) Over(store tables.Store) *outbox.Outbox {
	o.t.Helper()
	over, err := outbox.New(outbox.Config{Tables: store, Queues: o.queue, Blobs: o.blobs, Now: o.now,
		Options: outbox.DefaultOptions(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		o.t.Fatal(err)
	}
	return over
}

// Admin returns the operators' interface to the outbox.
func (o *Outbox) Admin() *outbox.Admin { return outbox.NewAdmin(o.Over(o.store)) }

// Deliver is the receiver. It implements outbox.Destination.
func (o *Outbox) Deliver(context.Context, outbox.Event) error {
	switch {
	case o.Down && o.Permanent:
		return &outbox.DeliveryError{Permanent: true, Err: errors.New("the receiver is down")}
	case o.Down:
		return errors.New("the receiver is down")
	}
	return nil
}

// Sweep delivers the due events.
func (o *Outbox) Sweep() {
	o.t.Helper()
	routes := []outbox.Route{{EventType: "*", Destination: "receiver"}}
	router, routerErr := outbox.NewRouter(routes, outbox.Destinations{"receiver": o})
	dispatcher, err := outbox.NewDispatcher(o.Over(o.store), outbox.DispatcherConfig{Router: router})
	if err := errors.Join(routerErr, err); err != nil {
		o.t.Fatal(err)
	}
	// The test may have started outside of the current bubble, whose code cannot wait for the test's context.
	if _, err := dispatcher.Sweep(context.WithoutCancel(o.t.Context())); err != nil {
		o.t.Fatal(err)
	}
}

// Recover delivers missed events to the receiver, as an operator does who retries dead events.
func (o *Outbox) Recover() {
	o.t.Helper()
	o.Down = false
	for _, e := range o.Events() {
		if e.Status == outbox.StatusProcessed {
			continue
		}
		if err := o.Admin().Retry(o.t.Context(), e.TenantID, e.ID, ""); err != nil {
			o.t.Fatal(err)
		}
	}
	o.Sweep()
}

// Publish adds events and delivers them, as an app does.
func (o *Outbox) Publish(ctx context.Context, events []orchestrator.Publication) error {
	writer := outbox.NewWriter(o.Over(o.store))
	for _, e := range events {
		_, err := writer.Add(ctx, outbox.Message{TenantID: e.TenantID, EventType: e.Type, OrderKey: e.OrderKey,
			Payload: e.Payload, Key: writer.Key(e.TenantID, "orchestration", e.Key, e.Type, "")})
		if err != nil {
			return err
		}
	}
	o.Sweep()
	return nil
}

// Events returns the events in the outbox, oldest first.
func (o *Outbox) Events() []outbox.Record {
	o.t.Helper()
	admin := o.Admin()
	page, err := admin.List(o.t.Context(), outbox.Filter{})
	if err != nil || page.Continuation != "" {
		o.t.Fatalf("list events: %v (more %q)", err, page.Continuation)
	}
	slices.SortStableFunc(page.Records, func(a, b outbox.Record) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for i, r := range page.Records {
		if page.Records[i], err = admin.Get(o.t.Context(), r.TenantID, r.ID); err != nil {
			o.t.Fatal(err)
		}
	}
	return page.Records
}
