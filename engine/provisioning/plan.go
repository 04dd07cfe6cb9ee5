package provisioning

import (
	"encoding/json"
	"slices"
)

// Declines reports whether a webhook asks for a plan outside of plans; without plans, all are offered. It is for the
// intake, whose answer the marketplace awaits for ten seconds: a queue may take longer. The run checks again, with
// the marketplace's own data.
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
