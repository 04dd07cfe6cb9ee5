package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// DefaultTable is the default name of the table.
const DefaultTable = "registry"

// MaxPage is the longest page of List.
const MaxPage = 1000

// Registry stores the documents of instances. It is safe for concurrent use.
type Registry struct {
	// Now is the clock, time.Now when nil.
	Now func() time.Time

	store tables.Store
	table string
}

// New makes a registry over a table, DefaultTable when it is "".
func New(store tables.Store, table string) *Registry {
	if table == "" {
		table = DefaultTable
	}
	return &Registry{store: store, table: table}
}

// CreateTable makes sure that the table exists.
func (r *Registry) CreateTable(ctx context.Context) error { return r.store.CreateTable(ctx, r.table) }

func (r *Registry) now() time.Time {
	if r.Now == nil {
		return time.Now().UTC()
	}
	return r.Now().UTC()
}

// Get reads an instance. The errors are ErrNotFound, ErrInvalid, ErrDamaged, and those of the store.
func (r *Registry) Get(ctx context.Context, instanceID string) (Instance, error) {
	found, err := r.read(ctx, instanceID)
	return found.instance, err
}

func (r *Registry) read(ctx context.Context, instanceID string) (row, error) {
	key, err := keyOf(instanceID)
	if err != nil {
		return row{}, fmt.Errorf("get: %w", err)
	}
	e, err := r.store.Get(ctx, r.table, key)
	if errors.Is(err, tables.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return row{}, fmt.Errorf("get instance %s: %w", instanceID, err)
	}
	return readRow(e)
}

// Create adds an instance and returns it as version 1. It is not locked: i.Lock and i.Version must be zero. The
// errors are ErrExists, ErrInvalid, and those of the store.
func (r *Registry) Create(ctx context.Context, i Instance) (Instance, error) {
	key, err := keyOf(i.InstanceID)
	if err != nil {
		return Instance{}, fmt.Errorf("create: %w", err)
	}
	if i.Lock != (Lock{}) || i.Version != 0 {
		return Instance{}, fmt.Errorf("create instance %s: %w: it has a lock or a version", i.InstanceID, ErrInvalid)
	}
	write := newWrite()
	i = i.Clone()
	i.Lock.Duration = DefaultLockDuration
	made := row{}.next(i, write)
	e, err := made.entity(key)
	if err != nil {
		return Instance{}, fmt.Errorf("create: %w", err)
	}
	for try := 1; ; try++ {
		err := r.store.Apply(ctx, r.table, tables.Insert(e))
		if err == nil {
			return made.instance, nil
		}
		if errors.Is(err, tables.ErrExists) {
			err = r.whose(ctx, i.InstanceID, write, err)
		}
		switch {
		case err == nil:
			return made.instance, nil
		case !transient(err) || try == maxTries || pause(ctx, try) != nil:
			return Instance{}, fmt.Errorf("create instance %s: %w", i.InstanceID, err)
		}
	}
}

// whose finds the writer of the row that an insert conflicted with: nil if it was this write.
func (r *Registry) whose(ctx context.Context, instanceID, write string, cause error) error {
	found, err := r.read(ctx, instanceID)
	switch {
	case errors.Is(err, ErrNotFound):
		return errors.Join(tables.ErrOutcomeUnknown, cause)
	case err != nil:
		return err
	}
	switch by, known := found.wrote(1); {
	case known && by == write:
		return nil
	default:
		return fmt.Errorf("%w: %w", ErrExists, cause)
	}
}

// Page is a page of List.
type Page struct {
	Instances []Instance
	// Next continues behind the page; "" on the last.
	Next string
}

// List reads a page of instances, ordered by their escaped ids. limit is 1 to MaxPage, 0 for MaxPage; next is "" for the
// first page.
func (r *Registry) List(ctx context.Context, limit int, next string) (Page, error) {
	if limit < 0 || limit > MaxPage {
		return Page{}, fmt.Errorf("list: a page of %d: %w: at most %d", limit, ErrInvalid, MaxPage)
	}
	var page Page
	for {
		rows, err := r.store.Query(ctx, r.table, tables.Query{Partition: partition, Limit: limit, Continuation: next})
		if err != nil {
			return Page{}, fmt.Errorf("list instances: %w", err)
		}
		for _, e := range rows.Entities {
			found, err := readRow(e)
			if err != nil {
				return Page{}, fmt.Errorf("list instances: %w", err)
			}
			page.Instances = append(page.Instances, found.instance)
		}
		if page.Next = rows.Next; page.Next == "" || len(page.Instances) > 0 {
			return page, nil
		}
		next = rows.Next // the store may return an empty page that is not the last
	}
}
