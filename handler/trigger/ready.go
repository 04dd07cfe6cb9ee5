package trigger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// queuePatience is how long a message waits for the program. One that is held counts as delivered: if the process dies
	// meanwhile, that was an attempt.
	queuePatience = 30 * time.Second
	// putBackLimit bounds the time in which a message is put back.
	putBackLimit = 20 * time.Second
)

// whenReady is the work of an invocation, begun when the program is ready.
func (r router) whenReady(inv invocation) func(context.Context) error {
	if r.ready == nil {
		return inv.run
	}
	return func(ctx context.Context) error {
		err := r.await(ctx, inv.patience)
		if err == nil {
			return inv.run(ctx)
		}
		err = fmt.Errorf("%w: %w", errNotReady, err)
		if inv.putBack == nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, putBackLimit)
		defer cancel()
		if failed := inv.putBack(ctx); failed != nil {
			return errors.Join(err, failed)
		}
		return fmt.Errorf("%w: %w", errPutBack, err)
	}
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
