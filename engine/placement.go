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

// Placement is a store that keeps history and dead letters in the tables that the registry says (standard, section 6): who uses
// DefaultHistoryTable and DefaultDeadLetterTable over it uses those. It is safe for concurrent use.
//
// Which tables these are is decided once, by the first call that needs one of them, and stays so for the life of the Placement:
// a process never works with two sets. Other tables are passed through.
type Placement struct {
	config PlacementConfig
	look   func(ctx context.Context) (own string, names registry.TableNames, err error)

	mu      sync.Mutex
	decided bool
	own     string
	names   registry.TableNames
	others  map[string]bool // tables of other use, in small letters
}

// PlacementConfig says what a Placement works with. Tables and Registry are required.
type PlacementConfig struct {
	// Tables is the store beneath, and Registry the registry in it.
	Tables   tables.Store
	Registry *registry.Registry
	// InstanceID says whose document is the app's own; "" for an app that has none, which works with the default tables. It is
	// asked when the tables are needed.
	InstanceID func() string
	// Account is the storage account of Tables, "" when it has no name.
	Account string
	// Others are tables of other use that are not made through the Placement.
	Others []string
}

// ErrPlacement: the app's own document asks for tables that the app cannot work with.
var ErrPlacement = errors.New("the engineTablesConfig of the app's own registry document cannot be followed")

// NewPlacement is the placement of an app: as its own document says when it starts.
func NewPlacement(c PlacementConfig) *Placement {
	p := newPlacement(c)
	p.look = func(ctx context.Context) (string, registry.TableNames, error) {
		config, err := p.Config(ctx)
		return c.InstanceID(), namesOf(config), err
	}
	return p
}

// AppliedPlacement is the placement of a running app for other programs: as the app has noted it when it started
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

// Config is what the app's own document says now: nothing when there is no document. The error is ErrPlacement when the app
// cannot follow it, or what the registry says.
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

// Check says what the app could not follow in the engineTablesConfig of its own document. The error is ErrPlacement.
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

// Own is the instance whose document is the app's own, "" for none; and Names are the tables that are used.
func (p *Placement) Own(ctx context.Context) (string, error) {
	own, _, err := p.decide(ctx)
	return own, err
}

// Names are the tables that are used.
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
	if !p.decided { // else somebody else has decided meanwhile
		p.decided, p.own, p.names = true, own, names
	}
	return p.own, p.names, nil
}

// place is the table that stands for one.
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

// CreateTable creates a table if it is missing. One that history or dead letters are in is refused under its own name.
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

// claim notes a table of other use.
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

// Announce notes which tables the app works with, for other programs, and gives those of before that still hold rows of the
// engines: these rows are neither shown nor deleted any more.
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

// LeftTables are the tables that an app worked with before, by what it has noted, and that still hold rows of the engines.
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

// holdsRows says whether a table of history or dead letters holds rows of engines. Their index rows by status are enough to know.
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

// KeepOf is for how long rows of an engine are kept, 0 for DefaultKeep: what is said of the engine itself comes before what is
// said of all, and the registry before the program, whose own word is keep.
func KeepOf(c registry.EngineTablesConfig, engine string, keep time.Duration) time.Duration {
	const day = 24 * time.Hour
	if days := c.Retention[engine]; days != 0 {
		return time.Duration(days) * day
	}
	return cmp.Or(keep, time.Duration(c.RetentionDays)*day)
}
