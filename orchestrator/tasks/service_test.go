package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a service on tables in memory, with the wake-ups that it sends to orchestrations.
type fixture struct {
	*tasks.Service
	store           tables.Store
	clock           time.Time
	guarded, woken  []tasks.Ref
	guardErr, wakes error
}

func newFixture(t interface{ Fatal(...any) }, store tables.Store) *fixture {
	o := &fixture{store: store, clock: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	for _, table := range []string{"orchestrations", "index"} {
		if err := store.CreateTable(context.Background(), table); err != nil && !errors.Is(err, tables.ErrExists) {
			t.Fatal(err)
		}
	}
	o.Service = o.service(store)
	return o
}

// service makes another service of the fixture, on a store of its own.
func (o *fixture) service(store tables.Store) *tasks.Service {
	return tasks.NewService(tasks.Config{Tables: store, Table: "orchestrations", Index: "index",
		Now: func() time.Time { o.clock = o.clock.Add(time.Second); return o.clock },
		Guard: func(_ context.Context, r tasks.Ref, _ time.Time) error {
			o.guarded = append(o.guarded, r)
			return o.guardErr
		},
		Wake: func(_ context.Context, r tasks.Ref, _ time.Time) error { o.woken = append(o.woken, r); return o.wakes }})
}

// ask creates a task as a round does.
func (o *fixture) ask(t interface{ Fatal(...any) }, id string, change func(*tasks.Task)) tasks.Ref {
	task := tasks.Task{Ref: tasks.Ref{Orchestration: id, ID: "1-1"}, Name: "approve", Orchestrator: "update", TenantID: "red", Status: tasks.Created,
		Roles: []string{"approver"}, CreatedAt: o.clock, Form: json.RawMessage(`{"type":"boolean"}`)}
	if change != nil {
		change(&task)
	}
	ctx := context.Background()
	err := o.store.Apply(ctx, "orchestrations", tasks.Create(task)...)
	if err == nil {
		task, err = o.Get(ctx, task.Ref)
	}
	if err == nil {
		err = o.Sync(ctx, task)
	}
	if err != nil {
		t.Fatal(err)
	}
	return task.Ref
}

func people() map[string]tasks.Person {
	return map[string]tasks.Person{
		"ann": {ID: "ann", Name: "The name of ann", Roles: []string{"Approver"}}, "bob": {ID: "bob", Name: "The name of bob", Roles: []string{"reader", "approver"}, TenantID: "RED"},
		"eve": {ID: "eve", Name: "The name of eve", Roles: []string{"reader"}}, "kim": {ID: "kim", Name: "The name of kim", All: true}, "blue": {ID: "sue", Name: "The name of sue", Roles: []string{"approver"}, TenantID: "blue"},
	}
}

// action is one call of a person.
type action struct {
	what, who, to string
	answer        bool
}

func (a action) do(ctx context.Context, d *tasks.Service, r tasks.Ref) error {
	by := people()[a.who]
	var err error
	switch a.what {
	case "claim":
		_, err = d.Claim(ctx, r, by, "")
	case "release":
		_, err = d.Release(ctx, r, by, "", "note")
	case "assign":
		_, err = d.Assign(ctx, r, by, tasks.Person{ID: a.to}, "", "note")
	case "escalate":
		err = d.Escalate(ctx, r, []string{"reader"}, "", time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
	case "complete":
		_, err = d.Complete(ctx, r, by, fmt.Append(nil, a.answer), "", "")
	}
	return err
}

// model is the expected state of a task.
type model struct {
	assignee, endedBy string
	releasedBy        string // the user of the last release
	roles             []string
	answer            bool
	ended             tasks.Status
	events            []tasks.EventKind
	escalated         bool
}

// expect applies the action to the model, and returns the expected error.
func (m *model) expect(a action) error {
	p := people()[a.who]
	mine := m.assignee != "" && strings.EqualFold(m.assignee, p.ID)
	may := p.All || slices.ContainsFunc(p.Roles, func(has string) bool {
		return slices.ContainsFunc(m.roles, func(role string) bool { return strings.EqualFold(role, has) })
	})
	note := func(kind tasks.EventKind) { m.events = append(m.events, kind) }
	switch {
	case a.what == "escalate":
		if m.ended == "" && !m.escalated {
			m.escalated, m.roles, m.assignee = true, []string{"reader"}, ""
			note(tasks.EventEscalated)
		}
		return nil
	case p.TenantID == "blue":
		return tasks.ErrNotFound
	case a.what == "claim" && m.ended == "" && mine:
		return nil
	case a.what == "claim" && !may:
		return tasks.ErrForbidden
	case a.what == "complete" && m.ended == tasks.Completed && strings.EqualFold(m.endedBy, p.ID) && m.answer == a.answer:
		return nil
	case m.ended != "", a.what == "claim" && m.assignee != "":
		return tasks.ErrConflict
	}
	switch a.what {
	case "claim":
		m.assignee = p.ID
		note(tasks.EventAssigned)
	case "release":
		switch {
		case m.assignee == "" && !may && !(m.events[len(m.events)-1] == tasks.EventReleased && strings.EqualFold(m.releasedBy, p.ID)):
			return tasks.ErrForbidden
		case m.assignee == "":
			return nil
		case !mine && !p.All:
			return tasks.ErrForbidden
		}
		m.assignee, m.releasedBy = "", p.ID
		note(tasks.EventReleased)
	case "assign":
		kind := tasks.EventAssigned
		switch {
		case strings.EqualFold(a.to, m.assignee):
			return nil
		case m.assignee == "" && !may, m.assignee != "" && !mine && !p.All:
			return tasks.ErrForbidden
		case m.assignee != "":
			kind = tasks.EventReassigned
		}
		m.assignee = a.to
		note(kind)
	case "complete":
		switch {
		case m.assignee != "" && !mine && !p.All && may:
			return tasks.ErrConflict
		case m.assignee != "" && !mine && !p.All, m.assignee == "" && !may:
			return tasks.ErrForbidden
		}
		m.ended, m.endedBy, m.answer = tasks.Completed, p.ID, a.answer
		note(tasks.EventCompleted)
	}
	return nil
}

func (m *model) status() tasks.Status {
	switch {
	case m.ended != "":
		return m.ended
	case m.assignee != "":
		return tasks.Assigned
	}
	return tasks.Created
}

// check compares the task and every list with the model.
func (m *model) check(o *fixture, r tasks.Ref) error {
	ctx := context.Background()
	task, err := o.Get(ctx, r)
	if err != nil {
		return err
	}
	var events []tasks.EventKind
	for _, e := range task.Events {
		events = append(events, e.Kind)
	}
	if diff := cmp.Diff(m.events, events); diff != "" {
		return fmt.Errorf("events (-want +got):\n%s", diff)
	}
	if task.Status != m.status() || task.Assignee != m.assignee || !slices.Equal(task.Roles, m.roles) || m.ended != "" && (task.End.By != m.endedBy || string(task.End.Output) != fmt.Sprint(m.answer)) {
		return fmt.Errorf("the task is %+v, the model %+v", task, m)
	}
	open := m.ended == ""
	for _, c := range []struct {
		f    tasks.Filter
		want bool
	}{
		{tasks.Filter{}, open}, {tasks.Filter{TenantID: "Red"}, open}, {tasks.Filter{TenantID: "blue"}, false}, {tasks.Filter{Orchestrator: "update"}, open},
		{tasks.Filter{Assignee: "ann"}, open && m.assignee == "ann"}, {tasks.Filter{Assignee: "bob"}, open && m.assignee == "bob"},
		{tasks.Filter{Role: "approver"}, open && slices.Contains(m.roles, "approver")}, {tasks.Filter{Role: "READER"}, open && slices.Contains(m.roles, "reader")},
		{tasks.Filter{Status: tasks.Created}, m.status() == tasks.Created}, {tasks.Filter{Status: tasks.Assigned}, m.status() == tasks.Assigned},
		{tasks.Filter{Status: tasks.Completed}, m.ended == tasks.Completed}, {tasks.Filter{Status: tasks.Canceled}, false},
	} {
		page, err := o.List(ctx, c.f, 10, "")
		if err != nil {
			return err
		}
		if listed := slices.ContainsFunc(page.Tasks, func(t tasks.Task) bool { return t.Ref == r }); listed != c.want {
			return fmt.Errorf("listed by %+v: %v; the task is %s of %q", c.f, listed, task.Status, task.Assignee)
		}
	}
	return nil
}

func newModel() *model {
	return &model{roles: []string{"approver"}, events: []tasks.EventKind{tasks.EventCreated}}
}

// After any sequence of actions, tasks, events, errors and lists equal those of the model.
func TestDeskIsAsItsModel(t *testing.T) {
	t.Parallel()
	sample.Rapid(t)
	rapid.Check(t, func(t *rapid.T) {
		o := newFixture(t, tables.NewMemory())
		refs := []tasks.Ref{o.ask(t, "a", nil), o.ask(t, "b'/ é", nil)}
		models := []*model{newModel(), newModel()}
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			i := rapid.IntRange(0, 1).Draw(t, "task")
			a := action{what: rapid.SampledFrom([]string{"claim", "release", "assign", "escalate", "complete"}).Draw(t, "what"),
				who: rapid.SampledFrom([]string{"ann", "bob", "eve", "kim", "blue"}).Draw(t, "who"),
				to:  rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "to"), answer: rapid.Bool().Draw(t, "answer")}
			want := models[i].expect(a)
			if err := a.do(context.Background(), o.Service, refs[i]); !errors.Is(err, want) {
				t.Fatalf("%+v: %v, want %v", a, err, want)
			}
			for i := range refs {
				if err := models[i].check(o, refs[i]); err != nil {
					t.Fatalf("after %+v: %v", a, err)
				}
			}
		}
		for i, r := range refs {
			if ended := models[i].ended != ""; ended != slices.Contains(o.woken, r) || ended != slices.Contains(o.guarded, r) {
				t.Errorf("%s has ended: %v, woken %v, guarded %v", r, ended, o.woken, o.guarded)
			}
		}
	})
}

