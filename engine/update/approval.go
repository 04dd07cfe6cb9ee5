package update

import (
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// EventApproval is the external event that an update waits for which needs an approval. Its data is a Decision.
const EventApproval = "approval"

// Decision is what a person says of an update.
type Decision struct {
	// CorrelationID names the update: those of an instance share an orchestration, so one that names another is passed
	// over.
	CorrelationID string `json:"correlationId"`
	Approved      bool   `json:"approved"`
	// By is who decided.
	By string `json:"by,omitempty"`
}

// approval waits for the decision that a message asks for; without one, it is given. When the deadline passes, that is
// an error that another attempt does not mend: a person has not answered, and another has to know.
func approval(ctx *orchestrator.Context, r engine.Request[Input]) (Decision, error) {
	if r.Input.Approval == nil {
		return Decision{Approved: true}, nil
	}
	deadline := r.Input.Approval.deadline()
	// An execution that follows a failed one would take over the timer that has passed, if it were for the same time.
	timer := orchestrator.Timer(ctx, deadline+time.Duration(ctx.Execution())*time.Millisecond)
	for {
		event := orchestrator.Event[Decision](ctx, EventApproval)
		if orchestrator.Any(ctx, event, timer) == 1 {
			if _, err := timer.Await(); err != nil {
				return Decision{}, err
			}
			orchestrator.Cancel(ctx, event)
			return Decision{}, orchestrator.Permanent(fmt.Errorf("nobody has approved the update within %v: retry it to ask again", deadline))
		}
		decision, err := event.Await()
		switch {
		case errors.Is(err, orchestrator.ErrCanceled):
			return Decision{}, err
		case err == nil && decision.CorrelationID == r.CorrelationID:
			orchestrator.Cancel(ctx, timer)
			return decision, nil
		}
		ctx.Logger().Warn("an approval of something else is passed over", "event", EventApproval, "for", decision.CorrelationID, "reason", err)
	}
}
