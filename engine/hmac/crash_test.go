package hmac_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/services/secrets"
)

// scenario is a rotation from some initial state.
type scenario struct {
	name string
	// prepare sets the state up; beforeAdd, when set, is the action of another process just before the first Add, and
	// duringGrace one before the older keys are retired.
	prepare, beforeAdd, duringGrace func(t testing.TB, w *world)
	// left are the slots with a usable version at the end, the scenario's own when nil; "" means manual versions.
	left []string
}

var scenarios = []scenario{
	{name: "fresh"},
	{name: "after another slot", prepare: turned("before")},
	{name: "after two others and one made by hand", left: []string{"", slot},
		prepare: func(t testing.TB, w *world) { w.byHand(t); w.turn(t, "before"); w.turn(t, "after that") }},
	{name: "after another slot that nobody was told of", left: []string{slot, "before"},
		prepare: func(t testing.TB, w *world) { rotateAs(t, w, "before", "j0") }},
	{name: "others died", prepare: func(t testing.TB, w *world) { orphans(t, w, 3) }},
	{name: "done", prepare: func(t testing.TB, w *world) { rotateAs(t, w, slot, "j0") }},
	{name: "done and told", prepare: func(t testing.TB, w *world) { w.turn(t, "before"); w.turn(t, slot) }},
	{name: "disabled by hand", prepare: disabledByHand},
	{name: "another is faster", beforeAdd: func(t testing.TB, w *world) { rotateAs(t, w, slot, "peer") }},
	{name: "another dies", beforeAdd: func(t testing.TB, w *world) { orphans(t, w, 1) }},
	{name: "another slot comes before", prepare: turned("before"), beforeAdd: turned("overlaps")},
	{name: "another slot follows in the grace", left: []string{slot, "overlaps"}, prepare: turned("before"),
		duringGrace: func(t testing.TB, w *world) {
			w.move(w.clock().Add(time.Hour))
			w.turn(t, "overlaps")
		}},
	{name: "another slot follows and ends first", left: []string{"overlaps"}, prepare: turned("before"),
		duringGrace: func(t testing.TB, w *world) {
			w.move(w.clock().Add(time.Hour))
			later := w.turn(t, "overlaps")
			w.move(later.GraceEndsAtUtc)
			w.retire(t, later)
		}},
}

// turned is another process that rotates and announces a slot.
func turned(slot string) func(testing.TB, *world) {
	return func(t testing.TB, w *world) { w.turn(t, slot) }
}

func rotateAs(t testing.TB, w *world, slot, job string) {
	t.Helper()
	if _, err := w.steps(t).Rotate(t.Context(), input(slot, job)); err != nil {
		t.Fatal(err)
	}
}

// Each call of each scenario to the vault and the slots fails in each way, and then the steps run again until they
// succeed.
func TestCrashes(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			enginetest.FailEverywhere(t, randomKeys, s.run)
		})
	}
}

// result holds the outputs of a run's steps.
type result struct {
	made hmac.RotateOutput
	told hmac.NotifyOutput
}

// run runs a scenario to its end, and checks the result.
func (s scenario) run(t *testing.T, plan *enginetest.Plan) {
	t.Helper()
	w := newWorld(t)
	if s.prepare != nil {
		s.prepare(t, w)
	}
	steps, meanwhile := s.process(t, w, plan), sync.OnceFunc(func() {
		if s.duringGrace != nil {
			s.duringGrace(t, w)
		}
	})
	var seen []any
	var out result
	for try := 0; ; try++ {
		var err error
		if out, err = whole(t, steps, meanwhile); err == nil {
			break
		}
		seen = append(seen, err.Error())
		if try == 5 {
			t.Fatalf("no success after %d tries: %v", try, err)
		}
		if errors.Is(err, faults.ErrCrashed) {
			steps = w.steps(t) // the next process
		}
	}
	plan.Wait()
	if calls := len(plan.Calls()); plan.At == 0 && calls < 8 {
		t.Fatalf("the scenario makes %d calls; the plan misses some", calls)
	}
	s.check(t, w, out)
	again, err := whole(t, w.steps(t), func() {})
	if err != nil || again != out {
		t.Errorf("again: %+v, %v; want %+v", again, err, out)
	}
	s.check(t, w, out)
	w.checkSecret(t, append(seen, out)...)
}

// check compares the world with the end of a run: one event of it, and one usable version of each slot with a key.
func (s scenario) check(t *testing.T, w *world, out result) {
	t.Helper()
	told := 0
	for _, e := range w.outbox.Events() {
		if strings.Contains(string(e.Payload), `"version":"`+out.made.Version+`"`) && e.ID == out.told.EventID {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d events of version %s, want one: %v", told, out.made.Version, w.outbox.Events())
	}
	left := s.left
	if left == nil {
		left = []string{slot}
	}
	for _, name := range []string{"", slot, "before", "after that", "overlaps"} {
		usable, want := w.enabled(t, name), 0
		if slices.Contains(left, name) {
			want = 1
		}
		if len(usable) != want || want == 1 && name == slot && usable[0].Version != out.made.Version {
			t.Errorf("usable versions of slot %q: %v, want %d", name, usable, want)
		}
	}
}

// process returns the process that the plan breaks.
func (s scenario) process(t *testing.T, w *world, plan *enginetest.Plan) *hmac.Steps {
	t.Helper()
	met := s.beforeAdd == nil
	store := faults.Tables(w.tables, plan.Intercept)
	vault := secrets.NewDevelopment(faults.Tables(w.tables, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Apply" && !met {
			met = true
			s.beforeAdd(t, w)
		}
		return plan.Intercept(ctx, c, next)
	}))
	vault.Now = func() time.Time { return w.clock() }
	return w.stepsOver(t, vault, store)
}

// whole runs the steps, one after the other, with the grace in between.
func whole(t *testing.T, steps *hmac.Steps, meanwhile func()) (out result, err error) {
	t.Helper()
	if out.made, err = steps.Rotate(t.Context(), input(slot, "j1")); err != nil {
		return out, err
	}
	if out.told, err = steps.Notify(t.Context(), notice(out.made)); err != nil {
		return out, err
	}
	meanwhile()
	_, err = steps.Retire(t.Context(), retirement(out.told))
	return out, err
}
