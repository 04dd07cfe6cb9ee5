package hostlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// free names the jobs whose locks another node can acquire.
func free(t *testing.T, other hostlock.Locks, jobs []string) (names []string) {
	t.Helper()
	for _, name := range jobs {
		_, err := other.Acquire(t.Context(), name, lease)
		switch {
		case err == nil:
			names = append(names, name)
		case !errors.Is(err, hostlock.ErrHeld):
			t.Fatal(err)
		}
	}
	return names
}

// The locks of a node that is taken over are free immediately. The locks of other nodes, and those that other nodes
// have acquired since, are not.
func TestReleaseNode(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		node  string
		freed int
		free  []string
	}{
		"the lost one":   {"lost", 2, []string{"/odd job/#?", "purge"}},
		"part of a name": {"los", 0, nil},
		"another":        {"b", 2, []string{"sweeper", "taken since"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachStore(t, func(t *testing.T, store tables.Store) {
				c := newClock()
				node := nodes(t, store, c)
				jobs := []string{"/odd job/#?", "purge", "sweeper", "taken since"}
				for i, holder := range []string{"lost", "lost", "b", "lost"} {
					testenv.Must(node(holder).Acquire(t.Context(), jobs[i], lease))(t)
				}
				given, err := node("lost").Acquire(t.Context(), "given back", lease)
				if err = errors.Join(err, node("lost").Release(t.Context(), given)); err != nil {
					t.Fatal(err)
				}
				early := node("b")
				early.Now = func() time.Time { return c.now().Add(lease) }
				testenv.Must(early.Acquire(t.Context(), "taken since", lease))(t)
				for _, want := range []int{tt.freed, 0} {
					if freed, err := node("c").ReleaseNode(t.Context(), tt.node); freed != want || err != nil {
						t.Errorf("%d freed, want %d: %v", freed, want, err)
					}
				}
				testenv.Equal(t, "", tt.free, free(t, node("c"), jobs))
			})
		})
	}
}

func TestReleaseNodeFails(t *testing.T) {
	t.Parallel()
	l := nodes(t, tables.NewMemory(), newClock())("a")
	if _, err := l.ReleaseNode(t.Context(), ""); err == nil {
		t.Error("a node without a name")
	}
	l.Table = "missing"
	if _, err := l.ReleaseNode(t.Context(), "lost"); !errors.Is(err, tables.ErrNotFound) {
		t.Error(err)
	}
}

// A lock that another node acquires during the release is not freed.
func TestReleaseNodeBesideAnother(t *testing.T) {
	t.Parallel()
	inner := tables.NewMemory()
	c := newClock()
	node := nodes(t, inner, c)
	testenv.Must(node("lost").Acquire(t.Context(), job, lease))(t)
	taker := node("taker")
	taker.Tables = faults.Tables(inner, func(ctx context.Context, call faults.Call, next func(context.Context) error) error {
		err := next(ctx)
		if call.Operation == "Scan" {
			c.put(lease)
			if _, err := node("b").Acquire(ctx, job, lease); err != nil {
				t.Error(err)
			}
		}
		return err
	})
	if freed, err := taker.ReleaseNode(t.Context(), "lost"); freed != 0 || err != nil {
		t.Errorf("%d freed: %v", freed, err)
	}
	if got := free(t, node("c"), []string{job}); len(got) > 0 {
		t.Errorf("what b has was freed")
	}
}

// A node that lives on after its takeover stops its job and frees no lock of another node.
func TestAFencedNodeStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := tables.NewMemory()
		fenced, taker := hostlock.Locks{Tables: store, Node: named("fenced")}, hostlock.Locks{Tables: store, Node: named("taker")}
		testenv.OK(t, taker.CreateTable(t.Context()))
		inside := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		all.Go(func() {
			err := fenced.Do(ctx, job, lease, func(ctx context.Context) error {
				close(inside)
				<-ctx.Done()
				return context.Cause(ctx)
			})
			if !errors.Is(err, hostlock.ErrLost) {
				t.Error(err)
			}
		})
		<-inside
		if freed, err := taker.ReleaseNode(t.Context(), "fenced"); freed != 1 || err != nil {
			t.Errorf("%d freed: %v", freed, err)
		}
		if err := taker.Do(t.Context(), job, lease, func(context.Context) error { all.Wait(); return nil }); err != nil {
			t.Error(err)
		}
	})
}

// A release breaks off at every call and in every way. A second release completes it.
func TestReleaseNodeCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	jobs := []string{"a", "b", "c"}
	run := func(t *testing.T, plan *faults.Plan) {
		inner := tables.NewMemory()
		other := hostlock.Locks{Tables: inner, Node: named("other")}
		testenv.OK(t, other.CreateTable(t.Context()))
		for _, name := range jobs {
			testenv.Must((hostlock.Locks{Tables: inner, Node: named("lost")}).Acquire(t.Context(), name, time.Hour))(t)
		}
		broken := hostlock.Locks{Tables: faults.Tables(inner, plan.Intercept), Node: named("broken")}
		freed, err := broken.ReleaseNode(t.Context(), "lost")
		if err == nil && freed != len(jobs) {
			t.Errorf("%d freed without an error", freed)
		}
		plan.Wait()
		if _, err := other.ReleaseNode(t.Context(), "lost"); err != nil {
			t.Error(err)
		}
		testenv.Equal(t, "", jobs, free(t, other, jobs))
	}
	count := &faults.Plan{}
	synctest.Test(t, func(t *testing.T) { run(t, count) })
	for at := range count.Calls() {
		for _, fault := range faults.Faults() {
			t.Run(fmt.Sprintf("%s-%d", fault, at+1), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { run(t, &faults.Plan{At: at + 1, Fault: fault}) })
			})
		}
	}
}
