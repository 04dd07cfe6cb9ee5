package codec

import (
	"context"
	"fmt"
	"maps"

	"github.com/vibedata/roundhouse/tables"
)

// Opaque is Config.Tables for a program without the key. It returns the columns in clear and refuses changes of a row
// with encrypted columns with ErrSealed. show has, by table, the function for the placeholders of a row with encrypted
// columns; keyID is "" if the row does not contain it.
func Opaque(store tables.Store, show map[string]Cover) tables.Store {
	return &opaqueStore{store, show}
}

// Cover returns placeholders for the encrypted columns.
type Cover func(row tables.Entity, keyID string) map[string]any

type opaqueStore struct {
	tables.Store
	show map[string]Cover
}

func (s *opaqueStore) Get(ctx context.Context, table string, key tables.Key) (tables.Entity, error) {
	e, err := s.Store.Get(ctx, table, key)
	if err == nil {
		s.cover(table, e)
	}
	return e, err
}

func (s *opaqueStore) Query(ctx context.Context, table string, q tables.Query) (tables.Page, error) {
	page, err := s.Store.Query(ctx, table, q)
	return s.coverPage(table, page), err
}

func (s *opaqueStore) Scan(ctx context.Context, table string, scan tables.Scan) (tables.Page, error) {
	page, err := s.Store.Scan(ctx, table, scan)
	return s.coverPage(table, page), err
}

func (s *opaqueStore) coverPage(table string, page tables.Page) tables.Page {
	for _, e := range page.Entities {
		s.cover(table, e)
	}
	return page
}

// cover puts placeholders into an encrypted row. The first of the encrypted columns stays, so that Apply recognizes the
// row.
func (s *opaqueStore) cover(table string, e tables.Entity) {
	show := s.show[table]
	sealed := takeSealed(e.Properties)
	if sealed == nil || show == nil {
		return
	}
	maps.Copy(e.Properties, show(e, KeyID(sealed)))
	e.Properties[columnSealed] = sealed[:min(len(sealed), chunkBytes)]
}

func (s *opaqueStore) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	for i, op := range ops {
		if _, sealed := op.Entity.Properties[columnSealed]; sealed && op.Kind != tables.OpDelete {
			return fmt.Errorf("apply to %s: %w", table, &tables.OpError{Index: i, Key: op.Entity.Key, Err: ErrSealed})
		}
	}
	return s.Store.Apply(ctx, table, ops...)
}
