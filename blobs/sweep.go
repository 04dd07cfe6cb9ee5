package blobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// parallelDeletes bounds concurrent deletions.
const parallelDeletes = 8

// Sweep examines one page of a container and deletes those of the blobs written before a time that unused returns. A
// blob that is written again meanwhile is kept. unused is not called without names. next continues after the page and
// is "" after the last one. The errors are those of the store and of unused. A missing container counts as empty.
func Sweep(ctx context.Context, store Store, container string, before time.Time, continuation string,
	unused func(ctx context.Context, names []string) ([]string, error),
) (removed int, next string, err error) {
	old, next, err := store.ListOld(ctx, container, "", before, continuation)
	if errors.Is(err, ErrNotFound) {
		return 0, "", nil
	}
	if err != nil || len(old) == 0 {
		return 0, next, err
	}
	versions, names := map[string]Version{}, make([]string, len(old))
	for i, v := range old {
		versions[v.Name], names[i] = v, v.Name
	}
	if names, err = unused(ctx, names); err != nil {
		return 0, "", fmt.Errorf("who names the blobs of %s: %w", container, err)
	}
	gone := make([]bool, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelDeletes)
	for i, name := range names {
		v, ok := versions[name]
		if !ok {
			continue // not old
		}
		group.Go(func() error {
			err := store.DeleteVersion(ctx, container, v)
			if errors.Is(err, ErrPrecondition) {
				return nil
			}
			gone[i] = err == nil
			return err
		})
	}
	err = group.Wait()
	for _, yes := range gone {
		if yes {
			removed++
		}
	}
	return removed, next, err
}
