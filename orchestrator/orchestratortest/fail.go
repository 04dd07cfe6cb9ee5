package orchestratortest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator"
)

// FailEverywhere runs a scenario as it is and then, for every attempt of every activity that ran, four times with a
// failure there: permanent or ordinary, before or after the activity's function has run. Later attempts of the same
// call fail, too, so the call fails for good. A run that fails because of that gets another attempt: a Retrying run
// gets its start message again; a Failed run is rewound, once.
//
// Each run is a subtest. It must end like the run without a failure, in status, output and error, or as Failed with
// the injected error of the call; and Check must not fail. Scenario.Fallback allows other outputs. Times, calls and
// the ledger are not compared, but Check sees them. So an engine fails its test if it succeeds on work that it undid,
// does work twice, or cannot continue after half of it, provided that Check or the fakes detect it.
//
// FailEverywhere calls scenario for every run, inside of the bubble, as in CrashEverywhere. See "Failures" in the
// package comment, and "Samples" for when a run tries only some of them.
func FailEverywhere[In, Out any](t *testing.T, scenario func(t *testing.T) Scenario[In, Out]) {
	t.Helper()
	failEverywhere(t, scenario, sample.Keep)
}

// failEverywhere is FailEverywhere for the failures whose names keep accepts.
func failEverywhere[In, Out any](t *testing.T, scenario func(t *testing.T) Scenario[In, Out], keep func(t testing.TB, name ...any) bool) {
	t.Helper()
	want := run(t, scenario, &faults.Plan{}, nil)
	if t.Failed() {
		return // failures would only report the same failure
	}
	for i, e := range want.Ledger {
		for _, applied := range []bool{false, true} {
			for _, permanent := range []bool{false, true} {
				f := &failing{call: e.Info.IdempotencyKey(), attempt: e.Info.Attempt, activity: e.Activity, applied: applied, permanent: permanent}
				name := fmt.Sprintf("%s-%d-%s", f.name(), i+1, e.Activity)
				if !keep(t, name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					sample.Repeat(t)
					got := run(t, scenario, &faults.Plan{}, f)
					switch {
					case !f.happened.Load():
						t.Errorf("this run did not come to the call %s: runs of the scenario differ", e)
					case !f.allows(want.ending(), got.ending(), got.Status, got.fallback):
						t.Errorf("a call that fails changes the outcome\nwithout: %s\nwith:    %s\n%v", want.ending(), got.ending(), got)
					}
				})
			}
		}
	}
}

// failing is the injected failure of a call. nil is none.
type failing struct {
	call      string // its idempotency key
	attempt   int    // the first attempt that fails
	activity  string
	applied   bool // the failure comes after the function has run
	permanent bool
	happened  atomic.Bool
}

// text returns the error of the call.
func (f *failing) text() string {
	return fmt.Sprintf("FailEverywhere made this call of %s fail", f.activity)
}

// name returns the name of the subtest.
func (f *failing) name() string {
	name := "ordinary"
	if f.permanent {
		name = "permanent"
	}
	if f.applied {
		return name + "-after"
	}
	return name + "-before"
}

// errorFor returns the injected error of an attempt; nil for none.
func (f *failing) errorFor(info orchestrator.ActivityInfo) error {
	if f == nil || info.IdempotencyKey() != f.call || info.Attempt < f.attempt {
		return nil
	}
	f.happened.Store(true)
	err := errors.New(f.text())
	if f.permanent {
		return orchestrator.Permanent(err)
	}
	return err
}

// allows reports whether a run may end with this result. fallback means that the code may return another output, and
// saw the failure.
func (f *failing) allows(want, got string, status orchestrator.Status, fallback bool) bool {
	return got == want || status == orchestrator.Failed && strings.Contains(got, f.text()) || status == orchestrator.Completed && fallback
}

// hasHappened reports whether the injected failure has happened; false without one.
func (f *failing) hasHappened() bool { return f != nil && f.happened.Load() }
