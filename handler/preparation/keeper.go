package preparation

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errPlanning is what a store says while a plan is made to who wants more of it than to create something.
var errPlanning = errors.New("nothing is read or written while it is planned what has to be there")

// Keeper knows which tables, queues and containers a program needs, and has them made again when one of them turns out to be
// missing: somebody has deleted it. Stores around which it is (Tables, Queues, Blobs) tell it. It is safe for concurrent use.
type Keeper struct {
	mu    sync.Mutex
	names map[string]bool
	again func(ctx context.Context) error // nil while nobody can make anything
}

// NewKeeper makes a keeper of nothing.
func NewKeeper() *Keeper { return &Keeper{names: map[string]bool{}} }

// Use says what makes everything again: Preparation.Again.
func (k *Keeper) Use(again func(ctx context.Context) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.again = again
}

// Plan asks steps what they would create, without a request, and gives all names, in their order. A step that wants to read something
// first is left out: name what it creates with Need.
func (k *Keeper) Plan(ctx context.Context, steps ...Step) []string {
	ctx = context.WithValue(ctx, planning, true)
	for _, step := range steps {
		_ = step(ctx) // that of who wanted more
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for name := range k.names {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// Need notes tables that the program needs.
func (k *Keeper) Need(tables ...string) {
	for _, name := range tables {
		k.note(table(name))
	}
}

// purpose is what a context is for.
type purpose int

const (
	planning purpose = iota // it is asked what would be created
	making                  // something is made: what is missing is no news
)

func is(ctx context.Context, what purpose) bool { return ctx.Value(what) != nil }

func table(name string) string     { return "table " + name }
func queue(name string) string     { return "queue " + name }
func container(name string) string { return "container " + name }

func (k *Keeper) note(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names[name] = true
}

// create creates something that the program needs.
func (k *Keeper) create(ctx context.Context, name string, create func(context.Context) error) error {
	k.note(name)
	if is(ctx, planning) {
		return nil
	}
	return create(ctx)
}

// kept makes a call, and once more when what it needs was missing and has been made. missing says whether an error means that.
func (k *Keeper) kept(ctx context.Context, name string, missing func(error) bool, call func(context.Context) error) error {
	if is(ctx, planning) {
		return errPlanning
	}
	err := call(ctx)
	if err == nil || !missing(err) || is(ctx, making) {
		return err
	}
	k.mu.Lock()
	again := k.again
	if !k.names[name] {
		again = nil
	}
	k.mu.Unlock()
	if again == nil {
		return err
	}
	if failed := again(ctx); failed != nil {
		return errors.Join(err, failed)
	}
	return call(ctx)
}
