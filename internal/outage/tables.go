package outage

import (
	"context"

	"github.com/vibedata/roundhouse/tables"
)

// probeTable is read to check whether tables answer. It does not exist.
const probeTable = "outageprobe"

// Tables wraps s with the waiting of this package.
func Tables(s tables.Store, c Config) tables.Store {
	return tableStore{s, newWatch("tables", c, func(ctx context.Context) error {
		_, err := s.Get(ctx, probeTable, tables.Key{Partition: "outage", Row: "probe"})
		return err
	})}
}

type tableStore struct {
	inner tables.Store
	watch *watch
}

func (s tableStore) CreateTable(ctx context.Context, table string) error {
	return s.watch.do(ctx, func(ctx context.Context) error { return s.inner.CreateTable(ctx, table) })
}

func (s tableStore) Get(ctx context.Context, table string, key tables.Key) (e tables.Entity, err error) {
	err = s.watch.do(ctx, func(ctx context.Context) error { e, err = s.inner.Get(ctx, table, key); return err })
	return e, err
}

func (s tableStore) Query(ctx context.Context, table string, q tables.Query) (page tables.Page, err error) {
	err = s.watch.make(ctx, kind{bulk: true}, func(ctx context.Context) error { page, err = s.inner.Query(ctx, table, q); return err })
	return page, err
}

func (s tableStore) Scan(ctx context.Context, table string, scan tables.Scan) (page tables.Page, err error) {
	err = s.watch.make(ctx, kind{bulk: true}, func(ctx context.Context) error { page, err = s.inner.Scan(ctx, table, scan); return err })
	return page, err
}

func (s tableStore) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	return s.watch.do(ctx, func(ctx context.Context) error { return s.inner.Apply(ctx, table, ops...) })
}
