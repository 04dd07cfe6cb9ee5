package orders

import (
	"encoding/json"
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Decision is the approver's answer.
type Decision struct {
	Approve bool `json:"approve"`
}

// approve creates a user task, and treats a missing answer as a refusal. The task is in GET /api/tasks until it is
// answered or canceled.
func (s *engineSteps) approve(ctx *orchestrator.Context, tenant string, order Order, terms Terms) (bool, error) {
	asked := orchestrator.AskPerson[Decision](ctx, orchestrator.HumanTask{
		Name:     "approve order",
		Roles:    terms.Approvers,
		TenantID: tenant,
		Payload:  order,
		Form:     json.RawMessage(`{"type": "object", "properties": {"approve": {"type": "boolean"}}, "required": ["approve"]}`),
		Due:      terms.ApprovalFor / 2,
	})
	late := orchestrator.Timer(ctx, terms.ApprovalFor)
	if orchestrator.Any(ctx, asked, late) == 1 {
		orchestrator.Cancel(ctx, asked) // the task can no longer be answered
		return false, nil
	}
	answer, err := asked.Await()
	if err != nil {
		return false, fmt.Errorf("approval of order %s: %w", order.ID, err)
	}
	return answer.Output.Approve, nil
}
