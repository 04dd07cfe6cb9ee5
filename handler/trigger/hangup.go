package trigger

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// acknowledgeLimit bounds the time in which a message is deleted in the place of the host.
const acknowledgeLimit = 5 * time.Second

// limited is the context of an invocation. It ends with the budget, and when nobody waits for the answer any more: the host has hung
// up, which it does when it dies, or the program does not wait any longer. The message comes again then, but maybe only when the
// host's lease ends, so it is put back like that of a program that stops.
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

// acknowledgeFor deletes the message of an invocation that has succeeded, or was put back, when the host has hung up: nobody else does,
// and it would come again when the host's lease ends. That is what happens when it cannot be deleted, because the host has renewed
// its lease meanwhile: then it is a duplicate.
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
