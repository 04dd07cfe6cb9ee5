package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// opens returns the tenants with a row under "~open".
func (w *world) opens(ctx context.Context, t testing.TB) map[string]bool {
	t.Helper()
	open := map[string]bool{}
	for e, err := range tables.All(ctx, w.tables, w.table, tables.Query{Partition: openPartition}) {
		if err != nil {
			t.Fatal(err)
		}
		open[e.Row] = true
	}
	return open
}

// Idle tenants cost a sweep nothing: it makes two requests for any number of tenants, one of them for the round of all
// tenants.
func TestSweepOfIdleTenants(t *testing.T) {
	t.Parallel()
	const tenants, sweeps = 1000, 240
	w := newWorld(t)
	p := w.process(t, nil)
	for i := range tenants {
		m := message1(i)
		m.TenantID = fmt.Sprint("tenant-", i)
		p.add(t, m)
	}
	if r := p.sweep(t); r.Delivered != tenants {
		t.Fatalf("%+v", r)
	}
	if n := len(w.opens(t.Context(), t)); n != tenants {
		t.Errorf("%d are open", n)
	}
	w.pass(2 * quietAfter)
	p.sweep(t)
	if n := len(w.opens(t.Context(), t)); n != 0 {
		t.Errorf("%d are open after a rest", n)
	}
	plan := &faults.Plan{}
	p = w.process(t, plan)
	for range sweeps {
		w.pass(time.Hour / sweeps)
		p.sweep(t)
	}
	if n := len(plan.Calls()); n > 500 {
		t.Errorf("%d requests in an hour", n)
	}
}

// A tenant that only an older version has used is swept from the first sweep on. Later additions by a concurrent older
// version are swept, too, if later.
func TestTenantsOfOlderVersions(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(t *testing.T, w *world, p *process){
		"before": func(t *testing.T, w *world, _ *process) {
			row := tenantRow("acme", true)
			delete(row.Properties, opensColumn)
			apply(t, w, tables.Replace(row), tables.Delete(openKey("acme"), ""))
		},
		"beside": func(t *testing.T, w *world, p *process) {
			p.sweep(t)
			apply(t, w, tables.Delete(openKey("acme"), ""))
			w.pass(roundInterval)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			refuse := true
			w.deliver = func(context.Context, Event) error {
				if refuse {
					return errors.New("not yet")
				}
				return nil
			}
			p := w.process(t, nil)
			p.add(t, message1(1))
			forget(t, w, p)
			refuse = false
			w.pass(time.Hour)
			if r := p.sweep(t); r.Delivered != 1 {
				t.Errorf("%+v", r)
			}
		})
	}
}

func apply(t *testing.T, w *world, ops ...tables.Op) {
	t.Helper()
	for _, op := range ops {
		testenv.OK(t, w.tables.Apply(t.Context(), w.table, op))
	}
}

// district is a set of processes that add and sweep at their own pace, over a slow storage, and a witness of each
// change.
type district struct {
	w *world
	t *testing.T

	mu       sync.Mutex
	random   *rand.Rand
	accepted map[uuid.UUID]bool
}

func (d *district) draw(most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.random.IntN(8) > 0 {
		most /= 60
	}
	return time.Duration(d.random.Int64N(int64(most)))
}

// slowly carries out a call after a while, and answers after a while. No process adds for longer than the quiet time.
func (d *district) slowly(dead *bool) faults.Interceptor {
	return func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		pause(context.WithoutCancel(ctx), d.draw(3*quietAfter))
		d.mu.Lock()
		err := faults.ErrCrashed
		if !*dead {
			err = next(ctx)
			d.witness(c)
		}
		d.mu.Unlock()
		pause(context.WithoutCancel(ctx), d.draw(quietAfter))
		return err
	}
}

