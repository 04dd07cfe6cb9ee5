package schedule_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/ncrontab"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// expressions returns the expressions of random schedules.
func expressions() []string {
	return []string{daily, "0 */5 * * * *", "30 */7 * * * *", "0 26 2 * * 0", "0 0 */6 * * *", "15 59 23 * * *", "0 0 0 1 * *", "0 30 4 * * Mon-Fri", "0 * * * * *"}
}

// occurrences returns the occurrences of an expression in a range, one after the other.
func occurrences(t testing.TB, cron string, from, to time.Time) (all []time.Time) {
	t.Helper()
	e, err := ncrontab.Parse(cron)
	if err != nil {
		t.Fatal(err)
	}
	for at := e.Next(from); !at.After(to); at = e.Next(at) {
		all = append(all, at)
	}
	return all
}

// A process that ticks at random times sends, at each tick, the last of all occurrences since the previous tick.
func TestRandomTicksAgainstThePlainReference(t *testing.T) {
	t.Parallel()
	for _, seed := range sample.Seeds(t, 12) {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		w := newWorld(t)
		crons := map[string]string{}
		setting := schedule.Setting{"e": {Items: map[string]schedule.ItemRule{}}}
		for n := range 4 {
			name := fmt.Sprint("i", n)
			crons[name] = expressions()[random.IntN(len(expressions()))]
			setting["e"].Items[name] = schedule.ItemRule{Cron: crons[name]}
		}
		p := planOf(t, setting, definition("e", engine.Schedule{Cron: daily, Items: fixed("i0", "i1", "i2", "i3")}))
		s := w.scheduler(t, p)
		var want []string
		last := begin.Add(-15 * time.Minute)
		for range 300 {
			if n, err := s.Tick(t.Context()); err != nil {
				t.Fatalf("seed %d: %+v, %v", seed, n, err)
			}
			for name, cron := range crons {
				if missed := occurrences(t, cron, last, w.now); len(missed) > 0 {
					want = append(want, "e "+name+" "+missed[len(missed)-1].Format("01-02 15:04:05"))
				}
			}
			last = w.now
			switch random.IntN(20) {
			case 0:
				w.now = w.now.Add(time.Duration(random.IntN(10*24*60)) * time.Minute)
			case 1:
				s = w.scheduler(t, p)
			}
			w.now = w.now.Add(time.Minute).Add(time.Duration(random.IntN(3000)) * time.Millisecond)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, w.sorted()); diff != "" {
			t.Fatalf("seed %d: sent (-want +got):\n%s", seed, diff)
		}
	}
}

// With any fault of any storage call, each slot is sent, all of its messages with the same ids, and no slot under two
// ids.
func TestCrashesAtEveryCall(t *testing.T) {
	t.Parallel()
	fault := func(t *testing.T, f faults.Fault, at int) (calls int) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			p := planOf(t, nil, definition("hmac", engine.Schedule{Cron: daily, Items: fixed("a", "b", "c")}), definition("update", plain("0 11 */2 * * *")))
			process := func(plan *faults.Plan) *schedule.Scheduler {
				return w.over(t, p, faults.Tables(w.tables, plan.Intercept), faultySender{w, plan})
			}
			plan := &faults.Plan{}
			w.until(t, process(plan), clock(1, 5)) // rows are there
			plan = &faults.Plan{At: at, Fault: f}
			s := process(plan)
			for w.now = clock(2, 9); w.now.Before(clock(2, 30)); w.now = w.now.Add(time.Minute) {
				_, _ = s.Tick(t.Context()) // it may fail
				if plan.Wait(); plan.Crashed() {
					plan = &faults.Plan{}
					s = process(plan)
				}
			}
			ids := map[string]string{}
			for _, m := range w.sent {
				what := m.Engine + m.InstanceID + m.Slot.String()
				if other, sent := ids[what]; sent && other != m.CorrelationID || m.Slot.After(m.At) {
					t.Errorf("%v at %d: %+v", f, at, m)
				}
				ids[what] = m.CorrelationID
			}
			if len(ids) != 4 {
				t.Errorf("%v at %d: sent %v", f, at, w.slots())
			}
			calls = len(plan.Calls())
		})
		return calls
	}
	calls := fault(t, faults.None, 0)
	if calls < 8 {
		t.Fatalf("%d calls", calls)
	}
	for _, f := range faults.Faults() {
		for at := 1; at <= calls; at++ {
			if sample.Keep(t, f, at) {
				fault(t, f, at)
			}
		}
	}
}

// faultySender sends through a plan of faults.
type faultySender struct {
	w    *world
	plan *faults.Plan
}

// Send implements engine.Sender.
func (f faultySender) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (id string, err error) {
	err = f.plan.Intercept(ctx, faults.Call{Service: "queues", Operation: "Send", Target: queue}, func(ctx context.Context) error {
		id, err = f.w.Send(ctx, queue, body, delay)
		return err
	})
	return id, err
}

