package codec

import (
	"context"
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/tables"
)

// Tables encrypts the rows of the tables that Clear names. A query can compare columns in clear only; any other
// comparison is a tables.ErrInvalid.
func (c Config) Tables(store tables.Store) tables.Store {
	s := &tableStore{Store: store, config: c, clear: map[string]map[string]bool{}}
	for table, columns := range c.Clear {
		s.clear[table] = map[string]bool{}
		for _, column := range columns {
			s.clear[table][column] = true
		}
	}
	return s
}

type tableStore struct {
	tables.Store
	config Config
	clear  map[string]map[string]bool
}

func (s *tableStore) Get(ctx context.Context, table string, key tables.Key) (tables.Entity, error) {
	e, err := s.Store.Get(ctx, table, key)
	if err != nil || s.clear[table] == nil {
		return e, err
	}
	if err := s.open(ctx, table, e); err != nil {
		return tables.Entity{}, fmt.Errorf("get %s: %w", key, err)
	}
	return e, nil
}

func (s *tableStore) Query(ctx context.Context, table string, q tables.Query) (tables.Page, error) {
	ask, err := s.ask(table, q.Lookup())
	if err != nil {
		return tables.Page{}, fmt.Errorf("query %s of %s: %w", q.Partition, table, err)
	}
	wanted := q.Select
	q.Select = ask
	page, err := s.Store.Query(ctx, table, q)
	if err != nil {
		return page, err
	}
	return s.openPage(ctx, table, page, wanted)
}

func (s *tableStore) Scan(ctx context.Context, table string, scan tables.Scan) (tables.Page, error) {
	ask, err := s.ask(table, scan.Lookup())
	if err != nil {
		return tables.Page{}, fmt.Errorf("scan %s of %s: %w", scan.Row, table, err)
	}
	wanted := scan.Select
	scan.Select = ask
	page, err := s.Store.Scan(ctx, table, scan)
	if err != nil {
		return page, err
	}
	return s.openPage(ctx, table, page, wanted)
}

// ask checks the comparisons of a query, and returns the columns that it has to select.
func (s *tableStore) ask(table string, l *tables.Lookup) ([]string, error) {
	clear, wanted := s.clear[table], l.Select
	if clear == nil {
		return wanted, nil
	}
	if err := l.Check(); err != nil { // refuse the queries that the plain store refuses
		return nil, err
	}
	for name, value := range l.Where {
		if content(value) > 0 && !clear[name] {
			return nil, fmt.Errorf("%w: the column %s is encrypted and cannot be compared", tables.ErrInvalid, name)
		}
	}
	if !slices.ContainsFunc(wanted, func(name string) bool { return !clear[name] }) {
		return wanted, nil
	}
	if len(wanted)+maxChunks > maxSelect {
		return nil, nil // select all; openPage removes the columns that were not selected
	}
	ask := slices.Clone(wanted)
	for i := range maxChunks {
		ask = append(ask, sealedColumn(i+1))
	}
	return ask, nil
}

func (s *tableStore) openPage(ctx context.Context, table string, page tables.Page, wanted []string) (tables.Page, error) {
	if s.clear[table] == nil {
		return page, nil
	}
	for _, e := range page.Entities {
		if err := s.open(ctx, table, e); err != nil {
			return tables.Page{}, fmt.Errorf("row %s: %w", e.Key, err)
		}
		if len(wanted) == 0 {
			continue
		}
		for name := range e.Properties {
			if !slices.Contains(wanted, name) {
				delete(e.Properties, name)
			}
		}
	}
	return page, nil
}

// open decrypts a row in place.
func (s *tableStore) open(ctx context.Context, table string, e tables.Entity) error {
	sealed := takeSealed(e.Properties)
	if sealed == nil {
		return nil
	}
	squeezed, err := s.config.Codec.Decode(ctx, sealed, rowPlace(table, e.Key))
	if err != nil {
		return err
	}
	packed, err := expand(squeezed)
	if err != nil {
		return err
	}
	return unpack(packed, e.Properties)
}

func (s *tableStore) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	clear := s.clear[table]
	if clear == nil || s.config.ReadOnly {
		return s.Store.Apply(ctx, table, ops...)
	}
	if err := tables.CheckOps(ops); err != nil { // refuse the operations that the plain store refuses
		return fmt.Errorf("apply to %s: %w", table, err)
	}
	sealed := slices.Clone(ops)
	for i := range sealed {
		if err := s.seal(ctx, table, &sealed[i], clear); err != nil {
			return fmt.Errorf("apply to %s: %w", table, &tables.OpError{Index: i, Key: ops[i].Entity.Key, Err: err})
		}
	}
	return s.Store.Apply(ctx, table, sealed...)
}

// seal encrypts the row of an operation.
func (s *tableStore) seal(ctx context.Context, table string, op *tables.Op, clear map[string]bool) error {
	if op.Kind == tables.OpDelete {
		return nil
	}
	props, packed := pack(op.Entity.Properties, func(column string) bool { return clear[column] })
	if packed == nil {
		return nil
	}
	sealed, err := s.config.Codec.Encode(ctx, squeeze(packed, deflateFrom), rowPlace(table, op.Entity.Key))
	if err != nil {
		return err
	}
	op.Entity.Properties = props
	return putSealed(props, sealed)
}

func rowPlace(table string, key tables.Key) string { return "row " + table + "/" + key.String() }
