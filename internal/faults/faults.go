// Package faults wraps the stores with an interceptor, so that tests can count the storage calls of a scenario and
// break each of them: before it, after it, with an unknown outcome, with a refusal, or late.
package faults

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// Call is one call of a store.
type Call struct {
	// Service is "tables", "queues" or "blobs"; Operation the method; Target the table, queue or container.
	Service   string
	Operation string
	Target    string
}

// Interceptor decides the outcome of a call: next carries it out, in ctx or in another context. It may be carried out
// after the caller has its answer. The operations of an Apply are copied for that; other arguments of a call must not
// be changed afterwards.
//
// An answer of tables.ErrExists or tables.ErrPrecondition to Apply, not wrapped, blames the first operation that can
// have this answer; without one, the caller gets tables.ErrThrottled.
type Interceptor func(ctx context.Context, c Call, next func(context.Context) error) error

// Tables wraps s with i.
func Tables(s tables.Store, i Interceptor) tables.Store { return tableStore{s, i} }

// Queues wraps s with i.
func Queues(s queues.Store, i Interceptor) queues.Store { return queueStore{s, i} }

// Blobs wraps s with i.
func Blobs(s blobs.Store, i Interceptor) blobs.Store { return blobStore{s, i} }

type tableStore struct {
	inner     tables.Store
	intercept Interceptor
}

func (s tableStore) CreateTable(ctx context.Context, table string) error {
	return s.intercept(ctx, Call{"tables", "CreateTable", table}, func(ctx context.Context) error { return s.inner.CreateTable(ctx, table) })
}

func (s tableStore) Get(ctx context.Context, table string, key tables.Key) (e tables.Entity, err error) {
	return value(ctx, s.intercept, Call{"tables", "Get", table}, func(ctx context.Context) (tables.Entity, error) { return s.inner.Get(ctx, table, key) })
}

func (s tableStore) Query(ctx context.Context, table string, q tables.Query) (tables.Page, error) {
	return value(ctx, s.intercept, Call{"tables", "Query", table}, func(ctx context.Context) (tables.Page, error) { return s.inner.Query(ctx, table, q) })
}

func (s tableStore) Scan(ctx context.Context, table string, scan tables.Scan) (tables.Page, error) {
	return value(ctx, s.intercept, Call{"tables", "Scan", table}, func(ctx context.Context) (tables.Page, error) { return s.inner.Scan(ctx, table, scan) })
}

func (s tableStore) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	ops = Copied(ops)
	err := s.intercept(ctx, Call{"tables", "Apply", table}, func(ctx context.Context) error { return s.inner.Apply(ctx, table, ops...) })
	if err == tables.ErrExists || err == tables.ErrPrecondition { // stores wrap errors, so this is the Interceptor's answer
		return blame(err, table, ops)
	}
	return err
}

// Copied returns the operations with their own properties, bytes included, for a store that keeps its arguments: a
// caller may change operations as soon as it has the answer.
func Copied(ops []tables.Op) []tables.Op {
	ops = slices.Clone(ops)
	for i := range ops {
		props := maps.Clone(ops[i].Entity.Properties)
		for name, value := range props {
			if b, ok := value.([]byte); ok {
				props[name] = bytes.Clone(b)
			}
		}
		ops[i].Entity.Properties = props
	}
	return ops
}

// blame returns an answer in the service's form.
func blame(answer error, table string, ops []tables.Op) error {
	for i, op := range ops {
		inserts := op.Kind == tables.OpInsert
		compares := (op.Kind == tables.OpReplace || op.Kind == tables.OpDelete) && op.Entity.ETag != ""
		if inserts && answer == tables.ErrExists || compares && answer == tables.ErrPrecondition {
			return fmt.Errorf("apply to table %s: %w", table, &tables.OpError{Index: i, Key: op.Entity.Key, Err: answer})
		}
	}
	return tables.ErrThrottled
}

type queueStore struct {
	inner     queues.Store
	intercept Interceptor
}

func (s queueStore) CreateQueue(ctx context.Context, queue string) error {
	return s.intercept(ctx, Call{"queues", "CreateQueue", queue}, func(ctx context.Context) error { return s.inner.CreateQueue(ctx, queue) })
}

func (s queueStore) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	return value(ctx, s.intercept, Call{"queues", "Send", queue}, func(ctx context.Context) (string, error) { return s.inner.Send(ctx, queue, body, delay) })
}

func (s queueStore) Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]queues.Message, error) {
	return value(ctx, s.intercept, Call{"queues", "Receive", queue}, func(ctx context.Context) ([]queues.Message, error) {
		return s.inner.Receive(ctx, queue, limit, visibility)
	})
}

