// Package faultstest runs a test once for each fault at each storage call, or for a sample of them.
//
// A case has the name "fault-call" for any sample, and the output of a failed case ends with the command that repeats
// it. The package owns no storage keys.
package faultstest

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
)

// EachCall runs a scenario in a bubble of virtual time once for each fault at each call of an undisturbed run, and
// fails t when these calls are fewer than least. Cases run in parallel.
func EachCall(t *testing.T, kinds []faults.Fault, least int, run func(t *testing.T, plan *faults.Plan)) {
	t.Helper()
	var whole faults.Plan
	synctest.Test(t, func(t *testing.T) { run(t, &whole) })
	calls := len(whole.Calls())
	if calls < least {
		t.Fatalf("the scenario makes %d calls of storage, want %d or more", calls, least)
	}
	UpTo(t, kinds, calls, run)
}

// UpTo is EachCall for the first calls of a scenario.
func UpTo(t *testing.T, kinds []faults.Fault, calls int, run func(t *testing.T, plan *faults.Plan)) {
	t.Helper()
	for _, fault := range kinds {
		for at := 1; at <= calls; at++ {
			name := fmt.Sprint(fault, "-", at)
			if !sample.Keep(t, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				sample.Repeat(t)
				synctest.Test(t, func(t *testing.T) { run(t, &faults.Plan{At: at, Fault: fault}) })
			})
		}
	}
}
