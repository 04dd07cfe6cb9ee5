package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/tables"
)

// Placement is a store that keeps history and dead letters in the tables that the registry names (standard, section
// 6): it replaces DefaultHistoryTable and DefaultDeadLetterTable by those. It is safe for concurrent use.
//
// The first call that needs one of these tables determines both for the life of the Placement: a process never works
// with two sets. Other tables are passed through.
type Placement struct {
	config PlacementConfig
	look   func(ctx context.Context) (own string, names registry.TableNames, err error)

	mu      sync.Mutex
	decided bool
	own     string
	names   registry.TableNames
	others  map[string]bool // other tables, in lower case
}

// PlacementConfig configures a Placement. Tables and Registry are required.
type PlacementConfig struct {
	// Tables is the store beneath, and Registry the registry in it.
	Tables   tables.Store
	Registry *registry.Registry
	// InstanceID returns the instance of the app's own document; "" for an app without one, which uses the default
	// tables. It is called when the tables are needed.
	InstanceID func() string
	// Account is the storage account of Tables, "" when it has no name.
	Account string
	// Others are other tables that are not created through the Placement.
	Others []string
}

// ErrPlacement: the app's own document names tables that the app cannot use.
var ErrPlacement = errors.New("the engineTablesConfig of the app's own registry document cannot be followed")

// NewPlacement returns the placement of an app, from its own document at the start.
func NewPlacement(c PlacementConfig) *Placement {
	p := newPlacement(c)
	p.look = func(ctx context.Context) (string, registry.TableNames, error) {
		config, err := p.Config(ctx)
		return c.InstanceID(), namesOf(config), err
	}
	return p
}

// AppliedPlacement returns the placement of a running app for other programs: as the app recorded it at its start
// (registry.Applied). c.InstanceID is left out.
func AppliedPlacement(c PlacementConfig) *Placement {
	p := newPlacement(c)
	p.look = func(ctx context.Context) (string, registry.TableNames, error) {
		a, err := c.Registry.Applied(ctx)
		names := registry.TableNames{DeadLetters: cmp.Or(a.Tables.DeadLetters, DefaultDeadLetterTable), History: cmp.Or(a.Tables.History, DefaultHistoryTable)}
		return a.InstanceID, names, err
	}
	return p
}

func newPlacement(c PlacementConfig) *Placement {
	p := &Placement{config: c, others: map[string]bool{strings.ToLower(registry.DefaultTable): true}}
	for _, table := range c.Others {
		p.others[strings.ToLower(table)] = true
	}
	return p
}

func namesOf(c registry.EngineTablesConfig) registry.TableNames {
	return registry.TableNames{DeadLetters: cmp.Or(c.DlqTableName, DefaultDeadLetterTable), History: cmp.Or(c.HistoryTableName, DefaultHistoryTable)}
}

// Config returns the current configuration of the app's own document; zero without a document. The error is
// ErrPlacement when the app cannot use it, or that of the registry.
func (p *Placement) Config(ctx context.Context) (registry.EngineTablesConfig, error) {
	own := p.config.InstanceID()
	if own == "" {
		return registry.EngineTablesConfig{}, nil
	}
	i, err := p.config.Registry.Get(ctx, own)
	if errors.Is(err, registry.ErrNotFound) || err == nil && i.EngineTablesConfig == nil {
		return registry.EngineTablesConfig{}, nil
	}
	if err != nil {
		return registry.EngineTablesConfig{}, fmt.Errorf("read the app's own registry document: %w", err)
	}
	if err := p.Check(*i.EngineTablesConfig); err != nil {
		return registry.EngineTablesConfig{}, fmt.Errorf("registry document %s: %w; mend it with roundhouse registry set, over storage", own, err)
	}
	return *i.EngineTablesConfig, nil
}

