package poller_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/poller"
)

const crashRows = 14

// crashOptions make short batches, and a search after the second failure.
func crashOptions(c *poller.RunnerConfig) {
	c.Options = poller.Options{BatchSize: 3, MaxBatch: 4, MaxAttempts: 2, Budget: 20 * time.Minute}
}

// crashWorld has a bad row, and a batch that takes longer than a heartbeat.
func crashWorld(t testing.TB) *world {
	w := newWorld(t)
	w.source.Append(crashRows)
	refuse := poisoned(6)
	w.deliver = func(ctx context.Context, d poller.Delivery) error {
		if d.Rows[0].Cursor.Value == "1" {
			wait(50 * time.Second)
		}
		return refuse(ctx, d)
	}
	return w
}

// live runs a process until it has nothing to do or cannot continue.
func (w *world) live(plan *faults.Plan) {
	r := w.process(plan, crashOptions)
	for range 6 {
		_, _ = r.Tick(w.t.Context())
		if plan.Crashed() {
			return
		}
		wait(time.Minute)
	}
}

// settle lets a process without faults finish, and checks the result.
func (w *world) settle(plans ...*faults.Plan) {
	w.t.Helper()
	faulty := 0
	for _, plan := range plans {
		plan.Wait()
		if plan.Done() {
			faulty++
		}
	}
	r := w.process(nil, crashOptions)
	for range 12 {
		wait(time.Hour)
		_, _ = r.Tick(w.t.Context())
		if d := w.document(); d.Cursor().Value == numberText(crashRows) && d.Failure == nil {
			break
		}
	}
	d := w.document()
	if d.Cursor().Value != numberText(crashRows) || d.Failure != nil || d.Lease.Owner != "" && time.Now().Before(d.Lease.Expires) {
		w.t.Errorf("it ended at %s, failure %+v, lease %+v", d.Cursor(), d.Failure, d.Lease)
	}
	delivered, quarantined := w.times()
	for _, n := range numbers(1, crashRows) {
		times := delivered[n] + quarantined[n]
		if (n == 6) != (quarantined[n] > 0) && faulty == 0 || times == 0 {
			w.t.Errorf("row %d: delivered %d times, quarantined %d times", n, delivered[n], quarantined[n])
		}
		if times > 1+faulty {
			w.t.Errorf("row %d passed %d times with %d faults", n, times, faulty)
		}
	}
	firsts := map[int]bool{}
	highest := 0
	for _, n := range w.delivered {
		if !firsts[n] && n < highest {
			w.t.Errorf("row %d came for the first time behind %d: %v", n, highest, w.delivered)
		}
		firsts[n], highest = true, max(highest, n)
	}
}

// Every call of the source, the handler and the store fails in every way: acquire, fetch, deliver, heartbeat, commit,
// quarantine, failure record, release. No row is lost, and only an uncommitted batch is delivered again.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	plan := &faults.Plan{}
	synctest.Test(t, func(t *testing.T) {
		w := crashWorld(t)
		w.live(plan)
		w.settle(plan)
	})
	seen := map[string]int{}
	for at, call := range plan.Calls() {
		seen[call.Operation]++
		for _, fault := range faults.Faults() {
			name := fmt.Sprintf("%02d-%s-%s", at+1, call.Operation, fault)
			if !sample.Keep(t, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				sample.Repeat(t)
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := crashWorld(t)
					plan := &faults.Plan{At: at + 1, Fault: fault}
					w.live(plan)
					w.settle(plan)
				})
			})
		}
	}
	for operation, least := range map[string]int{"Get": 3, "PutIf": 10, "Fetch": 5, "Deliver": 7, "Quarantine": 1} {
		if seen[operation] < least {
			t.Errorf("the scenario has %d calls of %s: %v", seen[operation], operation, seen)
		}
	}
}

// Two faults, one in each of two processes that share the work.
func TestPairsOfFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		plans := []*faults.Plan{}
		for i := range 2 {
			plans = append(plans, &faults.Plan{At: rapid.IntRange(1, 40).Draw(r, fmt.Sprint("at", i)),
				Fault: rapid.SampledFrom(faults.Faults()).Draw(r, fmt.Sprint("fault", i))})
		}
		apart := time.Duration(rapid.IntRange(0, 300).Draw(r, "apart")) * time.Second
		synctest.Test(t, func(t *testing.T) {
			w := crashWorld(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				wait(apart)
				w.live(plans[1])
			}()
			w.live(plans[0])
			<-done
			w.settle(plans...)
		})
	})
}
