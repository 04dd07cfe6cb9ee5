package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/deadevent"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tracing"
)

// eventsTime bounds the deliveries in progress when the program stops.
const eventsTime = 2 * time.Second

// outboxTimer is the function that delivers unannounced events.
const outboxTimer = "outbox-sweep-timer"

// sweepTolerance is how much earlier than the poll interval a sweep may begin: timers do not fire to the millisecond.
const sweepTolerance = time.Second

// events is the outbox of the program, with its workers.
type events struct {
	outbox     *outbox.Outbox
	writer     *outbox.Writer
	admin      *outbox.Admin
	dispatcher *outbox.Dispatcher
	owner      *deadevent.Owner
	transports transports
	interval   time.Duration // between sweeps
	retention  time.Duration
	gate       trigger.Gate // for the work that a sweep has found; nil for none
	log        *slog.Logger
	now        func() time.Time

	sweptAt atomic.Int64 // when the last sweep began, in nanoseconds since 1970
	// wakesLost counts the wake-ups that the host abandoned.
	wakesLost atomic.Int64
}

// eventNode is this process among those of the app, to which it reports open circuits.
type eventNode interface {
	outbox.Nodes
	Say(text string)
}

// wireOutbox builds the outbox from its settings. It does not use the network.
func wireOutbox(s settings.Settings, with Platform, node eventNode, letters *engine.DeadLetters, observer outbox.Observer, tracer *tracing.Tracer, log *slog.Logger) (*events, error) {
	o, err := outbox.New(outbox.Config{Tables: with.Tables, Queues: with.Queues, Blobs: with.Blobs, Options: s.Outbox.Options, Nodes: node, Letters: deadevent.NewLetters(letters), Observer: observer, Logger: log})
	if err != nil {
		return nil, err
	}
	to, err := openTransports(s.Outbox, with, log)
	if err != nil {
		return nil, err
	}
	to.traced(tracer)
	router, err := outbox.NewRouter(s.Outbox.Routes, to.destinations)
	if err != nil {
		return nil, err
	}
	admin := outbox.NewAdmin(o)
	e := &events{outbox: o, admin: admin, owner: deadevent.NewOwner(letters, admin), transports: to, log: log, now: time.Now,
		interval: time.Duration(o.Options().PollIntervalSeconds) * time.Second, retention: s.Outbox.Retention}
	config := outbox.DispatcherConfig{Router: router, Enter: e.enter}
	if node != nil {
		config.Circuits = func(open []outbox.OpenCircuit) { node.Say(outbox.EncodeCircuits(open)) }
	}
	if e.dispatcher, err = outbox.NewDispatcher(o, config); err != nil {
		return nil, err
	}
	e.writer = e.dispatcher.Writer()
	return e, nil
}

// register adds the functions of the outbox to the program. putBack returns the function that requeues a wake-up.
func (e *events) register(out *program, putBack func(queue string) func(context.Context, engine.Delivery, time.Duration) error) {
	out.onQueue("outbox-wake-trigger", outbox.DefaultQueue, e.wake)
	out.onPoison(outbox.DefaultQueue, e.wakePoison, putBack)
	wakes := out.Queues["outbox-wake-trigger"]
	wakes.Expendable, wakes.PutBack = true, putBack(outbox.DefaultQueue) // the sweep finds the announced event, a little later
	out.Queues["outbox-wake-trigger"] = wakes
	out.onTimer(outboxTimer, "*/15 * * * * *", e.sweep)
	out.Timers[outboxTimer] = trigger.Timer{Parameter: function.TimerParameter, Handle: e.sweep, Ungated: true} // it enters the gate when it has work
	e.gate = out.Gate
}

// enter lets a sweep work behind the gate.
func (e *events) enter(ctx context.Context) (work context.Context, leave func(), err error) {
	if e.gate == nil {
		return ctx, func() {}, nil
	}
	return e.gate.Enter(ctx)
}

// close waits for a while until the events that this process has begun to deliver are settled; the rest stays claimed
// until others find it.
func (e *events) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, eventsTime)
	defer cancel()
	if err := e.dispatcher.Close(ctx); err != nil {
		return fmt.Errorf("deliveries of events still run after %v: %w", eventsTime, err)
	}
	return nil
}

