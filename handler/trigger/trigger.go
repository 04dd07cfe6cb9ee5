// Package trigger converts the Functions host's custom-handler protocol to plain Go functions.
//
// The host starts the handler program, waits until GET / answers, and then sends every invocation of a queue or timer
// function as POST /<functionName> with a JSON body. [Mount] registers both on an echo server; the rest of the
// program sees a [QueueHandler] with an engine.Delivery or a [TimerHandler] with a [TimerDelivery]. HTTP functions
// are forwarded by the host on their own paths and do not pass through here.
//
// Promises:
//   - A handler that returns nil is answered with 200, Content-Type application/json and a JSON object that is never
//     empty. Anything else fails the invocation or, worse, leaves the host waiting until its functionTimeout, after
//     which it kills the process with everything that runs in it.
//   - A handler that returns an error, panics, or is still running at Budget plus Grace is answered with 500, and so
//     is a body that cannot be decoded. The host then keeps the message: it is redelivered, and in the end moved to
//     the poison queue. Failed work is never acknowledged.
//   - The handler's context ends at Budget, which must be well below functionTimeout.
//   - An invocation before the program is ready waits for it, within Budget. A message that has waited long enough is
//     requeued without using up an attempt, if its queue supports that; otherwise the invocation is answered with
//     503.
//
// It stores nothing and owns no storage keys.
package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
)

// Defaults of Config.
const (
	DefaultBudget        = 8 * time.Minute
	DefaultGrace         = 5 * time.Second
	DefaultMaxBody int64 = 1 << 20
)

// A QueueHandler handles one delivery of a queue message. nil acknowledges the message; an error leaves it in the
// queue, to be redelivered. ctx ends when the invocation's budget is used up, the gate closes or the host hangs up;
// its cause is ErrBudget, ErrClosed or ErrStopping.
type QueueHandler func(ctx context.Context, d engine.Delivery) error

// A TimerHandler handles one occurrence of a timer. The host does not repeat a timer that returned an error. ctx is
// as for a QueueHandler.
type TimerHandler func(ctx context.Context, d TimerDelivery) error

// Queue is a function with a queueTrigger binding.
type Queue struct {
	// Queue is the name of the function's queue, as in its function.json.
	Queue string
	// Parameter is the name of the trigger binding, under which the host sends the message.
	Parameter string
	// Handle handles a delivery.
	Handle QueueHandler
	// PutBack requeues the message of a delivery with a delay, so that the delivery uses up no attempt. It is called
	// when the program is not ready, when the gate is closed, and for a delivery that fails because the gate was
	// closed meanwhile. Without it, such a delivery fails.
	PutBack func(ctx context.Context, d engine.Delivery, away time.Duration) error
	// Acknowledge deletes the message of a delivery in place of the host. It is called when the delivery has
	// succeeded, or was requeued, and the host has hung up. Without it, the message is redelivered when the host's
	// lease expires.
	Acknowledge QueueHandler
	// Expendable means that the announced work is found without the message, too: while the app is drained, it is
	// dropped, and when the program stops, a failed requeue does not matter.
	Expendable bool
}

// Timer is a function with a timerTrigger binding.
type Timer struct {
	// Parameter is the name of the trigger binding, under which the host sends the timer's state.
	Parameter string
	// Handle handles an occurrence.
	Handle TimerHandler
	// Ungated means that the function ignores the gate: it runs while it is closed, too. It must tolerate being
	// stopped at any moment.
	Ungated bool
}

