package hmac_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/secrets"
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
	// prepare sets the state up; beforeAdd, when set, is what another process does just before the first Add.
	prepare, beforeAdd func(t testing.TB, w *world)
}

var scenarios = []scenario{
	{name: "fresh"},
	{name: "after another slot", prepare: func(t testing.TB, w *world) { rotateAs(t, w, "before", "j0") }},
	{name: "others died", prepare: func(t testing.TB, w *world) { orphans(t, w, 3) }},
	{name: "done", prepare: func(t testing.TB, w *world) { rotateAs(t, w, slot, "j0") }},
	{name: "disabled by hand", prepare: disabledByHand},
	{name: "another is faster", beforeAdd: func(t testing.TB, w *world) { rotateAs(t, w, slot, "peer") }},
	{name: "another dies", beforeAdd: func(t testing.TB, w *world) { orphans(t, w, 1) }},
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
			if calls < 4 {
				t.Fatalf("the scenario makes %d calls; the decorators miss some", calls)
			}
			for at := 1; at <= calls; at++ {
				for _, how := range []string{crashBefore, crashAfter, appliedUnknown, unappliedUnknown, throttled} {
					t.Run(fmt.Sprintf("call %d %s", at, how), func(t *testing.T) { s.run(t, &trouble{at: at, how: how}) })
				}
			}
		})
	}
}

// run runs a scenario to its end, checks what is left, and returns the number of calls of the first process.
func (s scenario) run(t *testing.T, tr *trouble) int {
	t.Helper()
	w := newWorld(t)
	if s.prepare != nil {
		s.prepare(t, w)
	}
	steps := s.process(t, w, tr)
	var seen []any
	var out hmac.RotateOutput
	var notice hmac.NotifyOutput
	first := 0
	for try := 0; ; try++ {
		var err error
		if out, notice, err = both(t, steps); err == nil {
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
	w.checkSettled(t, out)
	if events := w.events(t); len(events) != 1 || events[0].ID != notice.EventID || !strings.Contains(string(events[0].Payload), out.Version) {
		t.Errorf("events: %v, want one, of version %s", events, out.Version)
	}
	again, noticeAgain, err := both(t, w.steps(t))
	if err != nil || again != out || noticeAgain != notice {
		t.Errorf("again: %+v, %+v, %v; want %+v, %+v", again, noticeAgain, err, out, notice)
	}
	w.checkSecret(t, append(seen, out, notice)...)
	return max(first, tr.seen)
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

// both runs the two steps, one after the other.
func both(t *testing.T, steps *hmac.Steps) (hmac.RotateOutput, hmac.NotifyOutput, error) {
	t.Helper()
	out, err := steps.Rotate(t.Context(), input(slot, "j1"))
	if err != nil {
		return out, hmac.NotifyOutput{}, err
	}
	notice, err := steps.Notify(t.Context(), hmac.NotifyInput{InstanceID: instance, TenantID: "t1", SecretName: out.SecretName, Version: out.Version})
	return out, notice, err
}
