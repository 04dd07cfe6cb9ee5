package trigger

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
)

// Direct runs deliveries of the process's own messages like those of a host: with the same budget, the same wait for
// a ready program, the same gate, and the same log record, marked direct.
type Direct struct{ router router }

// NewDirect uses the common fields of a Config; Queues and Timers are ignored.
func NewDirect(c Config) *Direct { return &Direct{c.router()} }

// Run handles a delivery of a queue function. nil means that a host would delete the message: the work is done, or
// the message was requeued. The end of ctx means that the program stops.
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
