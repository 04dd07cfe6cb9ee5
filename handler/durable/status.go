package durable

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/orchestrator"
)

// timeLayout is the extension's format of an instance's times.
const timeLayout = "2006-01-02T15:04:05Z"

// shown is an instance in the extension's form.
type shown struct {
	Name          string              `json:"name"`
	InstanceID    string              `json:"instanceId"`
	RuntimeStatus orchestrator.Status `json:"runtimeStatus"`
	Input         json.RawMessage     `json:"input"`
	CustomStatus  json.RawMessage     `json:"customStatus"`
	Output        json.RawMessage     `json:"output"`
	CreatedTime   string              `json:"createdTime"`
	LastUpdated   string              `json:"lastUpdatedTime"`
	HistoryEvents []historyEvent      `json:"historyEvents,omitempty"`
}

// status returns one instance.
func (s *server) status(in *call) (answer, error) {
	if _, err := s.own(in); err != nil {
		return answer{}, err
	}
	view, status, err := s.inspect(in, in.instance(), in.flag("showInput", true), in.flag("showHistory", false), in.flag("showHistoryOutput", false))
	if err != nil {
		return answer{}, err
	}
	switch status {
	case orchestrator.Completed, orchestrator.Terminated, orchestrator.Canceled:
		return document(http.StatusOK, view), nil
	case orchestrator.Failed:
		if in.flag("returnInternalServerErrorOnFailure", false) {
			return document(http.StatusInternalServerError, view), nil
		}
		return document(http.StatusOK, view), nil
	default:
		out := document(http.StatusAccepted, view)
		out.header = map[string]string{"Location": in.again(), "Retry-After": "5"}
		return out, nil
	}
}

// inspect reads an instance. Without input or history, an active one costs a read of one row.
func (s *server) inspect(in *call, id string, input, history, results bool) (shown, orchestrator.Status, error) {
	if !input && !history {
		summary, err := s.Runtime.Status(in.ctx, id)
		if err != nil || !summary.Ended() {
			return summaryOf(summary), summary.Status, err
		}
	}
	found, err := s.Runtime.Inspect(in.ctx, id)
	if err != nil {
		return shown{}, "", err
	}
	view := summaryOf(found.Summary)
	if input {
		view.Input = redact.JSON(inputOf(found))
	}
	view.Output = outputOf(found.Outcome)
	if history && found.Status != orchestrator.Pending {
		view.HistoryEvents = historyOf(found, input, results)
	}
	return view, found.Status, nil
}

func summaryOf(s orchestrator.Summary) shown {
	return shown{Name: s.Orchestrator, InstanceID: s.ID, RuntimeStatus: runtimeStatus(s.Status), CustomStatus: textOrJSON(s.CustomStatus),
		CreatedTime: timeOf(s.CreatedAt), LastUpdated: timeOf(s.UpdatedAt)}
}

// runtimeStatus converts a status to the extension's, which has no names for Retrying and Stalled: both have not
// ended, and continue by themselves.
func runtimeStatus(s orchestrator.Status) orchestrator.Status {
	if s == orchestrator.Retrying || s == orchestrator.Stalled {
		return orchestrator.Running
	}
	return s
}

func timeOf(t time.Time) string { return t.UTC().Format(timeLayout) }

// textOrJSON returns a text as JSON: unchanged, if it is JSON already.
func textOrJSON(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // strings always marshal
	return quoted
}

// outputOf returns the result of an instance without secrets, the text of its failure, or the reason of its
// termination; nothing for an active one.
func outputOf(out orchestrator.Outcome) json.RawMessage {
	if out.Ended() && out.Failure != nil {
		text := out.Failure.Message
		if out.Status == orchestrator.Terminated {
			text = out.Failure.Reason()
		}
		quoted, _ := json.Marshal(text) // strings always marshal
		return quoted
	}
	return redact.JSON(out.Output)
}
