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

// program is the wired program behind the server.
type program struct {
	// Functions are the functions of the host.
	Functions []function.Function
	// Queues handle queue functions, and Timers timer functions, by function name.
	Queues map[string]trigger.Queue
	Timers map[string]trigger.Timer
	// Poison handles the messages of poison queues, which have no functions: a timer receives them.
	Poison []trigger.Queue
	// Unusable are the settings that can never work.
	Unusable []string
	// API registers the routes of HTTP functions, all below /api/.
	API func(e *echo.Echo) error
	// Preparation makes the program ready while the server listens: it creates missing tables and queues, for
	// example. It is the first to use the network: wire only builds. nil means that nothing is to be done.
	Preparation *preparation.Preparation
	// Gate admits invocations. When the program stops, it is closed; nil means no gate, so stopping waits for running
	// work.
	Gate gate
	// Observe is called with the outcome of each invocation, and Requests with each answer to an HTTP function; nil
	// are not called.
	Observe  func(ctx context.Context, o trigger.Observed)
	Requests func(ctx context.Context, method, route string, code int, took time.Duration)
	// Quota limits the storage costs of callers of HTTP functions; nil means no limit.
	Quota *quota.Quota
	// Metrics are what it counts.
	Metrics *metrics.Metrics
	// Start starts the background work; nil means none. It may be repeated.
	Start func(ctx context.Context) error
	// Leave notifies the other processes that this one is gone, when its gate is closed, and releases its claims; nil
	// means no notification.
	Leave func(ctx context.Context) error
	// Settled waits for the events that the program delivers in the background; nil means none.
	Settled func(ctx context.Context) error
	// Traces records spans; nil for none.
	Traces *tracing.Tracer
	// Close releases the resources of wire, when the server has stopped; nil means none.
	Close func()
	// Manifest describes the app.
	Manifest func() Manifest
	// Platform is the platform of its engines.
	Platform Platform
	// Runtime runs its orchestrations.
	Runtime *orchestrator.Runtime
	// Slot sends the messages of an occurrence of a schedule.
	Slot func(ctx context.Context, engine, schedule string, slot time.Time) (sent int, err error)
}

// onQueue adds a function that listens to a queue.
func (p *program) onQueue(name, queue string, handle trigger.QueueHandler) {
	p.Functions = append(p.Functions, function.Queue(name, queue))
	p.Queues[name] = trigger.Queue{Queue: queue, Parameter: function.QueueParameter, Handle: handle}
}

// onPoison sets the handler of the messages that the host has abandoned in a queue. putBack returns the function that
// requeues them.
func (p *program) onPoison(queue string, handle trigger.QueueHandler, putBack func(queue string) func(context.Context, engine.Delivery, time.Duration) error) {
	queue += engine.PoisonSuffix
	p.Poison = append(p.Poison, trigger.Queue{Queue: queue, Handle: handle, PutBack: putBack(queue)})
}

// acknowledgeIn lets queue functions delete messages themselves, when their host can no longer do so.
func (p *program) acknowledgeIn(store queues.Store) {
	for name, q := range p.Queues {
		q.Acknowledge = func(ctx context.Context, d engine.Delivery) error {
			return store.Delete(ctx, d.Queue, d.ID, d.PopReceipt)
		}
		p.Queues[name] = q
	}
}

// onTimer adds a function that runs by an NCRONTAB expression.
func (p *program) onTimer(name, schedule string, handle trigger.TimerHandler) {
	p.Functions = append(p.Functions, function.Timer(name, schedule))
	p.Timers[name] = trigger.Timer{Parameter: function.TimerParameter, Handle: handle}
}

// onHTTP adds functions that API answers.
func (p *program) onHTTP(functions ...function.Function) {
	p.Functions = append(p.Functions, functions...)
}

// begin starts the background work.
func (p program) begin(ctx context.Context) error {
	if p.Start == nil {
		return nil
	}
	return p.Start(ctx)
}
