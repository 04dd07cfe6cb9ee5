package durable

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/orchestrator"
)

// historyEvent is an event of an instance in the extension's form: an ended call is one event.
type historyEvent struct {
	EventType           string
	FunctionName        string              `json:",omitempty"`
	Name                string              `json:",omitempty"`
	InstanceID          string              `json:"InstanceId,omitempty"`
	Input               json.RawMessage     `json:",omitempty"`
	Result              json.RawMessage     `json:",omitempty"`
	Reason              string              `json:",omitempty"`
	Details             string              `json:",omitempty"`
	OrchestrationStatus orchestrator.Status `json:",omitempty"`
	FireAt              time.Time           `json:",omitzero"`
	ScheduledTime       time.Time           `json:",omitzero"`
	Timestamp           time.Time
}

// teller converts rounds to the events of the extension.
type teller struct {
	found          orchestrator.Inspection
	input, results bool
	events         []historyEvent
	open           map[int]orchestrator.RoundEvent // calls that have not ended, by number
	at             map[int]int                     // indexes of their events
	folded         []int                           // events that became part of others
}

// historyOf returns the latest execution of an instance, event by event.
func historyOf(found orchestrator.Inspection, input, results bool) []historyEvent {
	t := teller{found: found, input: input, results: results, open: map[int]orchestrator.RoundEvent{}, at: map[int]int{}}
	for _, r := range found.Rounds {
		for _, e := range r.Learned {
			t.learned(e)
		}
		for _, e := range r.Decided {
			t.decided(e)
		}
	}
	slices.Sort(t.folded)
	for _, i := range slices.Backward(t.folded) {
		t.events = slices.Delete(t.events, i, i+1)
	}
	return t.events
}

func (t *teller) add(h historyEvent, e orchestrator.RoundEvent) {
	h.Timestamp = e.At
	t.events = append(t.events, h)
}

func (t *teller) learned(e orchestrator.RoundEvent) {
	switch e.Kind {
	case "ExecutionStarted":
		t.add(historyEvent{EventType: e.Kind, FunctionName: e.Name, Input: t.asInput(e.Payload)}, e)
	case "ActivityCompleted":
		t.ended(e, historyEvent{EventType: "TaskCompleted", Result: t.asResult(e.Payload)})
	case "ActivityFailed":
		t.ended(e, historyEvent{EventType: "TaskFailed", Reason: e.Failure.Message, Details: e.Failure.Code})
	case "OrchestrationCompleted":
		t.ended(e, historyEvent{EventType: "SubOrchestrationInstanceCompleted", Result: t.asResult(e.Payload)})
	case "OrchestrationFailed":
		t.ended(e, historyEvent{EventType: "SubOrchestrationInstanceFailed", Reason: e.Failure.Message, Details: e.Failure.Code})
	case "TimerFired":
		due := t.open[e.Call].Due
		delete(t.open, e.Call)
		t.add(historyEvent{EventType: e.Kind, FireAt: due}, e)
	case "EventRaised":
		t.add(historyEvent{EventType: e.Kind, Name: redact.Text(e.Name), Input: t.asInput(e.Payload)}, e)
	case "ExecutionSuspended", "ExecutionResumed", "ExecutionTerminated":
		t.add(historyEvent{EventType: e.Kind, Reason: e.Reason}, e)
	}
}

func (t *teller) decided(e orchestrator.RoundEvent) {
	begun := func(h historyEvent) {
		t.open[e.Call], t.at[e.Call] = e, len(t.events)
		t.add(h, e)
	}
	switch e.Kind {
	case "ActivityScheduled":
		begun(historyEvent{EventType: "TaskScheduled", Name: e.Name, Input: t.asInput(e.Payload)})
	case "OrchestrationScheduled":
		begun(historyEvent{EventType: "SubOrchestrationInstanceCreated", Name: e.Name, InstanceID: e.Child, Input: t.asInput(e.Payload)})
	case "TimerScheduled":
		begun(historyEvent{EventType: "TimerCreated", FireAt: e.Due})
	case "ExecutionCompleted", "ExecutionFailed", "ExecutionStopped":
		if out := t.found.Outcome; !out.Ended() || !e.At.Equal(out.EndedAt) {
			return // an attempt that another one follows, or that was stopped later
		}
		h := historyEvent{EventType: "ExecutionCompleted", OrchestrationStatus: t.found.Outcome.Status}
		if t.results {
			h.Result = outputOf(t.found.Outcome)
		}
		t.add(h, e)
	case "ExecutionContinuedAsNew":
		t.add(historyEvent{EventType: "ContinueAsNew"}, e)
	}
}

// ended merges the beginning and the end of a call into one event.
func (t *teller) ended(e orchestrator.RoundEvent, h historyEvent) {
	begun, ok := t.open[e.Call]
	if !ok {
		return // a second result changes nothing
	}
	delete(t.open, e.Call)
	t.folded = append(t.folded, t.at[e.Call])
	h.FunctionName, h.ScheduledTime, h.InstanceID, h.Input = begun.Name, begun.At, begun.Child, t.asInput(begun.Payload)
	t.add(h, e)
}

func (t *teller) asInput(payload json.RawMessage) json.RawMessage {
	if !t.input {
		return nil
	}
	return redact.JSON(payload)
}

func (t *teller) asResult(payload json.RawMessage) json.RawMessage {
	if !t.results {
		return nil
	}
	return redact.JSON(payload)
}