// Config configures the functions and their time limits. The zero value mounts the readiness probe only.
type Config struct {
	// Queues are the queue functions by function name, in the exact case of their folder.
	Queues map[string]Queue
	// Timers are the timer functions by function name.
	Timers map[string]Timer
	// Budget is the lifetime of a handler's context; 0 means DefaultBudget.
	Budget time.Duration
	// Grace is the time after Budget in which a handler may still return; then the host gets its answer without it. 0
	// means DefaultGrace.
	Grace time.Duration
	// Ready waits until the program can work, or ctx ends; nil means always ready. An earlier invocation waits: a
	// queue's for 30 s, so that a process that may never be ready does not hold a message for long, and a timer's,
	// which the host does not repeat, for half of Budget. Then a message is requeued, or the invocation is answered
	// with 503.
	Ready func(ctx context.Context) error
	// Gate admits invocations; nil admits all. Refused messages are requeued: for a minute while the app is drained,
	// for a second when the program stops, and immediately for work that had begun. An expendable message is dropped,
	// and a timer waits for its next occurrence.
	Gate Gate
	// MaxBody limits the body of an invocation, in bytes; 0 means DefaultMaxBody. The largest queue message is 64 KiB
	// and takes 86 KiB in base64, or up to six times its size as escaped text.
	MaxBody int64
	// Observe is called with the result of each invocation of a registered function, for counters; nil is not called.
	// It must not block.
	Observe func(ctx context.Context, o Observed)
	// Log logs one record for each invocation; nil means no log.
	Log *slog.Logger
}

// Observed is an invocation that has ended.
type Observed struct {
	Function string
	// Outcome is the outcome in the log: done, idle, put back, not ready, retry, panicked or overran.
	Outcome string
	// Direct means that no host has sent it (Direct).
	Direct bool
	Took   time.Duration
}

// Validate returns all errors of the configuration, joined into one.
func (c Config) Validate() error {
	var errs []error
	name := func(kind, function string) {
		if !engine.ValidFunctionName(function) {
			errs = append(errs, fmt.Errorf("%s function %q: the host accepts letters, digits, - and _ only, beginning with a letter", kind, function))
		}
	}
	for function, q := range c.Queues {
		name("queue", function)
		if q.Queue == "" || q.Parameter == "" || q.Handle == nil {
			errs = append(errs, fmt.Errorf("queue function %q: queue, parameter and handler are all needed", function))
		}
	}
	for function, t := range c.Timers {
		name("timer", function)
		if t.Parameter == "" || t.Handle == nil {
			errs = append(errs, fmt.Errorf("timer function %q: parameter and handler are both needed", function))
		}
		if _, twice := c.Queues[function]; twice {
			errs = append(errs, fmt.Errorf("function %q: registered as a queue and as a timer function", function))
		}
	}
	if c.Budget < 0 || c.Grace < 0 || c.MaxBody < 0 {
		errs = append(errs, errors.New("budget, grace and body limit must not be negative"))
	}
	return errors.Join(errs...)
}

// Route is the pattern of the path of all functions.
const Route = "/:function"

// Mount registers on e the readiness probe, GET /, and the functions, POST /<functionName>. An unregistered function
// is answered with 404. If c.Validate returns an error, Mount returns it and registers nothing.
func Mount(e *echo.Echo, c Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("mount the functions: %w", err)
	}
	r := c.router()
	for function, q := range c.Queues {
		r.decoders[function] = q.decode
	}
	for function, t := range c.Timers {
		r.decoders[function] = func(body []byte, invocationID string) (invocation, error) {
			return t.decode(function, body, invocationID)
		}
	}
	e.GET("/", probe)
	e.POST(Route, r.serve)
	return nil
}

// router returns the configuration with its defaults, without functions.
func (c Config) router() router {
	r := router{
		decoders: make(map[string]decoder, len(c.Queues)+len(c.Timers)),
		budget:   valueOr(c.Budget, DefaultBudget),
		grace:    valueOr(c.Grace, DefaultGrace),
		maxBody:  valueOr(c.MaxBody, DefaultMaxBody),
		ready:    c.Ready,
		gate:     c.Gate,
		observe:  c.Observe,
		log:      c.Log,
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	return r
}

// probe answers the host's readiness probe, which it repeats every 25 ms: it must not do anything.
func probe(c echo.Context) error {
	return c.JSONBlob(http.StatusOK, json.RawMessage(`{"status":"ready"}`))
}

func valueOr[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
