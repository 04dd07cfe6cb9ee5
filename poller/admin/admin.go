package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sources"
)

// ErrNotDefined means that the settings do not define the poller, so its source is unknown.
var ErrNotDefined = errors.New("the settings do not define the poller")

// loadsAtOnce bounds the states that a list reads concurrently.
const loadsAtOnce = 8

// Admin works on the pollers of an app. Blob and Table are required. It is safe for concurrent use.
type Admin struct {
	// Blob and Table are the possible stores of states.
	Blob, Table poller.Store
	// Settings are the definitions.
	Settings []poller.Setting
	// DSN returns the connection string of a poller's source. Lag and AcceptFingerprint need it.
	DSN func(ctx context.Context, s poller.Setting) (string, error)
}

// Poller is the current state of a poller.
type Poller struct {
	Name string
	// Setting is nil for a poller without a definition in the settings.
	Setting *poller.Setting
	// View is its state, and Err the error of reading it: poller.ErrNotFound for a defined poller without a state,
	// poller.ErrCorrupt, poller.ErrVersion, or an error of the store.
	View poller.View
	Err  error
}

// Condition returns its condition.
func (p Poller) Condition() poller.Condition { return p.View.Condition(p.Err) }

// Setting returns the definition of a poller; ok is false for one that the settings do not define.
func (a Admin) Setting(name string) (setting poller.Setting, ok bool) {
	at := slices.IndexFunc(a.Settings, func(s poller.Setting) bool { return s.Name == name })
	if at < 0 {
		return setting, false
	}
	return a.Settings[at], true
}

// Names returns the names of the pollers with a definition or a state, ascending.
func (a Admin) Names(ctx context.Context) ([]string, error) {
	inBlobs, err := a.Blob.List(ctx)
	if err != nil {
		return nil, err
	}
	names, err := a.Table.List(ctx)
	if err != nil {
		return nil, err
	}
	names = append(names, inBlobs...)
	for _, s := range a.Settings {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Page returns at most limit pollers after a name, ascending by their names, and whether more follow. It includes
// unreadable states, with their errors.
func (a Admin) Page(ctx context.Context, after string, limit int) (page []Poller, more bool, err error) {
	names, err := a.Names(ctx)
	if err != nil {
		return nil, false, err
	}
	at, found := slices.BinarySearch(names, after)
	if found {
		at++
	}
	names = names[at:]
	more = len(names) > limit
	names = names[:min(limit, len(names))]
	page = make([]Poller, len(names))
	free := make(chan struct{}, loadsAtOnce)
	var wait sync.WaitGroup
	for n, name := range names {
		free <- struct{}{}
		wait.Go(func() {
			defer func() { <-free }()
			page[n] = a.read(ctx, name)
		})
	}
	wait.Wait()
	return page, more, ctx.Err()
}

// Get reads one poller. The error is poller.ErrNotFound for a poller without a definition and a state; the error of an
// unreadable state is in the Poller.
func (a Admin) Get(ctx context.Context, name string) (Poller, error) {
	if err := poller.CheckName(name); err != nil {
		return Poller{}, fmt.Errorf("%w: %w", poller.ErrNotFound, err)
	}
	p := a.read(ctx, name)
	if p.Setting == nil && errors.Is(p.Err, poller.ErrNotFound) {
		return Poller{}, p.Err
	}
	return p, nil
}

func (a Admin) read(ctx context.Context, name string) Poller {
	p := Poller{Name: name}
	if s, ok := a.Setting(name); ok {
		p.Setting = &s
	}
	var o poller.Operator
	if o, p.Err = a.operator(ctx, name); p.Err == nil {
		p.View, p.Err = o.Show(ctx, name)
	}
	return p
}

// store returns the store of the states of a kind.
func (a Admin) store(kind string) poller.Store {
	if kind == poller.StateTable {
		return a.Table
	}
	return a.Blob
}

// operator returns the Operator for the store of a poller's state.
func (a Admin) operator(ctx context.Context, name string) (poller.Operator, error) {
	kind, err := a.kept(ctx, name)
	return poller.Operator{Store: a.store(kind)}, err
}

// kept returns the kind of store of a poller's state: that of the settings, or else the one that has the state.
func (a Admin) kept(ctx context.Context, name string) (kind string, err error) {
	if s, ok := a.Setting(name); ok {
		return s.State, nil
	}
	if _, err = a.Blob.Load(ctx, name); !errors.Is(err, poller.ErrNotFound) {
		return poller.StateBlob, err
	}
	if _, err = a.Table.Load(ctx, name); errors.Is(err, poller.ErrNotFound) {
		return poller.StateBlob, nil
	}
	return poller.StateTable, err
}

// Definition returns the poller's definition from the settings, or else from its state. ok is false without either.
func (p Poller) Definition() (d poller.Definition, ok bool) {
	if p.Setting != nil {
		c, err := sources.Decode(p.Setting.Source)
		if err != nil {
			return d, false
		}
		return c.Definition(), true
	}
	if doc := p.View.Document; doc != nil && len(doc.Definition) > 0 {
		return d, json.Unmarshal(doc.Definition, &d) == nil
	}
	return d, false
}
