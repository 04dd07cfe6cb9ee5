package trigger

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
)

// Direct runs deliveries that no host has sent, because the process has put their messages into a queue itself, as if a host had:
// with the same budget, the same wait until the program is ready, the same gate, and the same record in the log, which says direct.
type Direct struct{ router router }

// NewDirect takes from a Config what is said about all functions; Queues and Timers are not looked at.
func NewDirect(c Config) *Direct { return &Direct{c.router()} }

// Run works on a delivery of a queue function. nil says that a host would delete the message: the work is done, or the message was
// put back. The end of ctx is that of a program that stops.
func (d *Direct) Run(ctx context.Context, function string, q Queue, v engine.Delivery) error {
	began, r := time.Now(), d.router
	id := uuid.NewString()
	log := r.log.With("invocationId", id, "function", function, "direct", true)
	inv := q.invocation(v)
	inv.run = r.gated(inv)
	err := r.run(inv.about.begin(ctx, slog.String("invocationId", id), slog.String("function", function)), log, r.whenReady(inv))
	r.tell(ctx, Observed{Function: function, Outcome: endOf(err).outcome, Direct: true, Took: time.Since(began)})
	if report(log, inv.describe(began), err).status != http.StatusOK {
		return err
	}
	return nil
}