func (s queueStore) Renew(ctx context.Context, queue, id, popReceipt string, visibility time.Duration) (string, error) {
	return value(ctx, s.intercept, Call{"queues", "Renew", queue}, func(ctx context.Context) (string, error) {
		return s.inner.Renew(ctx, queue, id, popReceipt, visibility)
	})
}

func (s queueStore) SendHidden(ctx context.Context, queue string, body []byte, hidden time.Duration) (queues.Message, error) {
	return value(ctx, s.intercept, Call{"queues", "SendHidden", queue}, func(ctx context.Context) (queues.Message, error) {
		return s.inner.SendHidden(ctx, queue, body, hidden)
	})
}

func (s queueStore) Update(ctx context.Context, queue, id, popReceipt string, body []byte, visibility time.Duration) (string, error) {
	return value(ctx, s.intercept, Call{"queues", "Update", queue}, func(ctx context.Context) (string, error) {
		return s.inner.Update(ctx, queue, id, popReceipt, body, visibility)
	})
}

func (s queueStore) Delete(ctx context.Context, queue, id, popReceipt string) error {
	return s.intercept(ctx, Call{"queues", "Delete", queue}, func(ctx context.Context) error { return s.inner.Delete(ctx, queue, id, popReceipt) })
}

func (s queueStore) Peek(ctx context.Context, queue string) (queues.Message, bool, error) {
	type peeked struct {
		next  queues.Message
		found bool
	}
	p, err := value(ctx, s.intercept, Call{"queues", "Peek", queue}, func(ctx context.Context) (p peeked, err error) {
		p.next, p.found, err = s.inner.Peek(ctx, queue)
		return p, err
	})
	return p.next, p.found, err
}

func (s queueStore) Length(ctx context.Context, queue string) (int, error) {
	return value(ctx, s.intercept, Call{"queues", "Length", queue}, func(ctx context.Context) (int, error) { return s.inner.Length(ctx, queue) })
}

type blobStore struct {
	inner     blobs.Store
	intercept Interceptor
}

func (s blobStore) CreateContainer(ctx context.Context, container string) error {
	return s.intercept(ctx, Call{"blobs", "CreateContainer", container}, func(ctx context.Context) error { return s.inner.CreateContainer(ctx, container) })
}

func (s blobStore) Put(ctx context.Context, container, name string, data []byte) error {
	return s.intercept(ctx, Call{"blobs", "Put", container}, func(ctx context.Context) error { return s.inner.Put(ctx, container, name, data) })
}

func (s blobStore) PutIf(ctx context.Context, container, name string, data []byte, etag string) error {
	return s.intercept(ctx, Call{"blobs", "PutIf", container}, func(ctx context.Context) error {
		return s.inner.PutIf(ctx, container, name, data, etag)
	})
}

func (s blobStore) Get(ctx context.Context, container, name string) ([]byte, error) {
	return value(ctx, s.intercept, Call{"blobs", "Get", container}, func(ctx context.Context) ([]byte, error) { return s.inner.Get(ctx, container, name) })
}

func (s blobStore) Delete(ctx context.Context, container, name string) error {
	return s.intercept(ctx, Call{"blobs", "Delete", container}, func(ctx context.Context) error { return s.inner.Delete(ctx, container, name) })
}

func (s blobStore) List(ctx context.Context, container, prefix, continuation string) ([]string, string, error) {
	type page struct {
		names []string
		next  string
	}
	p, err := value(ctx, s.intercept, Call{"blobs", "List", container}, func(ctx context.Context) (p page, err error) {
		p.names, p.next, err = s.inner.List(ctx, container, prefix, continuation)
		return p, err
	})
	return p.names, p.next, err
}

func (s blobStore) ListOld(ctx context.Context, container, prefix string, before time.Time, continuation string) ([]blobs.Version, string, error) {
	type page struct {
		old  []blobs.Version
		next string
	}
	p, err := value(ctx, s.intercept, Call{"blobs", "ListOld", container}, func(ctx context.Context) (p page, err error) {
		p.old, p.next, err = s.inner.ListOld(ctx, container, prefix, before, continuation)
		return p, err
	})
	return p.old, p.next, err
}

func (s blobStore) DeleteVersion(ctx context.Context, container string, v blobs.Version) error {
	return s.intercept(ctx, Call{"blobs", "DeleteVersion", container}, func(ctx context.Context) error { return s.inner.DeleteVersion(ctx, container, v) })
}

// value returns the result of a call through an Interceptor. A failed call has no result.
func value[T any](ctx context.Context, i Interceptor, c Call, do func(context.Context) (T, error)) (T, error) {
	var out T // not read after an error, so a late call can still write it
	err := i(ctx, c, func(ctx context.Context) (err error) {
		out, err = do(ctx)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return out, nil
}
