package tasks

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// rowPrefix is the prefix of all rows of tasks in the partition of their orchestration.
const rowPrefix = "task-"

const endSuffix = "-end"

func (r Ref) key(suffix string) tables.Key {
	return tables.Key{Partition: tables.EscapeKey(r.Orchestration), Row: rowPrefix + r.ID + suffix}
}

func eventSuffix(seq int) string { return fmt.Sprintf("-%06d", seq) }

// Create returns the operations that insert a task, for the transaction of the round that creates it.
func Create(t Task) []tables.Op {
	e := Event{Kind: EventCreated, At: t.CreatedAt, Assignee: t.Assignee, Roles: t.Roles}
	t.Seq, t.ChangedAt = 1, t.CreatedAt
	return []tables.Op{tables.Insert(t.entity()), tables.Insert(e.entity(t.Ref, t.Seq))}
}

// Cancel returns the operation that cancels a task, for the transaction of the round that no longer waits for it. It
// fails if a person has completed the task.
func Cancel(r Ref, at time.Time, note string) tables.Op {
	return tables.Insert(End{Status: Canceled, At: at, Note: note}.entity(r))
}

// EndsTask reports whether a key is that of the end of a task.
func EndsTask(key tables.Key) bool {
	return strings.HasPrefix(key.Row, rowPrefix) && strings.HasSuffix(key.Row, endSuffix)
}

func (t Task) entity() tables.Entity {
	p := map[string]any{"Name": t.Name, "Orchestrator": t.Orchestrator, "CorrelationId": t.CorrelationID, "TenantId": t.TenantID,
		"Roles": textOf(t.Roles), "Assignee": t.Assignee, "AssigneeName": t.AssigneeName, "Seq": int64(t.Seq), "CreatedAtUtc": t.CreatedAt, "ChangedAtUtc": t.ChangedAt}
	if !t.DueAt.IsZero() {
		p["DueAtUtc"] = t.DueAt
	}
	tables.PutText(p, "Payload", string(t.Payload))
	tables.PutText(p, "Form", string(t.Form))
	return tables.Entity{Key: t.key(""), Properties: p}
}

// taskOf decodes a task's row.
func taskOf(r Ref, e tables.Entity) Task {
	t := Task{Ref: r, Name: e.String("Name"), Orchestrator: e.String("Orchestrator"), CorrelationID: e.String("CorrelationId"),
		TenantID: e.String("TenantId"), Roles: listOf(e.String("Roles")), Assignee: e.String("Assignee"), AssigneeName: e.String("AssigneeName"), Seq: int(e.Int("Seq")),
		CreatedAt: e.Time("CreatedAtUtc"), ChangedAt: e.Time("ChangedAtUtc"), DueAt: e.Time("DueAtUtc"), Status: Created, ETag: e.ETag,
		Payload: rawOf(tables.Text(e, "Payload")), Form: rawOf(tables.Text(e, "Form"))}
	if t.Assignee != "" {
		t.Status = Assigned
	}
	return t
}

func (e Event) entity(r Ref, seq int) tables.Entity {
	return tables.Entity{Key: r.key(eventSuffix(seq)), Properties: map[string]any{"Kind": string(e.Kind), "By": e.By, "ByName": e.ByName, "AtUtc": e.At,
		"Assignee": e.Assignee, "AssigneeName": e.AssigneeName, "Roles": textOf(e.Roles), "Note": e.Note}}
}

func eventOf(e tables.Entity) Event {
	return Event{Kind: EventKind(e.String("Kind")), By: e.String("By"), ByName: e.String("ByName"), At: e.Time("AtUtc"),
		Assignee: e.String("Assignee"), AssigneeName: e.String("AssigneeName"), Roles: listOf(e.String("Roles")), Note: e.String("Note")}
}

func (n End) entity(r Ref) tables.Entity {
	p := map[string]any{"Status": string(n.Status), "By": n.By, "ByName": n.ByName, "AtUtc": n.At, "Note": n.Note}
	tables.PutText(p, "Output", string(n.Output))
	return tables.Entity{Key: r.key(endSuffix), Properties: p}
}

func endOf(e tables.Entity) *End {
	return &End{Status: Status(e.String("Status")), By: e.String("By"), ByName: e.String("ByName"), At: e.Time("AtUtc"), Note: e.String("Note"), Output: rawOf(tables.Text(e, "Output"))}
}

// event returns the last event of an ended task.
func (n End) event(t Task) Event {
	kind := EventCompleted
	if n.Status == Canceled {
		kind = EventCancelled
	}
	return Event{Kind: kind, By: n.By, ByName: n.ByName, At: n.At, Assignee: t.Assignee, AssigneeName: t.AssigneeName, Roles: t.Roles, Note: n.Note}
}

func textOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	text, _ := json.Marshal(names) // strings always marshal
	return string(text)
}

// listOf returns the inverse of textOf. It returns no list for any other text.
func listOf(text string) []string {
	var names []string
	_ = json.Unmarshal([]byte(text), &names)
	return names
}

func rawOf(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}
