package trigger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

const (
	// queuePatience is the time that a message waits for the program. A waiting message counts as delivered: if the
	// process dies meanwhile, that was an attempt.
	queuePatience = 30 * time.Second
	// putBackLimit bounds the requeue of a message.
	putBackLimit = 20 * time.Second
)

// whenReady returns the work of an invocation, which begins when the program is ready. After the invocation's
// patience, the message is requeued. If that is impossible, too, because storage does not answer, it continues to
// wait: the host could not requeue the message either.
func (r router) whenReady(inv invocation) func(context.Context) error {
	if r.ready == nil {
		return inv.run
	}
	return func(ctx context.Context) error {
		for {
			err := r.await(ctx, inv.patience)
			if err == nil {
				return inv.run(ctx)
			}
			away := awayFor
			if errors.Is(err, ErrStopping) {
				away = 0
			}
			err = inv.putBackFor(ctx, fmt.Errorf("%w: %w", errNotReady, err), away)
			if away == 0 || inv.patience == 0 || !unanswered(err) || ctx.Err() != nil {
				return err
			}
		}
	}
}

// unanswered reports whether a requeue failed because storage does not answer.
func unanswered(err error) bool {
	return !errors.Is(err, errPutBack) && (errors.Is(err, queues.ErrThrottled) || errors.Is(err, queues.ErrOutcomeUnknown))
}

// putBackFor requeues the message of an invocation that cannot be handled for a reason, with a delay, and reports
// that. If the requeue fails, the invocation fails with the reason.
func (inv invocation) putBackFor(ctx context.Context, reason error, away time.Duration) error {
	if inv.putBack == nil {
		return reason
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackLimit)
	defer cancel()
	if err := inv.putBack(ctx, away); err != nil {
		return errors.Join(reason, err)
	}
	return fmt.Errorf("%w: %w", errPutBack, reason)
}

// await waits until the program is ready, or patience is over, at most half of the budget: the rest is for the work.
func (r router) await(ctx context.Context, patience time.Duration) error {
	if limit := r.budget / 2; patience == 0 || patience > limit {
		patience = limit
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return r.ready(ctx)
}
