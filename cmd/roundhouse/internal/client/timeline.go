package client

import (
	"encoding/json"
	"time"
)

// Timeline is a page of the events of a correlation id, oldest first; Truncated means that something is missing in
// all pages.
type Timeline struct {
	CorrelationID string            `json:"correlationId"`
	Items         []json.RawMessage `json:"items"`
	Truncated     bool              `json:"truncated"`
	Token         string            `json:"continuationToken,omitempty"`
}

// TimelineItem is one event of a timeline: exactly one pointer is set, or none for a newer kind.
type TimelineItem struct {
	ID      string    `json:"id"`
	At      time.Time `json:"atUtc"`
	EndedAt time.Time `json:"endedAtUtc"`
	Kind    string    `json:"kind"`
	Engine  string    `json:"engine"`

	History          *HistoryItem              `json:"history"`
	DeadLetter       *DeadLetterItem           `json:"deadLetter"`
	Orchestration    *OrchestrationItem        `json:"orchestration"`
	Change           *OrchestrationChange      `json:"change"`
	Message          *TimelineRun              `json:"message"`
	Call             *TimelineCall             `json:"call"`
	Timer            *TimelineTimer            `json:"timer"`
	Event            *TimelineEvent            `json:"event"`
	Task             *TimelineTask             `json:"task"`
	Publication      *TimelinePublication      `json:"publication"`
	Delivery         *TimelineDelivery         `json:"delivery"`
	Link             *TimelineLink             `json:"link"`
	DeadLetterChange *TimelineDeadLetterChange `json:"deadLetterChange"`
	Action           *TimelineAction           `json:"action"`
}

// TimelineAction is a caller's action on a run through an API.
type TimelineAction struct {
	TimelineRun
	What    string `json:"what"`
	By      string `json:"by"`
	ByName  string `json:"byName"`
	Reason  string `json:"reason"`
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
}

// TimelineRun identifies the run of an event.
type TimelineRun struct {
	OrchestrationID string `json:"orchestrationId"`
}

// TimelineCall is a call of a run.
type TimelineCall struct {
	TimelineRun
	Call     int    `json:"call"`
	Type     string `json:"type"`
	Name     string `json:"name"`
	Status   string `json:"status"`
	ChildID  string `json:"childId"`
	Attempts []struct {
		EndedAt time.Time `json:"endedAtUtc"`
		Error   *Failure  `json:"error"`
	} `json:"attempts"`
}

// TimelineTimer is a timer of a run.
type TimelineTimer struct {
	TimelineRun
	DueAt  time.Time `json:"dueAtUtc"`
	Status string    `json:"status"`
}

// TimelineEvent is an event that a run has received.
type TimelineEvent struct {
	TimelineRun
	Name     string `json:"name"`
	SenderID string `json:"senderId"`
}

// TimelineTask is an event of a human task.
type TimelineTask struct {
	TimelineRun
	TaskID       string `json:"taskId"`
	Name         string `json:"name"`
	What         string `json:"what"`
	Status       string `json:"status"`
	By           string `json:"by"`
	ByName       string `json:"byName"`
	Assignee     string `json:"assignee"`
	AssigneeName string `json:"assigneeName"`
}

// TimelinePublication is an event that a run has published.
type TimelinePublication struct {
	TimelineRun
	TenantID  string `json:"tenantId"`
	EventID   string `json:"eventId"`
	EventType string `json:"eventType"`
	Status    string `json:"status"`
	Error     string `json:"error"`
}

// TimelineDelivery is an attempt to deliver an event.
type TimelineDelivery struct {
	EventID     string `json:"eventId"`
	EventType   string `json:"eventType"`
	Destination string `json:"destination"`
	TookMs      int64  `json:"tookMs"`
	Error       string `json:"error"`
}

// TimelineLink is a run's start of another run, or an event sent to it.
type TimelineLink struct {
	TimelineRun
	What string `json:"what"`
	ToID string `json:"toId"`
	Name string `json:"name"`
}

// TimelineDeadLetterChange is a change of a dead letter.
type TimelineDeadLetterChange struct {
	RowKey string `json:"rowKey"`
	What   string `json:"what"`
	By     string `json:"by"`
	Notes  string `json:"notes"`
}
