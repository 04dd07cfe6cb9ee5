package handler

import (
	"context"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/api/metrics"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/handler/preparation"
	"github.com/vibedata/roundhouse/handler/quota"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tracing"
)

// program is what is behind the server: what wire has built out of the settings.
type program struct {
	// Functions are the functions as the host has them.
	Functions []function.Function
	// Queues are what answers queue functions, and Timers timer functions, by function name.
	Queues map[string]trigger.Queue
	Timers map[string]trigger.Timer
	// Poison are what handles the messages of poison queues, to which no function listens: a timer takes them.
	Poison []trigger.Queue
	// API registers the routes of HTTP functions, all below /api/.
	API func(e *echo.Echo) error
	// Preparation makes the program ready while the server listens: tables and queues that are missing, for example. It is
	// the first that may go to the network: wire only builds. nil means that there is nothing to do.
	Preparation *preparation.Preparation
	// Gate lets invocations in. When the program stops, it is closed; nil means that there is none, and that stopping waits for
	// what runs.
	Gate gate
	// Observe is told how each invocation ended, and Requests of each answer to an HTTP function; nil are told nothing.
	Observe  func(ctx context.Context, o trigger.Observed)
	Requests func(ctx context.Context, method, route string, code int, took time.Duration)
	// Quota bounds what callers of HTTP functions cost storage; nil bounds nothing.
	Quota *quota.Quota
	// Metrics are what it counts.
	Metrics *metrics.Metrics
	// Start begins what the program does beside its invocations; nil means that there is nothing. It may be repeated.
	Start func(ctx context.Context) error
	// Leave tells the other processes that this one is gone, when its gate is closed, and gives up what it still holds; nil means
	// that there is nothing to tell.
	Leave func(ctx context.Context) error
	// Settled waits for the events that the program delivers beside its invocations; nil means that there are none.
	Settled func(ctx context.Context) error
	// Traces tell of requests; nil for none.
	Traces *tracing.Tracer
	// Close releases what wire has built, when the server has stopped; nil means that there is nothing to release.
	Close func()
	// Manifest describes the app.
	Manifest func() Manifest
	// Platform is what its engines are built of.
	Platform Platform
	// Runtime runs its orchestrations.
	Runtime *orchestrator.Runtime
	// Slot sends what an occurrence of a schedule sends.
	Slot func(ctx context.Context, engine, schedule string, slot time.Time) (sent int, err error)
}

// onQueue adds a function that listens to a queue.
func (p *program) onQueue(name, queue string, handle trigger.QueueHandler) {
	p.Functions = append(p.Functions, function.Queue(name, queue))
	p.Queues[name] = trigger.Queue{Queue: queue, Parameter: function.QueueParameter, Handle: handle}
}

// onPoison says what handles the messages that the host has given up of a queue. putBack makes what sends them again.
func (p *program) onPoison(queue string, handle trigger.QueueHandler, putBack func(queue string) func(context.Context, engine.Delivery, time.Duration) error) {
	queue += engine.PoisonSuffix
	p.Poison = append(p.Poison, trigger.Queue{Queue: queue, Handle: handle, PutBack: putBack(queue)})
}

// acknowledgeIn lets queue functions delete messages themselves, where their host cannot any more.
func (p *program) acknowledgeIn(store queues.Store) {
	for name, q := range p.Queues {
		q.Acknowledge = func(ctx context.Context, d engine.Delivery) error {
			return store.Delete(ctx, d.Queue, d.ID, d.PopReceipt)
		}
		p.Queues[name] = q
	}
}

// onTimer adds a function that runs when an NCRONTAB expression says so.
func (p *program) onTimer(name, schedule string, handle trigger.TimerHandler) {
	p.Functions = append(p.Functions, function.Timer(name, schedule))
	p.Timers[name] = trigger.Timer{Parameter: function.TimerParameter, Handle: handle}
}

// onHTTP adds functions that API answers.
func (p *program) onHTTP(functions ...function.Function) {
	p.Functions = append(p.Functions, functions...)
}

// begin starts what there is to start.
func (p program) begin(ctx context.Context) error {
	if p.Start == nil {
		return nil
	}
	return p.Start(ctx)
}
