package provisioning_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/engine/provisioning"
)

// For any order and repetition of notices, state and plan are those of the newest notices that set them.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	states := map[provisioning.Action]provisioning.State{"Subscribe": "Active", "Suspend": "Suspended", "Reinstate": "Active", "Unsubscribe": "Removed",
		"ChangePlan": "", "ChangeQuantity": "", "Renew": ""}
	actions := []provisioning.Action{"Subscribe", "Suspend", "Reinstate", "ChangePlan", "ChangeQuantity", "Renew"}
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		w.has(t, subscription, provisioning.StateActive, began)
		steps, want, plan := w.steps(t), provisioning.StateActive, "silver"
		var notices []provisioning.RegisterInput
		sequence := rapid.SliceOfN(rapid.SampledFrom(actions), 1, 6).Draw(r, "actions")
		if rapid.Bool().Draw(r, "ends") {
			sequence = append(sequence, "Unsubscribe") // no action follows the end of a subscription
		}
		for n, action := range sequence {
			plan = fmt.Sprintf("plan-%d", n)
			notices = append(notices, provisioning.RegisterInput{InstanceID: subscription, Action: action, PlanID: plan,
				At: began.Add(time.Duration(n+1) * time.Minute), JobID: plan})
			if states[action] != "" {
				want = states[action]
			}
		}
		arrivals := append(rapid.Permutation(notices).Draw(r, "order"), rapid.SliceOfN(rapid.SampledFrom(notices), 0, 6).Draw(r, "again")...)
		for _, in := range arrivals {
			if _, err := steps.Register(t.Context(), in); err != nil {
				r.Fatal(err)
			}
		}
		if i := w.instance(t, subscription); i.State != want || i.PlanID != plan {
			r.Fatalf("%s with %s, want %s with %s", i.State, i.PlanID, want, plan)
		}
	})
}