// witness makes sure that every tenant with pending or owed work is open.
func (d *district) witness(c faults.Call) {
	if c.Operation != "Apply" {
		return
	}
	ctx := context.Background() // memory does not wait
	open := d.w.opens(ctx, d.t)
	for _, tenant := range []string{"acme", "zeta"} {
		for e, err := range tables.All(ctx, d.w.tables, d.w.table, tables.Query{Partition: partition(tenant), From: owedPrefix, To: endOf(waitingPrefix)}) {
			if err != nil {
				d.t.Error(err)
			}
			if (e.Row[:2] == owedPrefix || e.Row[:2] == pendingPrefix || e.Row[:2] == waitingPrefix) && !open[partition(tenant)] {
				d.t.Errorf("%v: %s is there, and no sweep looks for it", time.Now(), e.Row)
			}
		}
	}
}

// live lets a process add, sweep and act while it lives.
func (d *district) live(p *process, number int, lasts time.Duration, dead *bool) {
	var all sync.WaitGroup
	end := time.Now().Add(lasts)
	all.Go(func() {
		for i := 0; time.Now().Before(end); i++ {
			m := message1(100*number + i)
			m.TenantID = []string{"acme", "zeta"}[i%2]
			m.OrderKey = []string{"", "k", ""}[i%3]
			added, err := p.writer.Add(context.Background(), m)
			d.mu.Lock()
			if err == nil && !*dead {
				d.accepted[added.Key] = true
			}
			d.mu.Unlock()
			pause(context.Background(), d.draw(10*quietAfter))
		}
	})
	all.Go(func() {
		for time.Now().Before(end) {
			_, _ = p.dispatcher.sweepOpen(context.Background()) // failures are repeated
			pause(context.Background(), d.draw(quietAfter))
		}
	})
	all.Wait()
	d.mu.Lock()
	*dead = true
	d.mu.Unlock()
	_ = p.dispatcher.Close(context.Background())
}

// With slow requests for opening, using and closing tenants, every tenant with pending work is open at every moment; in
// the end every message is delivered, and no tenant is open.
func TestOpenAtRandom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		seed, number := rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 4).Draw(rt, "processes")
		direct, fails := rapid.Bool().Draw(rt, "direct"), rapid.IntRange(0, 5).Draw(rt, "fails")
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.clock = time.Time{} // the bubble's
			d := &district{w: w, t: t, random: rand.New(rand.NewPCG(seed, 0)), accepted: map[uuid.UUID]bool{}}
			w.deliver = func(context.Context, Event) error {
				d.mu.Lock()
				defer d.mu.Unlock()
				switch n := d.random.IntN(10); {
				case n < fails:
					return errors.New("not yet")
				case n == 9 && fails > 0:
					return &DeliveryError{Permanent: true, Err: errors.New("never")}
				}
				return nil
			}
			var all sync.WaitGroup
			for i := range number {
				dead := false
				p := w.intercepted(t, d.slowly(&dead), []Route{{EventType: "*", Destination: "sink"}}, Destinations{"sink": w})
				if direct {
					p.direct()
				}
				all.Go(func() { d.live(p, i, d.draw(time.Hour)+10*time.Minute, &dead) })
			}
			all.Wait()
			p := w.process(t, nil)
			for range 24 * 4 {
				time.Sleep(15 * time.Minute)
				if _, err := p.dispatcher.sweepOpen(t.Context()); err != nil {
					t.Error(err)
				}
			}
			for _, tenant := range []string{"acme", "zeta"} {
				if s := w.check(t, tenant); s[StatusPending] != 0 {
					t.Errorf("%s: %v", tenant, s)
				}
			}
			if open := w.opens(t.Context(), t); len(open) != 0 {
				t.Errorf("%v are open", open)
			}
			ended := map[uuid.UUID]bool{}
			for _, e := range w.events() {
				ended[e.Key] = true
			}
			for _, e := range w.deaths() {
				ended[e.Key] = true
			}
			for k := range d.accepted {
				if !ended[k] {
					t.Errorf("%s was accepted and never left", k)
				}
			}
		})
		if t.Failed() {
			rt.FailNow()
		}
	})
}
