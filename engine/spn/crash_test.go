package spn_test

import (
	"fmt"
	"testing"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Every call to storage, to the secret store and to Entra ID goes wrong in every way, and the process dies there where it
// can. Whatever happens, the run succeeds, one password is left, and its value shows nowhere.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	scenarios := map[string]func(t *testing.T, w *world){
		"first":    func(*testing.T, *world) {},
		"replaces": func(t *testing.T, w *world) { rotated(t, w, "2026-10") },
		"orphan":   orphaned,
	}
	for name, prepare := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, plan *faults.Plan) {
				bubble(t, func(t *testing.T, w *world) {
					prepare(t, w)
					w.run(t, message, plan)
					w.checkSettled(t)
				})
			}
			count := &faults.Plan{}
			run(t, count)
			entraCalls := 0
			for _, c := range count.Calls() {
				if c.Service == "entra" {
					entraCalls++
				}
			}
			if entraCalls < 6 {
				t.Fatalf("%d calls to Entra ID; the plan misses some", entraCalls)
			}
			for at, call := range count.Calls() {
				for _, fault := range faults.Faults() {
					if fault == faults.Conflict && call.Target == secrets.DevelopmentTable {
						continue // its keys are random: a conflict there is the answer to a request that was sent twice
					}
					t.Run(fmt.Sprintf("%d-%s-%s-%s", at+1, call.Service, call.Operation, fault), func(t *testing.T) {
						run(t, &faults.Plan{At: at + 1, Fault: fault})
					})
				}
			}
		})
	}
}
