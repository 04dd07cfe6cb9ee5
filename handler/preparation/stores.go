package preparation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// notFound reports whether a call has failed because the table, queue or container is missing.
func notFound(err error) bool { return errors.Is(err, tables.ErrNotFound) }

func never(error) bool { return false }

// Tables wraps s. Queries, and writes that insert, detect a missing table; a missing row is not that.
func (k *Keeper) Tables(s tables.Store) tables.Store { return tableStore{s, k} }

type tableStore struct {
	tables.Store
	keeper *Keeper
}

// CreateTable creates a table, or records it in a plan.
func (s tableStore) CreateTable(ctx context.Context, name string) error {
	return s.keeper.create(ctx, table(name), func(ctx context.Context) error { return s.Store.CreateTable(ctx, name) })
}

// Get reads one entity.
func (s tableStore) Get(ctx context.Context, name string, key tables.Key) (e tables.Entity, err error) {
	err = s.keeper.kept(ctx, table(name), never, func(ctx context.Context) error { e, err = s.Store.Get(ctx, name, key); return err })
	return e, err
}

// Query reads one page.
func (s tableStore) Query(ctx context.Context, name string, q tables.Query) (page tables.Page, err error) {
	err = s.keeper.kept(ctx, table(name), notFound, func(ctx context.Context) error { page, err = s.Store.Query(ctx, name, q); return err })
	return page, err
}

// Scan reads one page over many partitions.
func (s tableStore) Scan(ctx context.Context, name string, scan tables.Scan) (page tables.Page, err error) {
	err = s.keeper.kept(ctx, table(name), notFound, func(ctx context.Context) error { page, err = s.Store.Scan(ctx, name, scan); return err })
	return page, err
}

// Apply writes.
func (s tableStore) Apply(ctx context.Context, name string, ops ...tables.Op) error {
	missing := notFound
	if slices.ContainsFunc(ops, func(op tables.Op) bool { return op.Kind == tables.OpReplace || op.Kind == tables.OpDelete }) {
		missing = never // a row may be missing instead
	}
	return s.keeper.kept(ctx, table(name), missing, func(ctx context.Context) error { return s.Store.Apply(ctx, name, ops...) })
}

// Queues wraps s: senders detect a missing queue.
func (k *Keeper) Queues(s queues.Store) queues.Store { return queueStore{s, k} }

type queueStore struct {
	queues.Store
	keeper *Keeper
}

// CreateQueue creates a queue, or records it in a plan.
func (s queueStore) CreateQueue(ctx context.Context, name string) error {
	return s.keeper.create(ctx, queue(name), func(ctx context.Context) error { return s.Store.CreateQueue(ctx, name) })
}

// Send sends a message.
func (s queueStore) Send(ctx context.Context, name string, body []byte, delay time.Duration) (id string, err error) {
	err = s.keeper.kept(ctx, queue(name), notFound, func(ctx context.Context) error { id, err = s.Store.Send(ctx, name, body, delay); return err })
	return id, err
}

// SendHidden sends a message that its sender keeps hidden.
func (s queueStore) SendHidden(ctx context.Context, name string, body []byte, hidden time.Duration) (sent queues.Message, err error) {
	err = s.keeper.kept(ctx, queue(name), notFound, func(ctx context.Context) error {
		sent, err = s.Store.SendHidden(ctx, name, body, hidden)
		return err
	})
	return sent, err
}

// Blobs wraps s: writers of blobs detect a missing container.
func (k *Keeper) Blobs(s blobs.Store) blobs.Store { return blobStore{s, k} }

type blobStore struct {
	blobs.Store
	keeper *Keeper
}

// CreateContainer creates a container, or records it in a plan.
func (s blobStore) CreateContainer(ctx context.Context, name string) error {
	return s.keeper.create(ctx, container(name), func(ctx context.Context) error { return s.Store.CreateContainer(ctx, name) })
}

// Put writes a blob.
func (s blobStore) Put(ctx context.Context, name, blob string, data []byte) error {
	return s.keeper.kept(ctx, container(name), notFound, func(ctx context.Context) error { return s.Store.Put(ctx, name, blob, data) })
}

// PutIf writes a blob if it still has an ETag.
func (s blobStore) PutIf(ctx context.Context, name, blob string, data []byte, etag string) error {
	missing := notFound
	if etag != "" {
		missing = never
	}
	return s.keeper.kept(ctx, container(name), missing, func(ctx context.Context) error { return s.Store.PutIf(ctx, name, blob, data, etag) })
}
