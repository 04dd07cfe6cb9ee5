package console

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The outcomes of rows: their marks, in words and in the chart.
const (
	good  = "good"
	bad   = "bad"
	open  = "open"
	plain = "plain"
)

// attempt is an attempt at a call.
type attempt struct {
	Attempt int        `json:"attempt"`
	BeganAt time.Time  `json:"beganAtUtc"`
	EndedAt time.Time  `json:"endedAtUtc"`
	Error   *itemError `json:"error"`
}

type itemError struct {
	Message Text `json:"message"`
	Code    Text `json:"code"`
}

// timelineItem is an item of the API's timeline, with the displayed parts: Kind names the member with the rest.
type timelineItem struct {
	At      time.Time `json:"atUtc"`
	EndedAt time.Time `json:"endedAtUtc"`
	Kind    string    `json:"kind"`
	Engine  Text      `json:"engine"`
}

// itemBody has the displayed members of all kinds. Each kind has few of them.
type itemBody struct {
	ID              Text      `json:"id"`
	OrchestrationID Text      `json:"orchestrationId"`
	Orchestrator    Text      `json:"orchestrator"`
	Name            Text      `json:"name"`
	Type            Text      `json:"type"`
	What            Text      `json:"what"`
	Status          Text      `json:"status"`
	Operation       Text      `json:"operation"`
	Reason          Text      `json:"reason"`
	EventType       Text      `json:"eventType"`
	Destination     Text      `json:"destination"`
	By              Text      `json:"by"`
	ByName          Text      `json:"byName"`
	Assignee        Text      `json:"assigneeName"`
	Notes           Text      `json:"notes"`
	Note            Text      `json:"note"`
	RequestID       Text      `json:"requestId"`
	SenderID        Text      `json:"senderId"`
	ToID            Text      `json:"toId"`
	RowKey          Text      `json:"rowKey"`
	ErrorMessage    Text      `json:"errorMessage"`
	ErrorCode       Text      `json:"errorCode"`
	Outcome         Text      `json:"outcome"`
	InstanceID      Text      `json:"instanceId"`
	DueAt           time.Time `json:"dueAtUtc"`
	SupersededBy    Text      `json:"supersededBy"`
	ParentID        Text      `json:"parentId"`
	Attempts        []attempt `json:"attempts"`
	Error           *anyError `json:"error"`
}

// anyError is an error of an item: a sentence, or one with a code.
type anyError struct{ itemError }

// UnmarshalJSON reads either.
func (e *anyError) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &e.Message)
	}
	return json.Unmarshal(text, &e.itemError)
}

// kinds returns the functions that fill the rows of items, by kind.
func kinds() map[string]func(b itemBody, engine Text, row *timelineRow) {
	return map[string]func(b itemBody, engine Text, row *timelineRow){
		"message": func(b itemBody, _ Text, r *timelineRow) {
			r.What, r.Detail, r.Link = "Message began "+b.OrchestrationID, b.RequestID, orchestrationLink(b.OrchestrationID)
		},
		"orchestration": func(b itemBody, _ Text, r *timelineRow) {
			r.What, r.Detail, r.Link = "Run "+b.ID, b.ErrorCode, orchestrationLink(b.ID)
			r.run, r.parent = b.ID, b.ParentID
		},
		"change": func(b itemBody, _ Text, r *timelineRow) { r.What, r.Detail = b.What, join(b.Reason, b.said()) },
		"call": func(b itemBody, _ Text, r *timelineRow) {
			r.What, r.Detail = join(b.Type, b.Name), lastError(b.Attempts)
		},
		"timer": func(b itemBody, _ Text, r *timelineRow) { r.What = "Timer" },
		"event": func(b itemBody, _ Text, r *timelineRow) { r.What, r.Detail = "Event "+b.Name, b.SenderID },
		"task": func(b itemBody, _ Text, r *timelineRow) {
			r.What, r.Detail = join("Task", b.Name, b.What), join(b.person(), b.Assignee, b.Note)
		},
		"publication": func(b itemBody, _ Text, r *timelineRow) { r.What, r.Detail = "Published "+b.EventType, b.said() },
		"delivery": func(b itemBody, _ Text, r *timelineRow) {
			r.What, r.Detail = "Delivery of "+b.EventType, join(b.Destination, b.said())
		},
		"link": func(b itemBody, _ Text, r *timelineRow) { r.What, r.Detail = join(b.What, b.Name), b.ToID },
		"history": func(b itemBody, _ Text, r *timelineRow) {
			r.What, r.Detail = join(b.Operation, "of", b.InstanceID), b.said()
		},
		"deadLetter": func(b itemBody, engine Text, r *timelineRow) {
			r.What, r.Detail, r.Link = "Dead letter", b.ErrorMessage, letterLink(engine, b.RowKey)
		},
		"deadLetterChange": func(b itemBody, engine Text, r *timelineRow) {
			r.What, r.Detail, r.Link = "Dead letter: "+b.What, join(b.By, b.Notes), letterLink(engine, b.RowKey)
		},
		"action": func(b itemBody, _ Text, r *timelineRow) {
			r.What, r.Detail, r.Status = join("Action", b.What), join(b.person(), b.Reason, b.said()), string(b.Outcome)
		},
	}
}

// rowOf makes a row of an item. An item of an unknown, newer kind is a row with its kind only.
func rowOf(raw json.RawMessage) timelineRow {
	var i timelineItem
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &i) != nil || json.Unmarshal(raw, &members) != nil {
		return timelineRow{What: "An item that cannot be read", Outcome: plain}
	}
	row := timelineRow{At: i.At, EndedAt: i.EndedAt, Kind: i.Kind, Engine: i.Engine, What: Text(i.Kind)}
	var b itemBody
	if fill, known := kinds()[i.Kind]; known && json.Unmarshal(members[i.Kind], &b) == nil {
		row.Status, row.Attempts, row.run = string(b.Status), b.Attempts, b.OrchestrationID
		fill(b, i.Engine, &row)
	}
	row.Outcome, row.Detail = outcome(row.Status, b.Error != nil), line(row.Detail)
	return row
}

// outcome marks a status.
func outcome(status string, failed bool) string {
	marks := map[string]string{"Completed": good, "Succeeded": good, "Done": good, "Delivered": good, "Resolved": good, "Fired": good,
		"Failed": bad, "Stalled": bad, "Dead": bad, "Terminated": bad, "Pending": open, "Running": open, "Retrying": open, "Awaited": open}
	if mark, ok := marks[status]; ok {
		return mark
	}
	if failed {
		return bad
	}
	return plain
}

// said returns the error of an item, "" for none.
func (b itemBody) said() Text {
	if b.Error == nil {
		return ""
	}
	return b.Error.Message
}

// person returns the user who did it.
func (b itemBody) person() Text {
	if b.ByName != "" {
		return b.ByName
	}
	return b.By
}

// lastError returns the error of the last failed attempt.
func lastError(all []attempt) Text {
	for n := len(all) - 1; n >= 0; n-- {
		if e := all[n].Error; e != nil {
			return Text(fmt.Sprintf("attempt %d: %s", all[n].Attempt, string(e.Message)))
		}
	}
	return ""
}

// join joins the nonempty parts.
func join(parts ...Text) Text {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, string(p))
		}
	}
	return Text(strings.Join(there, " "))
}
