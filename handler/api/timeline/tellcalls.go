package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// call processes the calls of the code.
func (t *teller) call(e orchestrator.RoundEvent) bool {
	n := 0
	switch e.Kind {
	case "ActivityScheduled":
		n = t.called(e, orchestrator.ActivityCall, CallRunning)
	case "OrchestrationScheduled":
		n = t.called(e, orchestrator.OrchestrationCall, CallRunning)
		t.children = append(t.children, e.Child)
	case "EventAwaited":
		n = t.called(e, orchestrator.EventCall, CallAwaited)
	case "TimerScheduled":
		n = t.add(KindTimer, e, Item{Timer: &Timer{Where: t.where(), Call: e.Call, DueAt: e.Due, Status: CallRunning}})
	case "TaskCreated":
		t.asked = true
		n = t.add(KindTask, e, Item{Task: &Task{Where: t.where(), Call: e.Call, TaskID: taskID(t.execution, e.Call), Name: e.Name,
			What: tasks.EventCreated, Status: CallRunning}})
	default:
		return false
	}
	t.calls[e.Call] = openCall{n, e.Shielded}
	return true
}

func (t *teller) called(e orchestrator.RoundEvent, kind orchestrator.CallKind, s CallStatus) int {
	c := &Call{Where: t.where(), Call: e.Call, Type: kind, Name: e.Name, Status: s, ChildID: e.Child, Local: e.Local, Undoes: e.Undoes, Attempts: []Attempt{}}
	if kind != orchestrator.EventCall {
		c.Attempts = append(c.Attempts, Attempt{Attempt: 1, BeganAt: e.At})
	}
	return t.add(KindCall, e, Item{Call: c})
}

// taskID returns the waiting token of a call, which names its task.
func taskID(execution, call int) string { return fmt.Sprintf("%d-%d", execution, call) }

// result processes the result of a call. A result from an earlier execution belongs to that one's items.
func (t *teller) result(e orchestrator.RoundEvent) bool {
	c, open := t.calls[e.Call]
	status := CallCompleted
	switch e.Kind {
	case "ActivityCompleted", "OrchestrationCompleted", "TimerFired", "TaskCompleted":
	case "ActivityFailed", "OrchestrationFailed":
		status = CallFailed
	case "AttemptFailed":
		if open {
			t.attemptFailed(c.item, e)
		}
		return true
	case "CallCanceled":
		status = CallCanceled
	default:
		return false
	}
	if !open {
		return true // a second result changes nothing
	}
	delete(t.calls, e.Call)
	if e.Reused {
		t.items[c.item] = Item{}
		return true
	}
	i := &t.items[c.item]
	if i.Call != nil && len(i.Call.Attempts) > 0 {
		last := &i.Call.Attempts[len(i.Call.Attempts)-1]
		last.EndedAt, last.Error = e.At, failureOf(e.Failure)
	}
	if e.Kind == "TaskCompleted" {
		i.Task.By = e.Reason
	}
	t.end(c.item, status, e.At)
	return true
}

// attemptFailed ends an attempt; the next one starts when it is due.
func (t *teller) attemptFailed(n int, e orchestrator.RoundEvent) {
	c := t.items[n].Call
	if c == nil || len(c.Attempts) == 0 {
		return
	}
	last := &c.Attempts[len(c.Attempts)-1]
	last.Attempt, last.EndedAt, last.Error = e.Attempt, e.At, failureOf(e.Failure)
	c.Status = CallRetrying
	c.Attempts = append(c.Attempts, Attempt{Attempt: e.Attempt + 1, BeganAt: e.Due})
}

// interrupt ends the calls that a cancellation reaches.
func (t *teller) interrupt(at time.Time) {
	for call, c := range t.calls {
		if !c.shielded {
			t.end(c.item, CallCanceled, at)
			delete(t.calls, call)
		}
	}
}

// sent processes incoming and outgoing events.
func (t *teller) sent(e orchestrator.RoundEvent) bool {
	switch e.Kind {
	case "EventRaised":
		t.add(KindEvent, e, Item{Event: &Event{Where: t.where(), Name: redact.Text(e.Name), SignalID: e.Signal, SenderID: e.Sender}})
	case "EventPublished":
		p := &Publication{Where: t.where(), TenantID: e.Tenant, EventType: e.Name}
		if t.g.EventID != nil {
			p.EventID = t.g.EventID(e.Tenant, e.Name, e.Key)
		}
		if t.again("published", e.Tenant, e.Name, e.Key) {
			return true
		}
		t.add(KindPublication, e, Item{Publication: p})
	case "EventSent":
		if t.again("sent", e.Signal) {
			return true
		}
		t.add(KindLink, e, Item{Link: &Link{Where: t.where(), What: "EventSent", ToID: e.Child, Name: e.Name}})
	case "OrchestrationDetached":
		if t.again("started", e.Child) {
			return true
		}
		t.add(KindLink, e, Item{Link: &Link{Where: t.where(), What: "Started", ToID: e.Child, Name: e.Name}})
		t.children = append(t.children, e.Child)
	default:
		return false
	}
	return true
}

// again reports whether a message was sent before: another attempt decides it again, and the receiver drops it.
func (t *teller) again(what ...string) bool {
	key := strings.Join(what, "\n")
	if t.out[key] {
		return true
	}
	if t.out == nil {
		t.out = map[string]bool{}
	}
	t.out[key] = true
	return false
}
