package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/orchestrator"
)

// lateAfter is the delay from which a wait for a time counts as late: its message takes that long at most.
const lateAfter = time.Minute

// allStatuses returns those that an orchestration can have.
func allStatuses() []orchestrator.Status {
	return []orchestrator.Status{orchestrator.Pending, orchestrator.Running, orchestrator.Suspended, orchestrator.Retrying, orchestrator.Stalled,
		orchestrator.Completed, orchestrator.Failed, orchestrator.Terminated, orchestrator.Canceled}
}

// waitingItem describes the wait of an orchestration. A stalled one waits for its code, regardless of its row.
type waitingItem struct {
	WaitingFor   string    `json:"waitingFor,omitempty"`
	WaitingUntil time.Time `json:"waitingUntilUtc,omitzero"`
	// Late means that the time of the wait has passed without an effect.
	Late bool `json:"late,omitempty"`
}

func (a *api) waitingItemOf(s orchestrator.Summary) waitingItem {
	if s.Status == orchestrator.Stalled {
		return waitingItem{}
	}
	late := s.Status == orchestrator.Running && !s.WaitingUntil.IsZero() && a.now().Sub(s.WaitingUntil) > lateAfter
	return waitingItem{s.WaitingKind, s.WaitingUntil, late}
}

// statusSince returns when the attempt of a Retrying orchestration failed, or when it stalled; zero in other states.
func statusSince(in orchestrator.Inspection) time.Time {
	switch in.Outcome.Status {
	case orchestrator.Retrying:
		return in.Outcome.EndedAt
	case orchestrator.Stalled:
		for _, r := range slices.Backward(in.Rounds) {
			for _, e := range slices.Backward(r.Learned) {
				if e.Kind == "ExecutionStalled" {
					return e.At
				}
			}
		}
	}
	return time.Time{}
}

// shownPendingEvents returns the pending events in the form of the answers.
func shownPendingEvents(in orchestrator.Inspection) []string {
	names := pendingEvents(in)
	for i, name := range names {
		names[i] = redact.Text(name)
	}
	return names
}

// pendingEvents returns the names of received events that no wait has consumed. The state has them unless the code
// does not run: when the run is stalled, or between two attempts. Then waits have consumed the earlier events of
// their names.
func pendingEvents(in orchestrator.Inspection) []string {
	var before, since []string
	idle := false
	for _, r := range in.Rounds {
		for _, e := range r.Learned {
			switch e.Kind {
			case "ExecutionStalled":
				idle = true
			case "ExecutionRecovered":
				idle, before, since = false, append(before, since...), nil
			case "EventRaised":
				if idle {
					since = append(since, e.Name)
				} else {
					before = append(before, e.Name)
				}
			}
		}
		for _, e := range r.Decided {
			idle = idle || e.Kind == "ExecutionFailed"
		}
	}
	if !idle || in.Outcome.Ended() {
		var state struct {
			ContinuationBuffer []string `json:"continuationBuffer"`
		}
		if in.State != nil {
			_ = json.Unmarshal(in.State, &state) // the runtime writes it
		}
		return append([]string{}, state.ContinuationBuffer...)
	}
	for _, c := range in.Outcome.Calls {
		if c.Kind != orchestrator.EventCall || !c.EndedAt.IsZero() {
			continue
		}
		if i := slices.IndexFunc(before, func(name string) bool { return strings.EqualFold(name, c.Name) }); i >= 0 {
			before = slices.Delete(before, i, i+1)
		}
	}
	all := append(append([]string{}, before...), since...)
	return all[:min(len(all), maxWaits)]
}

// noticeOf states when a command or an event takes effect, if that is later than its delivery.
func noticeOf(s orchestrator.Status, p orchestrator.Payload) string {
	switch {
	case s == orchestrator.Stalled && p.Command != "terminate":
		return "It is stalled: this takes effect when its code can go on. Terminate ends it at once."
	case s == orchestrator.Retrying && (p.Command == "suspend" || p.Command == "resume" || p.Event != ""):
		return "An attempt has failed: this is for the next one."
	default:
		return ""
	}
}

// whyActive explains ErrActive by the state of the orchestration. Other errors are returned unchanged.
func (a *api) whyActive(ctx context.Context, id string, err error) error {
	if !errors.Is(err, orchestrator.ErrActive) {
		return err
	}
	s, unknown := a.runtime.Status(ctx, id)
	switch {
	case unknown != nil:
		return err
	case s.Status == orchestrator.Retrying:
		return activeFailure("An attempt has failed and another one follows by itself. Wait for that, or terminate the orchestration.")
	case s.Status == orchestrator.Stalled:
		return activeFailure("Its code cannot go on: its failure says why. It goes on by itself when the code is mended. Wait for its end, or terminate it.")
	case s.Ended():
		return activeFailure("An orchestration that it called has not ended. Wait for its end, or terminate that one.")
	default:
		return err
	}
}

// activeFailure returns the answer to a request that needs an ended orchestration.
func activeFailure(text string) *failure {
	return &failure{status: http.StatusConflict, header: map[string]string{"Retry-After": retryAfter}, problem: problem{Code: codeActive, Message: text}}
}
