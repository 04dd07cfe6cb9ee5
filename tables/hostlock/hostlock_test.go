package hostlock_test

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

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

const (
	job   = "sweeper"
	lease = time.Minute
)

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

// clock is the clock of all nodes of a test.
type clock struct{ atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.Store(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time                 { return time.Unix(0, c.Load()) }
func (c *clock) put(ahead time.Duration)        { c.Add(int64(ahead)) }
func (c *clock) left(l hostlock.Lock) (d int64) { return int64(l.Until.Sub(c.now())) }

func eachStore(t *testing.T, test func(t *testing.T, store tables.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, tables.NewMemory())
	})
	t.Run("azurite", func(t *testing.T) {
		t.Parallel()
		store := testenv.Must(azure.NewTables(storage.Account(t)))(t)
		test(t, store)
	})
}

func named(name string) func() string { return func() string { return name } }

// nodes are processes with one clock and one table.
func nodes(t *testing.T, store tables.Store, c *clock) func(name string) hostlock.Locks {
	t.Helper()
	table := azuritetest.Name("locks")
	node := func(name string) hostlock.Locks {
		return hostlock.Locks{Tables: store, Table: table, Node: named(name), Now: c.now}
	}
	testenv.OK(t, node("").CreateTable(t.Context()))
	return node
}

func TestLocks(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store tables.Store) {
		c := newClock()
		node := nodes(t, store, c)
		a, b, ctx := node("a"), node("b"), t.Context()

		held, err := a.Acquire(ctx, job, lease)
		if err != nil || held.Job != job || c.left(held) != int64(lease) {
			t.Fatalf("%+v %v", held, err)
		}
		for name, other := range map[string]hostlock.Locks{"another": b, "itself": a} {
			if _, err := other.Acquire(ctx, job, lease); !errors.Is(err, hostlock.ErrHeld) || !strings.Contains(err.Error(), "by a until 2026-11-21T12:01:00Z") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := b.Acquire(ctx, "/other job/#?", lease); err != nil {
			t.Errorf("the lock of another job: %v", err)
		}

		c.put(lease / 2)
		if held, err = a.Renew(ctx, held, lease); err != nil || c.left(held) != int64(lease) {
			t.Errorf("%+v %v", held, err)
		}
		c.put(lease - 1)
		if _, err := b.Acquire(ctx, job, lease); !errors.Is(err, hostlock.ErrHeld) {
			t.Errorf("before a renewed lease ends: %v", err)
		}
		c.put(1)
		taken, err := b.Acquire(ctx, job, lease)
		if err != nil {
			t.Fatalf("after the lease: %v", err)
		}
		if _, err := a.Renew(ctx, held, lease); !errors.Is(err, hostlock.ErrLost) || !strings.Contains(err.Error(), "b had it last") {
			t.Errorf("a renewed what b has: %v", err)
		}
		if err := a.Release(ctx, held); !errors.Is(err, hostlock.ErrLost) {
			t.Errorf("a released what b has: %v", err)
		}
		for range 2 {
			if err := b.Release(ctx, taken); err != nil {
				t.Error(err)
			}
		}
		if _, err := b.Renew(ctx, taken, lease); !errors.Is(err, hostlock.ErrLost) {
			t.Errorf("renewed after its release: %v", err)
		}
		if _, err := a.Acquire(ctx, job, lease); err != nil {
			t.Errorf("after the release: %v", err)
		}
	})
}

