package update

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// TaskApproval is the name of the human task of an update that needs an approval. Its answer is a Decision.
const TaskApproval = "approve update"

// Decision is the decision of an approver.
type Decision struct {
	Approved bool `json:"approved"`
	// Note is the reason, up to 2,000 characters.
	Note string `json:"note,omitempty"`
}

// decisionForm is the JSON schema of a Decision.
const decisionForm = `{"type":"object","required":["approved"],"additionalProperties":false,
"properties":{"approved":{"type":"boolean","title":"Start the update"},"note":{"type":"string","title":"Why","maxLength":2000}}}`

// proposal is the payload of the task.
type proposal struct {
	InstanceID string   `json:"instanceId"`
	Version    string   `json:"version,omitempty"`
	Components []Target `json:"components"`
}

// approval waits for the requested decision; without a request, the update is approved. A missed deadline is a
// permanent error: the approver has not answered, and an operator has to be notified.
func approval(ctx *orchestrator.Context, r engine.Request[Input], a *ApprovalRequest) (orchestrator.Answer[Decision], error) {
	if a == nil {
		return orchestrator.Answer[Decision]{Output: Decision{Approved: true}}, nil
	}
	task := orchestrator.AskPerson[Decision](ctx, orchestrator.HumanTask{Name: TaskApproval, Roles: a.Roles, Assignee: a.Assignee, TenantID: a.TenantID,
		Payload: proposal{r.InstanceID, r.Input.Version, r.Input.Components}, Form: json.RawMessage(decisionForm), Due: a.deadline()})
	// A timeout ends the run without a failed call, so the next attempt starts over and does not reuse its timer. The
	// millisecond is from before that change: waiting updates have it in their rounds.
	timer := orchestrator.Timer(ctx, a.deadline()+time.Duration(ctx.Execution())*time.Millisecond)
	if orchestrator.Any(ctx, task, timer) == 0 {
		orchestrator.Cancel(ctx, timer)
		return task.Await()
	}
	orchestrator.Cancel(ctx, task)
	if _, err := timer.Await(); err != nil {
		return orchestrator.Answer[Decision]{}, err
	}
	return orchestrator.Answer[Decision]{}, orchestrator.Permanent(fmt.Errorf("nobody has approved the update within %v: retry it to ask again", a.deadline()))
}
