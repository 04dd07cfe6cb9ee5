package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// Of two writers with the same version, one changes the document, and the other gets ErrChanged.
func TestChangeOfAVersion(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store tables.Store, table string) {
		r := open(t, store, table, newClock())
		seen := create(t, r, instance)
		var made, refused atomic.Int32
		var done sync.WaitGroup
		for range 8 {
			done.Go(func() {
				switch _, err := r.Change(t.Context(), instance, "", seen.Version, count); {
				case err == nil:
					made.Add(1)
				case errors.Is(err, registry.ErrChanged):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		done.Wait()
		if i, err := r.Get(t.Context(), instance); err != nil || counted(t, i) != 1 || made.Load() != 1 || refused.Load() != 7 {
			t.Errorf("count %d: %d made, %d refused, %v", counted(t, i), made.Load(), refused.Load(), err)
		}
	})
}

// A permitted writer removes an instance at the version that it has read.
func TestRemove(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store tables.Store, table string) {
		c := newClock()
		r := open(t, store, table, c)
		create(t, r, instance)
		locked, err := r.Acquire(t.Context(), instance, "one", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		lockedBy(t, "without the lock", r.Remove(t.Context(), instance, "", 0), "one")
		lockedBy(t, "by another", r.Remove(t.Context(), instance, "two", 0), "one")
		if err := r.Remove(t.Context(), instance, "one", locked.Version-1); !errors.Is(err, registry.ErrChanged) {
			t.Errorf("of another version: %v", err)
		}
		c.pass(2 * time.Hour)
		lockedBy(t, "after the lock expired", r.Remove(t.Context(), instance, "one", 0), "")
		if err := r.Remove(t.Context(), instance, "", locked.Version); err != nil {
			t.Error(err)
		}
		if err := r.Remove(t.Context(), instance, "", 0); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("again: %v", err)
		}
	})
}

// With any fault of storage, a reported removal has removed the instance, and never one that was added since.
func TestRemoveUnderFaults(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 4; at++ {
		for _, fault := range faults.Faults() {
			t.Run(fmt.Sprintf("%s-%d", fault, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { removeOnce(t, &faults.Plan{At: at, Fault: fault}) })
			})
		}
	}
}

func removeOnce(t *testing.T, plan *faults.Plan) {
	t.Helper()
	store := tables.NewMemory()
	aside := registry.New(store, "")
	if err := aside.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(t, aside, instance)
	added := false
	r := registry.New(faults.Tables(store, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		err := plan.Intercept(ctx, c, next)
		if _, gone := aside.Get(ctx, instance); errors.Is(gone, registry.ErrNotFound) && c.Operation == "Apply" && !added {
			added = true // it is added again before the remover gets the answer
			create(t, aside, instance)
		}
		return err
	}), "")
	err := r.Remove(t.Context(), instance, "", 0)
	plan.Wait()
	if _, gone := aside.Get(t.Context(), instance); gone != nil || err == nil && !added {
		t.Errorf("%v, then %v; added %v", err, gone, added)
	}
}

// Break removes the lock of a dead job, and no other.
func TestBreak(t *testing.T) {
	t.Parallel()
	r := open(t, tables.NewMemory(), "", newClock())
	create(t, r, instance)
	locked, err := r.Acquire(t.Context(), instance, "one", 0)
	if err != nil {
		t.Fatal(err)
	}
	if i, err := r.Break(t.Context(), instance, "two", 0); err != nil || i.Lock.JobID != "one" {
		t.Errorf("of another: %+v, %v", i.Lock, err)
	}
	if _, err := r.Break(t.Context(), instance, "one", locked.Version+1); !errors.Is(err, registry.ErrChanged) {
		t.Errorf("of another version: %v", err)
	}
	if i, err := r.Break(t.Context(), instance, "one", locked.Version); err != nil || i.Lock.JobID != "" {
		t.Errorf("%+v, %v", i.Lock, err)
	}
}

// Search returns every matching instance once, in pages that are full except for the last, with damaged ones among
// them.
func TestSearch(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store tables.Store, table string) {
		r := open(t, store, table, newClock())
		var want []string
		for n := range 9 {
			i := create(t, r, fmt.Sprintf("a/%d", n))
			if n%2 == 0 {
				want = append(want, i.InstanceID)
			}
		}
		broken := tables.Entity{Key: tables.Key{Partition: "instance", Row: tables.EscapeKey("a/77")}, Properties: map[string]any{"Document": "{"}}
		if err := store.Apply(t.Context(), table, tables.Insert(broken)); err != nil {
			t.Fatal(err)
		}
		keep := func(f registry.Found) bool {
			return f.Err != nil || strings.ContainsAny(f.InstanceID[len(f.InstanceID)-1:], "02468")
		}
		var got []string
		for limit := 1; limit <= 7; limit++ {
			got = nil
			for after, first := "", true; first || after != ""; first = false {
				page, next, err := r.Search(t.Context(), keep, limit, after)
				if err != nil || len(page) == 0 || next != "" && len(page) != limit {
					t.Fatalf("%d of %d, %v", len(page), limit, err)
				}
				for _, f := range page {
					if errors.Is(f.Err, registry.ErrDamaged) != (f.InstanceID == "a/77") {
						t.Errorf("%s: %v", f.InstanceID, f.Err)
					}
					got = append(got, f.InstanceID)
				}
				after = next
			}
			all := append(want[:4:4], "a/77", want[4])
			if diff := cmp.Diff(all, got); diff != "" {
				t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
			}
		}
	})
}

// The tables of an app are recorded once, however many of its processes start, and its previous tables are kept.
func TestApplied(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store tables.Store, table string) {
		r := open(t, store, table, newClock())
		if a, err := r.Applied(t.Context()); err != nil || a.InstanceID != "" {
			t.Errorf("%+v, %v", a, err)
		}
		first, second := registry.TableNames{DeadLetters: "d1", History: "h1"}, registry.TableNames{DeadLetters: "d2", History: "h1"}
		for _, names := range []registry.TableNames{first, second, first, second} {
			var done sync.WaitGroup
			for range 4 {
				done.Go(func() {
					if a, err := r.Apply(t.Context(), "i1", names); err != nil || a.Tables != names {
						t.Errorf("%+v, %v", a, err)
					}
				})
			}
			done.Wait()
		}
		a, err := r.Applied(t.Context())
		want := registry.Applied{InstanceID: "i1", Tables: second, Earlier: []registry.TableNames{first}, At: newClock().now()}
		if diff := cmp.Diff(want, a); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		page, err := r.List(t.Context(), 0, "")
		if err != nil || len(page.Instances) != 0 {
			t.Errorf("the note is listed: %+v, %v", page, err)
		}
	})
}
