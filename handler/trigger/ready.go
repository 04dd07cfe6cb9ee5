package trigger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

const (
	// queuePatience is how long a message waits for the program. One that is held counts as delivered: if the process dies
	// meanwhile, that was an attempt.
	queuePatience = 30 * time.Second
	// putBackLimit bounds the time in which a message is put back.
	putBackLimit = 20 * time.Second
)

// whenReady is the work of an invocation, begun when the program is ready. What is not, for longer than the invocation's patience,
// is put back. If that is not possible either, because storage does not answer, it goes on waiting: the host could
// not put the message back, too.
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

// unanswered says whether a message could not be put back because storage does not answer.
func unanswered(err error) bool {
	return !errors.Is(err, errPutBack) && (errors.Is(err, queues.ErrThrottled) || errors.Is(err, queues.ErrOutcomeUnknown))
}

// putBackFor puts the message of an invocation back that cannot be handled for a reason, and says so. It is away for a while. Where
// that is not possible, the reason is why the invocation fails.
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

// await waits until the program is ready, or patience is over, half of the budget at most: what is left is for the work.
func (r router) await(ctx context.Context, patience time.Duration) error {
	if limit := r.budget / 2; patience == 0 || patience > limit {
		patience = limit
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return r.ready(ctx)
}