// prepare creates the missing storage of the outbox and its destinations.
func (e *events) prepare(ctx context.Context) error {
	return errors.Join(e.outbox.Create(ctx), e.transports.prepare(ctx))
}

// wake delivers the due events of the tenant in a wake-up message. An unreadable message is dropped: the sweep finds
// its events. If the program stops meanwhile, the wake-up is passed on for the remaining events.
func (e *events) wake(ctx context.Context, d engine.Delivery) error {
	w, err := outbox.DecodeWake(string(d.Body))
	if err != nil {
		e.log.WarnContext(ctx, "outbox wake-up dropped", "messageId", d.ID, "bytes", len(d.Body), "error", err.Error())
		return nil
	}
	if _, err = e.dispatcher.Dispatch(ctx, w.Tenant); err == nil && errors.Is(context.Cause(ctx), trigger.ErrStopping) {
		return trigger.ErrStopping
	}
	return err
}

// wakePoison drops a wake-up that the host abandoned: it has no content to lose, and so it is no dead letter.
func (e *events) wakePoison(ctx context.Context, d engine.Delivery) error {
	e.log.WarnContext(ctx, "outbox wake-up given up by the host: the sweep finds what it announced", "messageId", d.ID, "lost", e.wakesLost.Add(1))
	return nil
}

// sweep delivers the due events of all tenants. The timer may fire more often than the poll interval; then it skips
// the occurrence.
//
// It needs no lock: the host fires a timer in one process only, and dispatchers share their work anyway.
func (e *events) sweep(ctx context.Context, _ trigger.TimerDelivery) error {
	now, last := e.now(), e.sweptAt.Load()
	if now.Sub(time.Unix(0, last)) < e.interval-sweepTolerance || !e.sweptAt.CompareAndSwap(last, now.UnixNano()) {
		return trigger.ErrIdle
	}
	did, err := e.dispatcher.Sweep(ctx)
	if errors.Is(err, engine.ErrDrained) {
		return fmt.Errorf("%w: %w", trigger.ErrIdle, err)
	}
	if err != nil {
		return fmt.Errorf("sweep the outbox: %w", err)
	}
	if did == (outbox.Result{}) {
		return trigger.ErrIdle
	}
	return nil
}

// retain removes old processed events, slice by slice for as long as the invocation has time. The next run removes
// the rest.
func (e *events) retain(ctx context.Context, _ trigger.TimerDelivery) error {
	before := e.now().Add(-e.retention)
	removed := 0
	for more := true; more && ctx.Err() == nil; {
		var n int
		var err error
		n, more, err = e.admin.Retention(ctx, before, outbox.MaxLimit)
		removed += n
		if err != nil {
			return fmt.Errorf("remove processed events, after %d: %w", removed, err)
		}
	}
	e.log.Log(ctx, levelFor(removed > 0), "outbox retention", "removed", removed, "before", before)
	return nil
}

// sweepData deletes the data of queue destinations that no receiver can need any longer.
func (e *events) sweepData(ctx context.Context, before time.Time, from string) (removed int, next string, err error) {
	return e.admin.SweepData(ctx, e.transports.queues, before, from)
}

// eventID returns the id of an event that an orchestrator publishes with a key.
func (e *events) eventID(tenantID, eventType, key string) string {
	return publicationKey(e.writer, tenantID, eventType, key).String()
}

// publish adds the publications of orchestrations to the outbox, one transaction for each tenant.
func (e *events) publish(ctx context.Context, all []orchestrator.Publication) error {
	byTenant := map[string][]outbox.Message{}
	for _, p := range all {
		byTenant[p.TenantID] = append(byTenant[p.TenantID], outbox.Message{TenantID: p.TenantID, EventType: p.Type, Payload: p.Payload,
			OrderKey: p.OrderKey, CorrelationID: p.CorrelationID, TraceParent: p.Trace, Key: publicationKey(e.writer, p.TenantID, p.Type, p.Key)})
	}
	var errs []error
	for tenant, messages := range byTenant {
		_, err := e.writer.AddMany(ctx, tenant, messages)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
