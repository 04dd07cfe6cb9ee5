package orchestratortest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// FailEverywhere runs a scenario as it is and then, for every attempt of every activity that ran, four times with a failure
// there: permanent or ordinary, before the activity's function has run or after it. From that attempt on, all of the same
// call fail, so the call fails for good. What fails by that gets a second chance: when it is Retrying, its start message
// comes again; when it is Failed, a person rewinds it, once.
//
// Each is a subtest. It has to end as the run without a failure does, in status, output and error, or as Failed with the
// error that the call was given; and Check must find no fault. Scenario.Fallback allows other outputs. Times, calls and the
// ledger are not compared: Check sees them. So an engine fails its own test that succeeds on work which it undid, does work
// twice, or cannot go on from half of it, as long as its Check, or its fakes, can tell.
//
// scenario is called for every run, inside of the bubble, as in CrashEverywhere. The package comment says more in
// "Second chances".
func FailEverywhere[In, Out any](t *testing.T, scenario func(t *testing.T) Scenario[In, Out]) {
	t.Helper()
	want := run(t, scenario, &faults.Plan{}, nil)
	if t.Failed() {
		return // failures would only say the same again
	}
	for i, e := range want.Ledger {
		for _, applied := range []bool{false, true} {
			for _, permanent := range []bool{false, true} {
				f := &failing{call: e.Info.IdempotencyKey(), attempt: e.Info.Attempt, activity: e.Activity, applied: applied, permanent: permanent}
				t.Run(fmt.Sprintf("%s-%d-%s", f.name(), i+1, e.Activity), func(t *testing.T) {
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

// failing is the call that fails in a run. nil is none.
type failing struct {
	call      string // its idempotency key
	attempt   int    // the first that fails
	activity  string
	applied   bool // the function has run
	permanent bool
	happened  atomic.Bool
}

// text is the error that the call is given.
func (f *failing) text() string {
	return fmt.Sprintf("FailEverywhere made this call of %s fail", f.activity)
}

// name is that of the subtest.
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

// errorFor is the error of an attempt; nil when it is not to fail.
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

// allows says that a run may end so. fallback says that its code may, and did, choose another output in the attempt that saw
// the failure.
func (f *failing) allows(want, got string, status orchestrator.Status, fallback bool) bool {
	return got == want || status == orchestrator.Failed && strings.Contains(got, f.text()) || status == orchestrator.Completed && fallback
}

// hasHappened says that there is such a failure, and that it has happened.
func (f *failing) hasHappened() bool { return f != nil && f.happened.Load() }