// A storage call fails or the process dies at it: after the same person repeats the action, it has happened once, and
// the lists show it.
func TestActionsSurviveEveryFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, then action }{
		"claim":    {then: action{what: "claim", who: "ann"}},
		"release":  {action{what: "claim", who: "ann"}, action{what: "release", who: "ann"}},
		"assign":   {then: action{what: "assign", who: "bob", to: "ann"}},
		"reassign": {action{what: "claim", who: "bob"}, action{what: "assign", who: "bob", to: "ann"}},
		"escalate": {action{what: "claim", who: "bob"}, action{what: "escalate"}},
		"complete": {then: action{what: "complete", who: "ann", answer: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			for _, fault := range faults.Faults() {
				if fault == faults.Slow {
					continue // another process applied it: the service itself does not wait
				}
				for at, happened := 1, true; happened; at++ {
					o, m := newFixture(t, tables.NewMemory()), newModel()
					r := o.ask(t, "a", nil)
					if c.before.what != "" {
						if err := errors.Join(m.expect(c.before), c.before.do(ctx, o.Service, r)); err != nil {
							t.Fatal(err)
						}
					}
					plan := &faults.Plan{At: at, Fault: fault}
					first := c.then.do(ctx, o.service(faults.Tables(o.store, plan.Intercept)), r)
					happened = plan.Done()
					if err := m.expect(c.then); err != nil {
						t.Fatal(err)
					}
					if err := c.then.do(ctx, o.Service, r); err != nil {
						t.Fatalf("%s at %d: %v, and repeated: %v", fault, at, first, err)
					}
					if err := m.check(o, r); err != nil {
						t.Errorf("%s at %d: %v; %v", fault, at, first, err)
					}
					if m.ended != "" && !slices.Contains(o.woken, r) {
						t.Errorf("%s at %d: nobody told the orchestration", fault, at)
					}
				}
			}
		})
	}
}

// A completion that cannot notify its orchestration is an error, and completes nothing when the sweeper would not
// find it either.
func TestCompletionTellsTheOrchestration(t *testing.T) {
	t.Parallel()
	o := newFixture(t, tables.NewMemory())
	r := o.ask(t, "a", nil)
	no := errors.New("no queue")
	o.guardErr = no
	if _, err := o.Complete(t.Context(), r, people()["ann"], []byte("true"), "", ""); !errors.Is(err, no) {
		t.Error(err)
	}
	if task, err := o.Get(t.Context(), r); err != nil || !task.Open() {
		t.Errorf("%+v, %v", task, err)
	}
	o.guardErr, o.wakes = nil, no
	if _, err := o.Complete(t.Context(), r, people()["ann"], []byte("true"), "", ""); !errors.Is(err, no) || !strings.Contains(err.Error(), "it is completed") {
		t.Error(err)
	}
	o.wakes = nil
	if task, err := o.Complete(t.Context(), r, people()["ann"], []byte("true"), "", ""); err != nil || task.End.By != "ann" {
		t.Errorf("%+v, %v", task, err)
	}
}
