package provisioning

import (
	"encoding/json"
	"slices"
)

// Declines says whether a webhook asks for a plan that is not among those given; with none, all are offered. It is for the
// intake, whose answer is what the marketplace waits ten seconds for: a queue may take longer. The run looks again, at
// what the marketplace itself says.
func Declines(body []byte, plans []string) bool {
	var d struct {
		document
		PlanID string `json:"planId"`
	}
	if len(plans) == 0 || json.Unmarshal(body, &d) != nil || d.PlanID == "" {
		return false
	}
	n, err := d.notice()
	if err != nil {
		return false
	}
	r, err := ruleOf(n.Action)
	return err == nil && r.action == ChangePlan && !slices.Contains(plans, d.PlanID)
}
