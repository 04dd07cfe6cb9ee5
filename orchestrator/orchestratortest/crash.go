package orchestratortest

import (
	"fmt"
	"testing"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
)

// CrashEverywhere runs a scenario without a crash, and then, for every storage call of the runtime, with a process
// that dies before the call and with one that dies after it; another process continues. Attempts, retries and rewinds
// are included. Each run is a subtest. It fails when status, output or error differ from the run without a crash, or
// when Check fails. The package comment lists the requirements for activities.
//
// CrashEverywhere calls scenario for every run, inside of the bubble, so that each run has new state for its
// activities. A crash takes almost no virtual time, but it changes times. Outputs are compared as values of Out: if
// real activities draw random values, or return times, choose an Out without them, or fake the activities.
//
// The section "Samples" of the package comment explains when a run tries only some of the crashes.
func CrashEverywhere[In, Out any](t *testing.T, scenario func(t *testing.T) Scenario[In, Out]) {
	t.Helper()
	counted := &faults.Plan{}
	want := run(t, scenario, counted, nil)
	if t.Failed() {
		return // crashes would only report the same failure
	}
	for i, call := range counted.Calls() {
		for _, fault := range []faults.Fault{faults.CrashBefore, faults.CrashAfter} {
			name := fmt.Sprintf("%s-%d-%s-%s", fault, i+1, call.Service, call.Operation)
			if !sample.Keep(t, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				sample.Repeat(t)
				got := run(t, scenario, &faults.Plan{At: i + 1, Fault: fault}, nil)
				if want.ending() != got.ending() {
					t.Errorf("the crash changes the outcome\nwithout: %s\nwith:    %s", want.ending(), got.ending())
				}
			})
		}
	}
}
