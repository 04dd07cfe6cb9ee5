package queues

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vibedata/roundhouse/internal/account"
)

// DeleteQueue deletes a queue with its messages. It is for tools that make queues of their own, and not part of Store.
func (a *Azure) DeleteQueue(ctx context.Context, queue string) error {
	err := cmp.Or(ctx.Err(), account.CheckName("queue", queue))
	if err == nil {
		_, err = a.service.DeleteQueue(ctx, queue, nil)
		err = account.Classify(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("delete queue %.64s: %w", queue, err)
	}
	return nil
}
