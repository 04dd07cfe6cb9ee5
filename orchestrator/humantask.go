package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

// HumanTask describes a task for a person. It must be the same in every replay.
type HumanTask struct {
	// Name is the title of the task, 1 to 200 bytes. Required.
	Name string `json:"name"`
	// Roles are the roles that may claim the task; without any, everybody may.
	Roles []string `json:"roles,omitempty"`
	// Assignee is the first assignee: the id of a person, {tenant}/{object} of Microsoft Entra; "" leaves it
	// unassigned.
	Assignee string `json:"assignee,omitempty"`
	// TenantID is the tenant that the task belongs to, "" for the orchestration's own.
	TenantID string `json:"tenantId,omitempty"`
	// Payload is shown to the person, up to 64 KiB of JSON. It must not hold secrets.
	Payload any `json:"payload,omitempty"`
	// Form is a JSON schema of the answer, which is checked against it; nil allows any answer.
	Form json.RawMessage `json:"form,omitempty"`
	// Due is how long from now the task should take; 0 for no due time. It has no effect when it passes: see
	// Escalation.
	Due time.Duration `json:"due,omitempty"`
	// Escalation passes the task to others when it takes too long; nil does not.
	Escalation *Escalation `json:"escalation,omitempty"`
}

// Escalation defines the change to a task that takes too long.
type Escalation struct {
	// After is how long the task may be open. Required.
	After time.Duration `json:"after"`
	// Roles are the roles that may claim the task from then on; without any, they stay as they are. Assignee is the
	// assignee from then on; "" is none.
	Roles    []string `json:"roles,omitempty"`
	Assignee string   `json:"assignee,omitempty"`
}

// Answer is the answer of a person. By is the person's id, {tenant}/{object} of Microsoft Entra for callers of the
// API, and ByName the name at that time, for display.
type Answer[T any] struct {
	Output T      `json:"output"`
	By     string `json:"by"`
	ByName string `json:"byName,omitempty"`
}

// Who returns By, followed by ByName, for display.
func (a Answer[T]) Who() string {
	if a.ByName == "" || a.ByName == a.By {
		return a.By
	}
	return a.By + " (" + a.ByName + ")"
}

// maxOpenTasks bounds the open human tasks of an execution, because they all end in one transaction.
const maxOpenTasks = 40

// AskPerson creates a human task and returns a Future for the answer. The task is part of the round that decides on
// it, and ends once. It is completed by one person, or canceled because the call was canceled (Cancel) or the
// orchestration has ended. For a task with a timeout, use Any with a Timer, and then Cancel.
//
// An attempt that keeps the results of the previous one does not repeat answered questions. An execution has at most
// 40 open tasks.
func AskPerson[T any](ctx *Context, h HumanTask) *Future[Answer[T]] {
	if ctx.isCanceled() {
		return failedFuture[Answer[T]](ctx, canceledError(h.Name))
	}
	t, err := ctx.execution.ask(ctx, h)
	if err != nil {
		return failedFuture[Answer[T]](ctx, Permanent(fmt.Errorf("human task %.200q: %w", h.Name, err)))
	}
	answer := &Future[Answer[T]]{ctx: ctx, task: t}
	if h.Escalation == nil || t.done {
		return answer
	}
	watch := Go(ctx, func(ctx *Context) (struct{}, error) {
		late := Timer(ctx, h.Escalation.After)
		if Any(ctx, answer, late) == 0 || late.task.err != nil {
			Cancel(ctx, late)
			return struct{}{}, nil
		}
		ctx.execution.decide(event{Kind: taskEscalated, Task: t.number})
		return struct{}{}, nil
	})
	watch.task.awaited, t.awaited = true, false
	return answer
}

