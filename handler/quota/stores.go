package quota

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// Tables charges the calls of s.
func Tables(s tables.Store) tables.Store { return tableStore{s} }

// Queues charges the calls of s that requests make. Only invocations receive messages.
func Queues(s queues.Store) queues.Store { return queueStore{s} }

// Blobs charges the calls of s.
func Blobs(s blobs.Store) blobs.Store { return blobStore{s} }

type tableStore struct{ tables.Store }

func (s tableStore) Get(ctx context.Context, table string, key tables.Key) (e tables.Entity, err error) {
	err = spend(ctx, func() error { e, err = s.Store.Get(ctx, table, key); return err })
	return e, err
}

func (s tableStore) Query(ctx context.Context, table string, q tables.Query) (page tables.Page, err error) {
	err = spend(ctx, func() error { page, err = s.Store.Query(ctx, table, q); return err })
	return page, err
}

func (s tableStore) Scan(ctx context.Context, table string, scan tables.Scan) (page tables.Page, err error) {
	err = spend(ctx, func() error { page, err = s.Store.Scan(ctx, table, scan); return err })
	return page, err
}

func (s tableStore) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	return spend(ctx, func() error { return s.Store.Apply(ctx, table, ops...) })
}

type queueStore struct{ queues.Store }

func (s queueStore) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (id string, err error) {
	err = spend(ctx, func() error { id, err = s.Store.Send(ctx, queue, body, delay); return err })
	return id, err
}

func (s queueStore) SendHidden(ctx context.Context, queue string, body []byte, hidden time.Duration) (m queues.Message, err error) {
	err = spend(ctx, func() error { m, err = s.Store.SendHidden(ctx, queue, body, hidden); return err })
	return m, err
}

func (s queueStore) Peek(ctx context.Context, queue string) (next queues.Message, found bool, err error) {
	err = spend(ctx, func() error { next, found, err = s.Store.Peek(ctx, queue); return err })
	return next, found, err
}

func (s queueStore) Length(ctx context.Context, queue string) (n int, err error) {
	err = spend(ctx, func() error { n, err = s.Store.Length(ctx, queue); return err })
	return n, err
}

type blobStore struct{ blobs.Store }

func (s blobStore) Put(ctx context.Context, container, name string, data []byte) error {
	return spend(ctx, func() error { return s.Store.Put(ctx, container, name, data) })
}

func (s blobStore) PutIf(ctx context.Context, container, name string, data []byte, etag string) error {
	return spend(ctx, func() error { return s.Store.PutIf(ctx, container, name, data, etag) })
}

func (s blobStore) Get(ctx context.Context, container, name string) (data []byte, err error) {
	err = spend(ctx, func() error { data, err = s.Store.Get(ctx, container, name); return err })
	return data, err
}

func (s blobStore) Delete(ctx context.Context, container, name string) error {
	return spend(ctx, func() error { return s.Store.Delete(ctx, container, name) })
}

func (s blobStore) List(ctx context.Context, container, prefix, continuation string) (names []string, next string, err error) {
	err = spend(ctx, func() error { names, next, err = s.Store.List(ctx, container, prefix, continuation); return err })
	return names, next, err
}
