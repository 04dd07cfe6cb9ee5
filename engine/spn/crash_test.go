package spn_test

import (
	"slices"
	"testing"

	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Every call to storage, to the secret store and to Entra ID fails in every way, and the process dies there where it
// can. The run succeeds, one password is left, and its value is nowhere visible.
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
			enginetest.FailEverywhere(t, randomKeys, func(t *testing.T, plan *enginetest.Plan) {
				w := newWorld(t)
				prepare(t, w)
				w.Restart(plan)
				w.run(message)
				w.checkSettled(t)
				w.checkSecrets(t)
				entra := func(c enginetest.Call) bool { return c.Service != "entra" }
				if n := len(slices.DeleteFunc(plan.Calls(), entra)); plan.At == 0 && n < 6 {
					t.Fatalf("%d calls to Entra ID; the plan misses some", n)
				}
			})
		})
	}
}

// randomKeys skips a conflict where keys are random: that is the answer to a duplicate request.
func randomKeys(_ int, c enginetest.Call, f enginetest.Fault) bool {
	return f == faults.Conflict && c.Target == secrets.DevelopmentTable
}