func (x *execution) ask(ctx *Context, h HumanTask) (*task, error) {
	if !x.signals {
		return nil, ErrNoSignals
	}
	input, err := marshal(h)
	if err != nil {
		return nil, err
	}
	if e := h.Escalation; e != nil && e.After <= 0 {
		return nil, fmt.Errorf("%w: an escalation needs a time after which it happens", tasks.ErrInvalid)
	}
	wanted, err := humanTaskOf(input)
	if err != nil {
		return nil, err
	}
	if e := h.Escalation; e != nil {
		later := wanted
		later.Roles, later.Assignee = e.Roles, e.Assignee
		if err := later.Validate(); err != nil {
			return nil, err
		}
	}
	if err := wanted.Validate(); err != nil {
		return nil, err
	}
	if x.openHumanTasks >= maxOpenTasks {
		return nil, fmt.Errorf("%w: %d tasks are open, which is the most", tasks.ErrInvalid, maxOpenTasks)
	}
	x.noteAction()
	x.openHumanTasks++
	t := x.add(task{kind: humanTask, name: strings.ToValidUTF8(h.Name, "\ufffd"), input: input, shielded: ctx.shielded})
	x.humanTasks = append(x.humanTasks, t)
	ctx.scope.add(t)
	x.decide(event{Kind: taskCreated, Task: t.number, Name: t.name, Payload: input, Shielded: t.shielded})
	return t, nil
}