func TestALeaseThatNobodyTookGoesOn(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := nodes(t, tables.NewMemory(), c)("a")
	held, err := a.Acquire(t.Context(), job, lease)
	if err != nil {
		t.Fatal(err)
	}
	c.put(2 * lease)
	if held, err = a.Renew(t.Context(), held, lease); err != nil || c.left(held) != int64(lease) {
		t.Errorf("%+v %v", held, err)
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	a := nodes(t, tables.NewMemory(), newClock())("a")
	for name, err := range map[string]error{
		"no job":   second(a.Acquire(t.Context(), "", lease)),
		"no lease": second(a.Acquire(t.Context(), job, 0)),
		"no table": a.Do(t.Context(), job, -1, nil),
		"too long": second(a.Acquire(t.Context(), strings.Repeat("x", 600), lease)),
		"nowhere":  second(hostlock.Locks{Tables: tables.NewMemory()}.Acquire(t.Context(), job, lease)),
	} {
		if err == nil || errors.Is(err, hostlock.ErrHeld) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second(_ hostlock.Lock, err error) error { return err }

// Of eight racing nodes, one at a time has the lock, whether it is new, free or abandoned.
func TestRace(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store tables.Store) {
		c := newClock()
		node := nodes(t, store, c)
		for round, leave := range []bool{true, false, true} {
			won := make(chan hostlock.Lock, 8)
			var racers sync.WaitGroup
			for i := range 8 {
				racers.Go(func() {
					held, err := node(fmt.Sprint(i)).Acquire(t.Context(), job, lease)
					switch {
					case err == nil:
						won <- held
					case !errors.Is(err, hostlock.ErrHeld):
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
			racers.Wait()
			if len(won) != 1 {
				t.Fatalf("round %d: %d have the lock", round, len(won))
			}
			if leave {
				c.put(lease)
			} else if err := node("").Release(t.Context(), <-won); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Every storage call of a job under a lock fails in every way, and the process dies there where it can. Another process
// that keeps trying gets the lock within a lease, and the two never work at the same time.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	const work = 2*lease + lease/2 // long enough for some renewals
	run := func(t *testing.T, plan *faults.Plan) {
		inner := tables.NewMemory()
		var inside, done atomic.Int32
		enter := func(p *faults.Plan) func(context.Context) error {
			return func(ctx context.Context) error {
				if inside.Add(1) > 1 {
					t.Error("two are at work at once")
				}
				defer inside.Add(-1)
				pause := time.NewTicker(time.Second)
				defer pause.Stop()
				for began := time.Now(); time.Since(began) < work; {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-pause.C:
						if p.Crashed() {
							return faults.ErrCrashed
						}
					}
				}
				done.Add(1)
				return nil
			}
		}
		first := hostlock.Locks{Tables: faults.Tables(inner, plan.Intercept), Node: named("first")}
		other := hostlock.Locks{Tables: inner, Node: named("other")}
		testenv.OK(t, other.CreateTable(t.Context()))
		err := first.Do(t.Context(), job, lease, enter(plan))
		if err == nil && done.Load() != 1 {
			t.Error("Do succeeded without the work")
		}
		silent := plan.Fault == faults.Applied || plan.Fault == faults.Unknown
		if silent && plan.Calls()[plan.At-1].Operation == "Apply" && err != nil {
			t.Errorf("a write whose answer was lost counts as a failure: %v", err)
		}
		free := time.Now()
		for {
			err := other.Do(t.Context(), job, lease, enter(&faults.Plan{}))
			if err == nil {
				break
			}
			if !errors.Is(err, hostlock.ErrHeld) || time.Since(free) > lease {
				t.Fatalf("after %v: %v", time.Since(free), err)
			}
			time.Sleep(time.Second)
		}
		plan.Wait()
		if done.Load() < 1 {
			t.Error("the work was not done")
		}
	}
	count := &faults.Plan{}
	synctest.Test(t, func(t *testing.T) { run(t, count) })
	if n := len(count.Calls()); n < 10 {
		t.Fatalf("only %d calls: the lock was not renewed", n)
	}
	for at := range count.Calls() {
		for _, fault := range faults.Faults() {
			t.Run(fmt.Sprintf("%s-%d", fault, at+1), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { run(t, &faults.Plan{At: at + 1, Fault: fault}) })
			})
		}
	}
}