// Check returns the reason why the app cannot use the engineTablesConfig of its own document. The error is
// ErrPlacement.
func (p *Placement) Check(c registry.EngineTablesConfig) error {
	errs := []error{c.Validate()}
	if name := c.StorageAccountName; name != "" && p.config.Account != "" && name != p.config.Account {
		errs = append(errs, fmt.Errorf("storageAccountName is %s, and the app works with %s: history and dead letters stay in the app's own account; use its name, or leave it out", name, p.config.Account))
	}
	names := namesOf(c)
	if strings.EqualFold(names.DeadLetters, names.History) {
		errs = append(errs, fmt.Errorf("dlqTableName and historyTableName are one table, %s: use two", names.History))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range []string{names.DeadLetters, names.History} {
		if p.others[strings.ToLower(name)] {
			errs = append(errs, fmt.Errorf("the table %s is used for other things: use another name", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrPlacement, err)
	}
	return nil
}

// Own returns the instance of the app's own document, "" for none.
func (p *Placement) Own(ctx context.Context) (string, error) {
	own, _, err := p.decide(ctx)
	return own, err
}

// Names returns the tables that are used.
func (p *Placement) Names(ctx context.Context) (registry.TableNames, error) {
	_, names, err := p.decide(ctx)
	return names, err
}

func (p *Placement) decide(ctx context.Context) (string, registry.TableNames, error) {
	p.mu.Lock()
	own, names, decided := p.own, p.names, p.decided
	p.mu.Unlock()
	if decided {
		return own, names, nil
	}
	own, names, err := p.look(ctx)
	if err != nil {
		return "", registry.TableNames{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.decided { // else another call has decided meanwhile
		p.decided, p.own, p.names = true, own, names
	}
	return p.own, p.names, nil
}

// place returns the actual table for a table.
func (p *Placement) place(ctx context.Context, table string) (string, error) {
	if table != DefaultHistoryTable && table != DefaultDeadLetterTable {
		return table, nil
	}
	names, err := p.Names(ctx)
	if table == DefaultHistoryTable {
		return names.History, err
	}
	return names.DeadLetters, err
}

// CreateTable creates a table if it is missing. The tables of history and dead letters are refused under their own
// names.
func (p *Placement) CreateTable(ctx context.Context, table string) error {
	if table != DefaultHistoryTable && table != DefaultDeadLetterTable {
		if err := p.claim(table); err != nil {
			return err
		}
	}
	placed, err := p.place(ctx, table)
	if err != nil {
		return err
	}
	return p.config.Tables.CreateTable(ctx, placed)
}

// claim records another table.
func (p *Placement) claim(table string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.others[strings.ToLower(table)] = true
	if p.decided && (strings.EqualFold(table, p.names.History) || strings.EqualFold(table, p.names.DeadLetters)) {
		return fmt.Errorf("%w: the table %s is used for other things: use another name; mend the document %s with roundhouse registry set, over storage",
			ErrPlacement, table, p.own)
	}
	return nil
}

// Get reads one entity.
func (p *Placement) Get(ctx context.Context, table string, key tables.Key) (tables.Entity, error) {
	placed, err := p.place(ctx, table)
	if err != nil {
		return tables.Entity{}, err
	}
	return p.config.Tables.Get(ctx, placed, key)
}

// Query reads one page.
func (p *Placement) Query(ctx context.Context, table string, q tables.Query) (tables.Page, error) {
	placed, err := p.place(ctx, table)
	if err != nil {
		return tables.Page{}, err
	}
	return p.config.Tables.Query(ctx, placed, q)
}

// Scan reads one page over many partitions.
func (p *Placement) Scan(ctx context.Context, table string, s tables.Scan) (tables.Page, error) {
	placed, err := p.place(ctx, table)
	if err != nil {
		return tables.Page{}, err
	}
	return p.config.Tables.Scan(ctx, placed, s)
}

// Apply applies all operations or none.
func (p *Placement) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	placed, err := p.place(ctx, table)
	if err != nil {
		return err
	}
	return p.config.Tables.Apply(ctx, placed, ops...)
}

// Announce records the tables of the app, for other programs, and returns its previous tables that still hold rows of
// the engines: these rows are neither shown nor deleted.
func (p *Placement) Announce(ctx context.Context, engines []string) (left []string, err error) {
	own, names, err := p.decide(ctx)
	if err != nil {
		return nil, err
	}
	applied, err := p.config.Registry.Apply(ctx, own, names)
	if err != nil {
		return nil, err
	}
	return LeftTables(ctx, p.config.Tables, applied, engines)
}

// LeftTables returns the recorded previous tables of an app that still hold rows of the engines.
func LeftTables(ctx context.Context, store tables.Store, a registry.Applied, engines []string) (left []string, err error) {
	for _, earlier := range a.Earlier {
		for _, table := range []string{earlier.DeadLetters, earlier.History} {
			if table == a.Tables.DeadLetters || table == a.Tables.History || slices.Contains(left, table) {
				continue
			}
			some, err := holdsRows(ctx, store, table, engines)
			if err != nil {
				return nil, fmt.Errorf("look into the earlier table %s: %w", table, err)
			}
			if some {
				left = append(left, table)
			}
		}
	}
	return left, nil
}

// holdsRows reports whether a table of history or dead letters holds rows of engines. It reads only index rows by
// status.
func holdsRows(ctx context.Context, store tables.Store, table string, engines []string) (bool, error) {
	for _, engine := range engines {
		q := tables.Query{Partition: tables.EscapeKey(engine), From: indexMark + "A", To: indexMark + "Z", Select: []string{targetColumn}, Limit: 1}
		for first := true; first || q.Continuation != ""; first = false {
			page, err := store.Query(ctx, table, q)
			if errors.Is(err, tables.ErrNotFound) {
				return false, nil // the table was deleted
			}
			if err != nil || len(page.Entities) > 0 {
				return err == nil, err
			}
			q.Continuation = page.Next
		}
	}
	return false, nil
}

// KeepOf returns the retention time of an engine's rows, 0 for DefaultKeep: the registry's value for the engine, else
// keep, the program's value, else the registry's value for all engines.
func KeepOf(c registry.EngineTablesConfig, engine string, keep time.Duration) time.Duration {
	const day = 24 * time.Hour
	if days := c.Retention[engine]; days != 0 {
		return time.Duration(days) * day
	}
	return cmp.Or(keep, time.Duration(c.RetentionDays)*day)
}