// humanTaskOf decodes a recorded HumanTask.
func humanTaskOf(input json.RawMessage) (tasks.Task, error) {
	var h struct {
		HumanTask
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(input, &h); err != nil {
		return tasks.Task{}, err
	}
	return tasks.Task{Name: h.Name, Roles: h.Roles, Assignee: h.Assignee, TenantID: h.TenantID, Payload: h.Payload, Form: h.Form}, nil
}

// escalationOf decodes the escalation and the due time of a recorded HumanTask.
func escalationOf(input json.RawMessage) (HumanTask, error) {
	var h HumanTask
	err := json.Unmarshal(input, &h)
	return h, err
}

// Tasks returns the service through which people find and complete the human tasks of this runtime's orchestrations.
func (r *Runtime) Tasks() *tasks.Service {
	return tasks.NewService(tasks.Config{Tables: r.config.Tables, Table: r.config.Table, Index: r.config.TaskTable, Now: r.config.Now,
		Guard: func(ctx context.Context, ref tasks.Ref, at time.Time) error {
			return r.addParked(ctx, parkedEntry{id: ref.Orchestration, due: at, since: at, task: ref.ID})
		},
		Wake: func(ctx context.Context, ref tasks.Ref, at time.Time) error {
			return r.send(ctx, Signal{SignalID: fmt.Sprintf("%s:%s:%s", TaskCompleted, ref.Orchestration, ref.ID), InstanceID: ref.Orchestration,
				Type: TaskCompleted, WaitingToken: ref.ID, DueAtUtc: &at}, 0)
		}})
}

// taskOps returns the operations on human tasks of the round being committed: it creates new ones, and cancels those
// that the execution no longer needs.
func (d *driver) taskOps(p roundPart) []tables.Op {
	x := d.execution
	if len(x.humanTasks) == 0 {
		return nil
	}
	known := x.callsAfter(p.decided)
	var ops []tables.Op
	at := fromMicros(x.last)
	for _, t := range x.humanTasks {
		if t.done && !t.canceled {
			continue
		}
		ref := tasks.Ref{Orchestration: x.id, ID: x.token(t)}
		switch unwanted := d.noLongerWanted(t, p); {
		case t.number <= d.known && unwanted:
			ops = append(ops, tasks.Cancel(ref, at, ""))
		case t.number > d.known && t.number <= known && !unwanted: // a task that is canceled in the same turn is never created
			ops = append(ops, tasks.Create(d.humanTask(t))...)
		}
	}
	return ops
}

// noLongerWanted reports whether the execution does not need the task once this part of the turn is committed.
func (d *driver) noLongerWanted(t *task, p roundPart) bool {
	x := d.execution
	return p.whole && x.ended || t.canceled && t.canceledAt <= x.decisions-len(x.decided)+p.decided
}

// humanTask returns a task as its orchestration decided it.
func (d *driver) humanTask(t *task) tasks.Task {
	x := d.execution
	wanted, _ := humanTaskOf(t.input) // decoding succeeded before the decision
	wanted.Ref = tasks.Ref{Orchestration: x.id, ID: x.token(t)}
	wanted.Orchestrator, wanted.CorrelationID = x.name, x.correlationID
	wanted.TenantID = cmp.Or(wanted.TenantID, x.tenant)
	wanted.Status, wanted.CreatedAt = tasks.Created, fromMicros(t.began)
	if wanted.Assignee != "" {
		wanted.Status = tasks.Assigned
	}
	if h, err := escalationOf(t.input); err == nil && h.Due > 0 {
		wanted.DueAt = wanted.CreatedAt.Add(h.Due)
	}
	return wanted
}

// closeTasks drops the tasks that end in this committed part.
func (d *driver) closeTasks(p roundPart) {
	x := d.execution
	x.humanTasks = slices.DeleteFunc(x.humanTasks, func(t *task) bool { return d.noLongerWanted(t, p) || t.done && !t.canceled })
}

// learnAnswers learns the human tasks that people have completed.
func (d *driver) learnAnswers(ctx context.Context) error {
	d.checkTasks = false
	if len(d.execution.humanTasks) == 0 || d.execution.ended || d.execution.held {
		return nil
	}
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	service := d.rt.Tasks()
	for i := 0; i < len(d.execution.humanTasks); i++ { // an answer can cancel other tasks, which shortens the list
		t := d.execution.humanTasks[i]
		if t.done || t.number > d.known {
			continue
		}
		end, err := service.Ended(ctx, tasks.Ref{Orchestration: d.start.ID, ID: d.execution.token(t)})
		if err != nil {
			return err
		}
		if end == nil || end.Status != tasks.Completed {
			continue
		}
		said, err := marshal(Answer[json.RawMessage]{end.Output, end.By, end.ByName})
		if err != nil {
			return fmt.Errorf("the answer to task %s of %s: %w", t.name, d.start.ID, err) // unreachable: answers are JSON
		}
		if err := d.learn(event{Kind: taskCompleted, Task: t.number, Payload: said, Signal: &signalDetails{Reason: end.By}}); err != nil {
			return err
		}
	}
	return nil
}

// showTasks updates the index of human tasks after a round.
func (d *driver) showTasks(ctx context.Context, r round) error {
	service := d.rt.Tasks()
	summary := sync.OnceValue(func() []Call { return d.summary().Calls }) // computed once, because it goes over all rounds
	for _, events := range [][]event{r.Decided, r.Learned} {
		for _, e := range events {
			var err error
			switch e.Kind {
			case taskCreated, taskEscalated, callCanceled:
				if !d.mayConcern(e, humanTask) {
					continue
				}
				if calls := summary(); e.Task > 0 && e.Task <= len(calls) {
					err = d.showTask(ctx, service, e, calls[e.Task-1])
				}
			case executionCompleted, executionFailed, executionStopped, executionContinued, executionCanceled:
				for i, c := range summary() {
					if c.Kind == TaskCall && (c.EndedAt.IsZero() || c.canceledAt(e.At)) && err == nil {
						err = d.showTask(ctx, service, event{Kind: e.Kind, Task: i + 1}, c)
					}
				}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *driver) showTask(ctx context.Context, service *tasks.Service, e event, c Call) error {
	if c.Kind != TaskCall || c.Reused {
		return nil
	}
	ref := tasks.Ref{Orchestration: d.start.ID, ID: token(d.execution.number, e.Task)}
	if e.Kind == taskEscalated {
		h, err := escalationOf(c.Input)
		if err != nil || h.Escalation == nil {
			return err
		}
		return service.Escalate(ctx, ref, h.Escalation.Roles, h.Escalation.Assignee, fromMicros(e.At))
	}
	return d.rt.showTask(ctx, ref)
}

// showTask updates the index for a human task, if the task exists.
func (r *Runtime) showTask(ctx context.Context, ref tasks.Ref) error {
	service := r.Tasks()
	t, err := service.Get(ctx, ref)
	if errors.Is(err, tasks.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return service.Sync(ctx, t)
}

// activeTask returns the first open human task; nil for none.
func (x *execution) activeTask() *task {
	if x.openHumanTasks == 0 || x.ended {
		return nil
	}
	return x.humanTasks[slices.IndexFunc(x.humanTasks, func(t *task) bool { return !t.done })]
}

// TaskID returns the id, within the orchestration, of the human task that the call created (tasks.Ref); "" for other
// calls.
func (c Call) TaskID() string {
	if c.Kind != TaskCall {
		return ""
	}
	return token(c.origin.Execution, c.origin.Task)
}
