package azure

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vibedata/roundhouse/queues"
)

// DeleteQueue deletes a queue with its messages. It is for tools that make their own queues, and not part of
// queues.Store.
func (a *Queues) DeleteQueue(ctx context.Context, queue string) error {
	err := cmp.Or(ctx.Err(), queues.CheckQueue(queue))
	if err == nil {
		_, err = a.service.DeleteQueue(ctx, queue, nil)
		err = classify(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("delete queue %.64s: %w", queue, err)
	}
	return nil
}
