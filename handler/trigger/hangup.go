package trigger

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// acknowledgeLimit bounds the deletion of a message in place of the host.
const acknowledgeLimit = 5 * time.Second

// limited returns the context of an invocation. It ends with the budget, and when no client waits for the answer any
// longer: the host has hung up, for example because it died, or the program no longer waits. Then the message is
// redelivered, but maybe only when the host's lease expires, so it is requeued like that of a stopping program.
func (r router) limited(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, hangUp := context.WithCancelCause(context.WithoutCancel(parent))
	unhook := context.AfterFunc(parent, func() { hangUp(fmt.Errorf("%w: %w", ErrStopping, context.Cause(parent))) })
	ctx, cancel := context.WithTimeoutCause(ctx, r.budget, ErrBudget)
	return ctx, func() {
		unhook()
		cancel()
		hangUp(nil)
	}
}

// acknowledgeFor deletes the message of an invocation that has succeeded, or was requeued, when the host has hung up:
// otherwise it would be redelivered when the host's lease expires. If it cannot be deleted, because the host has
// renewed its lease meanwhile, that happens, and it is a duplicate.
func (inv invocation) acknowledgeFor(host context.Context, log *slog.Logger, err error) {
	if host.Err() == nil || inv.acknowledge == nil || endOf(err).status != http.StatusOK {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(host), acknowledgeLimit)
	defer cancel()
	if err := inv.acknowledge(ctx); err != nil {
		log.WarnContext(ctx, "the host has hung up, and the message comes again, for nothing", "error", publicText(err))
	}
}