// node is a process whose clock differs, and whose calls fail at times.
type node struct {
	skew time.Duration

	mu     sync.Mutex // a tick sends several messages at the same time
	random *rand.Rand
	// trouble is the probability that a call fails.
	trouble float64
	s       *schedule.Scheduler
}

// intercept makes calls fail: before they are carried out, or after.
func (n *node) intercept(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	n.mu.Lock()
	spared, refused := n.random.Float64() >= n.trouble, n.random.IntN(2) == 0
	n.mu.Unlock()
	switch {
	case spared:
		return next(ctx)
	case refused:
		return tables.ErrThrottled
	}
	if err := next(ctx); err != nil {
		return err
	}
	return tables.ErrOutcomeUnknown
}

// Two processes with clocks that differ by up to a minute, through outages of storage, queues and hosts: no slot is
// sent before it is due, and each is sent under one id. No slot that was undisturbed for the longest pause is
// missing. In the end the latest slot is sent.
func TestRandomOutagesAndClocks(t *testing.T) {
	t.Parallel()
	for _, seed := range sample.Seeds(t, 6) {
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		w := newWorld(t)
		crons := map[string]string{}
		setting := schedule.Setting{"e": {Items: map[string]schedule.ItemRule{}}}
		for n := range 3 {
			name := fmt.Sprint("i", n)
			crons[name] = expressions()[random.IntN(len(expressions()))]
			setting["e"].Items[name] = schedule.ItemRule{Cron: crons[name]}
		}
		p := planOf(t, setting, definition("e", engine.Schedule{Cron: daily, Items: fixed("i0", "i1", "i2")}))
		real := begin
		nodes := []*node{{random: random}, {random: random, skew: time.Duration(random.IntN(120)-60) * time.Second}}
		renew := func(n *node) {
			s, err := schedule.New(schedule.Config{Plan: p, Tables: faults.Tables(w.tables, n.intercept), Queues: interceptedSender{w, n}, Now: func() time.Time { return real.Add(n.skew) }})
			if err != nil {
				t.Fatal(err)
			}
			n.s = s
		}
		for _, n := range nodes {
			renew(n)
		}
		calm := map[time.Time]bool{} // minutes in which every process ticks and nothing fails
		away := 0                    // remaining minutes of an outage
		for minute := range 3 * 24 * 60 {
			if away--; away < 0 && random.IntN(300) == 0 {
				away = random.IntN(300)
			}
			quiet := away < 0 || minute > 3*24*60-20
			for _, n := range nodes {
				if n.trouble = 0; !quiet {
					n.trouble = []float64{0.2, 1}[random.IntN(2)]
				}
				if !quiet && random.IntN(3) == 0 {
					renew(n)
					continue
				}
				w.now = real.Add(n.skew)
				_, _ = n.s.Tick(t.Context()) // it may fail
			}
			if quiet {
				calm[real.Truncate(time.Minute)] = true
			}
			real = real.Add(time.Minute)
		}
		ids := map[string]map[string]bool{}
		for _, m := range w.sent {
			key := m.InstanceID + m.Slot.String()
			if ids[key] == nil {
				ids[key] = map[string]bool{}
			}
			if ids[key][m.CorrelationID] = true; len(ids[key]) > 1 || m.Slot.After(m.At) {
				t.Errorf("seed %d: %+v", seed, m)
			}
		}
		for name, cron := range crons {
			all := occurrences(t, cron, begin, real.Add(-3*time.Minute))
			for n, slot := range all {
				end := real
				if n+1 < len(all) {
					end = all[n+1]
				}
				if sent := ids[name+slot.String()] != nil; !sent && (n == len(all)-1 || undisturbed(calm, slot, end)) {
					t.Errorf("seed %d: %s %q: slot %v is missing", seed, name, cron, slot)
				}
			}
		}
	}
}

// undisturbed reports whether no outage came within the longest pause plus the difference of the clocks.
func undisturbed(calm map[time.Time]bool, from, to time.Time) bool {
	in := 0
	for at := from.Truncate(time.Minute).Add(2 * time.Minute); at.Before(to.Add(-2 * time.Minute)); at = at.Add(time.Minute) {
		if in++; !calm[at] {
			in = 0
		}
		if in > 7 {
			return true
		}
	}
	return false
}

// interceptedSender sends with a node's trouble.
type interceptedSender struct {
	w *world
	n *node
}

// Send implements engine.Sender.
func (i interceptedSender) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	return "", i.n.intercept(ctx, faults.Call{}, func(ctx context.Context) error {
		_, err := i.w.Send(ctx, queue, body, delay)
		return err
	})
}

var _ engine.Sender = (queues.Store)(nil)
