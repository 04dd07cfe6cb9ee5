package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/tables"
)

// Found is an instance that Search found.
type Found struct {
	Instance
	// Err is ErrDamaged when the row is unreadable; then only the InstanceID is known.
	Err error
}

// Search reads a page of the instances that keep accepts, ordered by their escaped ids: limit of them, 1 to MaxPage,
// behind the place after, "" for the first. next is the place behind the page, "" at the end. A damaged row does not
// hide the others.
func (r *Registry) Search(ctx context.Context, keep func(Found) bool, limit int, after string) (page []Found, next string, err error) {
	if limit < 1 || limit > MaxPage {
		return nil, "", fmt.Errorf("search: a page of %d: %w: 1 to %d", limit, ErrInvalid, MaxPage)
	}
	q := tables.Query{Partition: partition, From: after}
	last := ""
	for first := true; first || q.Continuation != ""; first = false {
		rows, err := r.store.Query(ctx, r.table, q)
		if errors.Is(err, tables.ErrNotFound) {
			return nil, "", nil // the app has never run
		}
		if err != nil {
			return nil, "", fmt.Errorf("search instances: %w", err)
		}
		for _, e := range rows.Entities {
			if e.Row == after {
				continue
			}
			found := foundIn(e)
			if !keep(found) {
				continue
			}
			if len(page) == limit {
				return page, last, nil
			}
			page, last = append(page, found), e.Row
		}
		q.Continuation = rows.Next
	}
	return page, "", nil
}

func foundIn(e tables.Entity) Found {
	read, err := readRow(e)
	if err == nil {
		return Found{Instance: read.instance}
	}
	id, bad := tables.UnescapeKey(e.Row)
	if bad != nil {
		id = e.Row
	}
	return Found{Instance: Instance{InstanceID: id}, Err: err}
}
