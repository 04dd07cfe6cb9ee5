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

// eventsTime is how long deliveries that have begun may take when the program stops.
const eventsTime = 2 * time.Second

// outboxTimer is the function that delivers what nothing announces.
const outboxTimer = "outbox-sweep-timer"

// sweepTolerance is how much earlier than the poll interval a sweep may begin: timers do not fire to the millisecond.
const sweepTolerance = time.Second

// events is the outbox of the program, with what works on it.
type events struct {
	outbox     *outbox.Outbox
	writer     *outbox.Writer
	admin      *outbox.Admin
	dispatcher *outbox.Dispatcher
	owner      *deadevent.Owner
	transports transports
	interval   time.Duration // between sweeps
	retention  time.Duration
	gate       trigger.Gate // of what a sweep has found to do; nil for none
	log        *slog.Logger
	now        func() time.Time

	sweptAt atomic.Int64 // when the last sweep began, in nanoseconds since 1970
	// wakesLost counts the wake-ups that the host gave up on.
	wakesLost atomic.Int64
}

// eventNode is this process among those of the app, to which it says which circuits are open.
type eventNode interface {
	outbox.Nodes
	Say(text string)
}

// wireOutbox builds the outbox out of its settings. It does not go to the network.
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

// register adds the functions of the outbox to the program. putBack makes what sends a wake-up again.
func (e *events) register(out *program, putBack func(queue string) func(context.Context, engine.Delivery, time.Duration) error) {
	out.onQueue("outbox-wake-trigger", outbox.DefaultQueue, e.wake)
	out.onPoison(outbox.DefaultQueue, e.wakePoison, putBack)
	wakes := out.Queues["outbox-wake-trigger"]
	wakes.Expendable, wakes.PutBack = true, putBack(outbox.DefaultQueue) // the sweep finds what it announces, if a little later
	out.Queues["outbox-wake-trigger"] = wakes
	out.onTimer(outboxTimer, "*/15 * * * * *", e.sweep)
	out.Timers[outboxTimer] = trigger.Timer{Parameter: function.TimerParameter, Handle: e.sweep, Ungated: true} // it asks when there is something to do
	e.gate = out.Gate
}

// enter lets a sweep work behind the gate.
func (e *events) enter(ctx context.Context) (work context.Context, leave func(), err error) {
	if e.gate == nil {
		return ctx, func() {}, nil
	}
	return e.gate.Enter(ctx)
}

// close settles what was begun of the events that this process has added, for a while; what is left is claimed until others find it.
func (e *events) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, eventsTime)
	defer cancel()
	if err := e.dispatcher.Close(ctx); err != nil {
		return fmt.Errorf("deliveries of events still run after %v: %w", eventsTime, err)
	}
	return nil
}

// prepare makes what the outbox and its destinations need, where it is missing.
func (e *events) prepare(ctx context.Context) error {
	return errors.Join(e.outbox.Create(ctx), e.transports.prepare(ctx))
}

// wake delivers what is due of the tenant that a wake-up message names. One that cannot be read is dropped: the sweep
// finds what it was to announce. One whose time is over because the program stops is handed on, for what is left of its events.
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

// wakePoison drops a wake-up that the host gave up on: it has no content that could be lost, and so it is no dead letter.
func (e *events) wakePoison(ctx context.Context, d engine.Delivery) error {
	e.log.WarnContext(ctx, "outbox wake-up given up by the host: the sweep finds what it announced", "messageId", d.ID, "lost", e.wakesLost.Add(1))
	return nil
}

// sweep delivers what is due of all tenants. The timer fires more often than it has to when the poll interval is set to
// more than the timer's; then it leaves the occurrence out.
//
// There is no lock: the host fires a timer in one process only, and dispatchers share their work anyway.
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

// retain removes what was processed long enough ago, slice by slice for as long as the invocation has time. What is left
// is the next run's.
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

// sweepData deletes what went out by queues and that no receiver can want any more.
func (e *events) sweepData(ctx context.Context, before time.Time, from string) (removed int, next string, err error) {
	return e.admin.SweepData(ctx, e.transports.queues, before, from)
}

// eventID is the id of an event that an orchestrator publishes with a key.
func (e *events) eventID(tenantID, eventType, key string) string {
	return publicationKey(e.writer, tenantID, eventType, key).String()
}

// publish adds what the rounds of orchestrations published to the outbox, a transaction a tenant.
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
