package preparation

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errPlanning is the error of a store during a plan, for any call that does not create storage.
var errPlanning = errors.New("nothing is read or written while it is planned what has to be there")

// Keeper knows the tables, queues and containers of a program, and creates them again when one of them was deleted.
// The stores that it wraps (Tables, Queues, Blobs) report that. It is safe for concurrent use.
type Keeper struct {
	mu    sync.Mutex
	names map[string]bool
	again func(ctx context.Context) error // nil before Use
}

// NewKeeper makes a keeper without storage.
func NewKeeper() *Keeper { return &Keeper{names: map[string]bool{}} }

// Use sets the function that creates everything again: Preparation.Again.
func (k *Keeper) Use(again func(ctx context.Context) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.again = again
}

// Plan runs steps without requests, and returns the names of the storage that they would create, in their order. A
// step that reads first is left out: name its storage with Need.
func (k *Keeper) Plan(ctx context.Context, steps ...Step) []string {
	ctx = context.WithValue(ctx, planning, true)
	for _, step := range steps {
		_ = step(ctx) // that of a call that creates nothing
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

// Need adds tables that the program needs.
func (k *Keeper) Need(tables ...string) {
	for _, name := range tables {
		k.note(table(name))
	}
}

// purpose is the purpose of a context.
type purpose int

const (
	planning purpose = iota // storage to be created is collected
	making                  // storage is being created: missing storage is expected
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

// create creates storage of the program.
func (k *Keeper) create(ctx context.Context, name string, create func(context.Context) error) error {
	k.note(name)
	if is(ctx, planning) {
		return nil
	}
	return create(ctx)
}

// kept makes a call, and repeats it after creating missing storage. missing reports whether an error means that.
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
