// Package faults puts an interceptor around the storage seams, so that tests can count what a scenario does to storage
// and break it at every single call: before it, after it, or with an answer that does not tell.
package faults

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// Call is one call of a storage seam.
type Call struct {
	// Service is "tables", "queues" or "blobs"; Operation the method; Target the table, queue or container.
	Service   string
	Operation string
	Target    string
}

// Interceptor decides what becomes of a call: next carries it out.
type Interceptor func(c Call, next func() error) error

// Tables puts i around s.
func Tables(s tables.Store, i Interceptor) tables.Store { return tableStore{s, i} }

// Queues puts i around s.
func Queues(s queues.Store, i Interceptor) queues.Store { return queueStore{s, i} }

// Blobs puts i around s.
func Blobs(s blobs.Store, i Interceptor) blobs.Store { return blobStore{s, i} }

type tableStore struct {
	inner     tables.Store
	intercept Interceptor
}

func (s tableStore) CreateTable(ctx context.Context, table string) error {
	return s.intercept(Call{"tables", "CreateTable", table}, func() error { return s.inner.CreateTable(ctx, table) })
}

func (s tableStore) Get(ctx context.Context, table string, key tables.Key) (e tables.Entity, err error) {
	return value(s.intercept, Call{"tables", "Get", table}, func() (tables.Entity, error) { return s.inner.Get(ctx, table, key) })
}

func (s tableStore) Query(ctx context.Context, table string, q tables.Query) (tables.Page, error) {
	return value(s.intercept, Call{"tables", "Query", table}, func() (tables.Page, error) { return s.inner.Query(ctx, table, q) })
}

func (s tableStore) Scan(ctx context.Context, table string, scan tables.Scan) (tables.Page, error) {
	return value(s.intercept, Call{"tables", "Scan", table}, func() (tables.Page, error) { return s.inner.Scan(ctx, table, scan) })
}

func (s tableStore) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	return s.intercept(Call{"tables", "Apply", table}, func() error { return s.inner.Apply(ctx, table, ops...) })
}

type queueStore struct {
	inner     queues.Store
	intercept Interceptor
}

func (s queueStore) CreateQueue(ctx context.Context, queue string) error {
	return s.intercept(Call{"queues", "CreateQueue", queue}, func() error { return s.inner.CreateQueue(ctx, queue) })
}

func (s queueStore) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	return value(s.intercept, Call{"queues", "Send", queue}, func() (string, error) { return s.inner.Send(ctx, queue, body, delay) })
}

func (s queueStore) Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]queues.Message, error) {
	return value(s.intercept, Call{"queues", "Receive", queue}, func() ([]queues.Message, error) {
		return s.inner.Receive(ctx, queue, limit, visibility)
	})
}

func (s queueStore) Renew(ctx context.Context, queue, id, popReceipt string, visibility time.Duration) (string, error) {
	return value(s.intercept, Call{"queues", "Renew", queue}, func() (string, error) {
		return s.inner.Renew(ctx, queue, id, popReceipt, visibility)
	})
}

func (s queueStore) Delete(ctx context.Context, queue, id, popReceipt string) error {
	return s.intercept(Call{"queues", "Delete", queue}, func() error { return s.inner.Delete(ctx, queue, id, popReceipt) })
}

func (s queueStore) Length(ctx context.Context, queue string) (int, error) {
	return value(s.intercept, Call{"queues", "Length", queue}, func() (int, error) { return s.inner.Length(ctx, queue) })
}

type blobStore struct {
	inner     blobs.Store
	intercept Interceptor
}

func (s blobStore) CreateContainer(ctx context.Context, container string) error {
	return s.intercept(Call{"blobs", "CreateContainer", container}, func() error { return s.inner.CreateContainer(ctx, container) })
}

func (s blobStore) Put(ctx context.Context, container, name string, data []byte) error {
	return s.intercept(Call{"blobs", "Put", container}, func() error { return s.inner.Put(ctx, container, name, data) })
}

func (s blobStore) Get(ctx context.Context, container, name string) ([]byte, error) {
	return value(s.intercept, Call{"blobs", "Get", container}, func() ([]byte, error) { return s.inner.Get(ctx, container, name) })
}

func (s blobStore) Delete(ctx context.Context, container, name string) error {
	return s.intercept(Call{"blobs", "Delete", container}, func() error { return s.inner.Delete(ctx, container, name) })
}

// value carries the result of a call past an Interceptor. A call that is made to fail gives no result.
func value[T any](i Interceptor, c Call, do func() (T, error)) (T, error) {
	var out T
	err := i(c, func() (err error) {
		out, err = do()
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return out, nil
}
