package hmac_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

var errCrash = errors.New("the process is dead")

// The ways in which a call goes wrong.
const (
	crashBefore      = "crash before"
	crashAfter       = "crash after"
	appliedUnknown   = "applied, outcome unknown"
	unappliedUnknown = "not applied, outcome unknown"
	throttled        = "throttled"
)

// trouble counts the calls of a process and spoils one of them.
type trouble struct {
	mu   sync.Mutex
	at   int // the call that goes wrong, from 1; 0 for none
	how  string
	seen int
	dead bool
}

// around spoils a call of a store whose errors are the two given.
func (tr *trouble) around(unknown, busy error, do func() error) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.dead {
		return errCrash
	}
	tr.seen++
	if tr.seen != tr.at {
		return do()
	}
	switch tr.how {
	case crashBefore:
		tr.dead = true
		return errCrash
	case crashAfter:
		tr.dead = true
		return errors.Join(do(), errCrash)
	case appliedUnknown:
		return errors.Join(do(), unknown)
	case unappliedUnknown:
		return unknown
	default:
		return busy
	}
}

// scenario is a rotation from some state of the world.
type scenario struct {
	name string
	// prepare sets the state up; beforeAdd, when set, is what another process does just before the first Add, and duringGrace
	// what it does before the older keys are retired.
	prepare, beforeAdd, duringGrace func(t testing.TB, w *world)
	// left are the slots that have a usable version at the end, the scenario's own when nil; "" is for those made by hand.
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

// turned is another process that rotates a slot and tells of it.
func turned(slot string) func(testing.TB, *world) {
	return func(t testing.TB, w *world) { w.turn(t, slot) }
}

func rotateAs(t testing.TB, w *world, slot, job string) {
	t.Helper()
	if _, err := w.steps(t).Rotate(t.Context(), input(slot, job)); err != nil {
		t.Fatal(err)
	}
}

// TestCrashes spoils each store call of each scenario in each way, and then runs the steps again until they succeed.
func TestCrashes(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			calls := s.run(t, &trouble{})
			if calls < 8 {
				t.Fatalf("the scenario makes %d calls; the decorators miss some", calls)
			}
			for at := 1; at <= calls; at++ {
				for _, how := range []string{crashBefore, crashAfter, appliedUnknown, unappliedUnknown, throttled} {
					if !sample.Keep(t, at, how) {
						continue
					}
					t.Run(fmt.Sprintf("call %d %s", at, how), func(t *testing.T) { s.run(t, &trouble{at: at, how: how}) })
				}
			}
		})
	}
}

// result is what the steps of a run said.
type result struct {
	made hmac.RotateOutput
	told hmac.NotifyOutput
}

// run runs a scenario to its end, checks what is left, and returns the number of calls of the first process.
func (s scenario) run(t *testing.T, tr *trouble) int {
	t.Helper()
	w := newWorld(t)
	if s.prepare != nil {
		s.prepare(t, w)
	}
	steps, meanwhile := s.process(t, w, tr), sync.OnceFunc(func() {
		if s.duringGrace != nil {
			s.duringGrace(t, w)
		}
	})
	var seen []any
	var out result
	first := 0
	for try := 0; ; try++ {
		var err error
		if out, err = whole(t, steps, meanwhile); err == nil {
			break
		}
		seen = append(seen, err.Error())
		if try == 5 {
			t.Fatalf("no success after %d tries: %v", try, err)
		}
		if errors.Is(err, errCrash) {
			first = max(first, tr.seen)
			steps = w.steps(t) // the next process
		}
	}
	s.check(t, w, out)
	again, err := whole(t, w.steps(t), func() {})
	if err != nil || again != out {
		t.Errorf("again: %+v, %v; want %+v", again, err, out)
	}
	s.check(t, w, out)
	w.checkSecret(t, append(seen, out)...)
	return max(first, tr.seen)
}

// check holds the world against the end of a run: one event of it, and of each slot that has a key one that is usable.
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

// process is the process that meets the trouble.
func (s scenario) process(t *testing.T, w *world, tr *trouble) *hmac.Steps {
	t.Helper()
	met := s.beforeAdd == nil
	vault := vaultHook{w.vault, func(call string, do func() error) error {
		if call == "Add" && !met {
			met = true
			s.beforeAdd(t, w)
		}
		return tr.around(secrets.ErrOutcomeUnknown, secrets.ErrThrottled, do)
	}}
	store := tablesHook{w.tables, func(_ string, do func() error) error {
		return tr.around(tables.ErrOutcomeUnknown, tables.ErrThrottled, do)
	}}
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
