package tasks_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

// pages reads a list to its end, and counts the pages.
func pages(t *testing.T, o *fixture, f tasks.Filter, limit int) (ids []string, n int) {
	t.Helper()
	next := ""
	for {
		page, err := o.List(t.Context(), f, limit, next)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range page.Tasks {
			ids = append(ids, task.Orchestration)
		}
		n++
		if next = page.Continuation; next == "" {
			return ids, n
		}
	}
}

// Open tasks come by due time, those without one last; ended ones newest first. Pages have no gaps and no doubles.
func TestListOrder(t *testing.T) {
	t.Parallel()
	o := newFixture(t, tables.NewMemory())
	for i, due := range []int{3, 0, 1, 2, 1} {
		o.clock = o.clock.Add(time.Minute)
		o.ask(t, fmt.Sprint("t", i), func(task *tasks.Task) {
			if due > 0 {
				task.DueAt = o.clock.Truncate(time.Hour).Add(time.Duration(due) * time.Hour)
			}
		})
	}
	ids, n := pages(t, o, tasks.Filter{Role: "approver"}, 2)
	if diff := cmp.Diff([]string{"t2", "t4", "t3", "t0", "t1"}, ids); diff != "" || n != 3 {
		t.Errorf("%d pages (-want +got):\n%s", n, diff)
	}
	ids, _ = pages(t, o, tasks.Filter{DueBefore: o.clock.Truncate(time.Hour).Add(2 * time.Hour)}, 100)
	if diff := cmp.Diff([]string{"t2", "t4"}, ids); diff != "" {
		t.Errorf("due (-want +got):\n%s", diff)
	}
	for _, id := range []string{"t3", "t0"} {
		if _, err := o.Complete(t.Context(), tasks.Ref{Orchestration: id, ID: "1-1"}, people()["ann"], []byte("true"), "", ""); err != nil {
			t.Fatal(err)
		}
	}
	ids, _ = pages(t, o, tasks.Filter{Status: tasks.Completed}, 1)
	if diff := cmp.Diff([]string{"t0", "t3"}, ids); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	for _, limit := range []int{-1, 0, tasks.MaxPage + 1} {
		if _, err := o.List(t.Context(), tasks.Filter{}, limit, ""); !errors.Is(err, tasks.ErrInvalid) {
			t.Errorf("a page of %d: %v", limit, err)
		}
	}
}

// A page of an assignee's tasks costs one transaction, however many other tasks exist.
func TestListCostsItsPage(t *testing.T) {
	t.Parallel()
	o := newFixture(t, tables.NewMemory())
	for i := range 2000 {
		o.ask(t, fmt.Sprint("t", i), func(task *tasks.Task) {
			task.Assignee, task.Roles, task.TenantID = fmt.Sprint("p", i%100), []string{fmt.Sprint("r", i%100)}, fmt.Sprint("n", i%100)
		})
	}
	for _, f := range []tasks.Filter{{}, {Assignee: "P7"}, {Role: "R7"}, {TenantID: "N7"}, {Orchestrator: "update"}} {
		plan := &faults.Plan{}
		page, err := o.service(faults.Tables(o.store, plan.Intercept)).List(t.Context(), f, 20, "")
		if err != nil || len(page.Tasks) != 20 || len(plan.Calls()) != 1 {
			t.Errorf("%+v: %d tasks, %d transactions, %v", f, len(page.Tasks), len(plan.Calls()), err)
		}
	}
}

// Retention deletes tasks that ended long enough ago, slice by slice, and never open ones; the end of a task stays
// for its orchestration.
func TestRetention(t *testing.T) {
	t.Parallel()
	o := newFixture(t, tables.NewMemory())
	var refs []tasks.Ref
	for i := range 7 {
		refs = append(refs, o.ask(t, fmt.Sprint("t", i), nil))
	}
	var cut time.Time
	for i, r := range refs[:6] { // the last one stays open
		if i == 4 {
			o.clock = o.clock.Add(time.Hour)
			cut = o.clock
		}
		if _, err := o.Complete(t.Context(), r, people()["ann"], []byte("true"), "", ""); err != nil {
			t.Fatal(err)
		}
	}
	o.clock = o.clock.Add(1000 * time.Hour)
	total := 0
	for more := true; more; {
		var n int
		var err error
		if n, more, err = o.Retention(t.Context(), cut, 3); err != nil || n > 3 {
			t.Fatal(n, err)
		}
		total += n
	}
	ended, _ := pages(t, o, tasks.Filter{Status: tasks.Completed}, 10)
	open, _ := pages(t, o, tasks.Filter{}, 10)
	if diff := cmp.Diff([][]string{{"t5", "t4"}, {"t6"}}, [][]string{ended, open}); total != 4 || diff != "" {
		t.Errorf("%d deleted; left (-want +got):\n%s", total, diff)
	}
	for i, r := range refs {
		_, err := o.Get(t.Context(), r)
		end, endErr := o.Ended(t.Context(), r)
		if errors.Is(err, tasks.ErrNotFound) != (i < 4) || endErr != nil || (end == nil) != (i == 6) {
			t.Errorf("task %d: %v, end %+v, %v", i, err, end, endErr)
		}
	}
}

// The limits of a task, and the answers that its form permits.
func TestLimitsAndForms(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		task tasks.Task
		ok   bool
	}{
		"the least":             {tasks.Task{Name: "x"}, true},
		"a form":                {tasks.Task{Name: "x", Form: []byte(`{"type":"object"}`)}, true},
		"no name":               {tasks.Task{}, false},
		"a long name":           {tasks.Task{Name: long(tasks.MaxName + 1)}, false},
		"bytes for a name":      {tasks.Task{Name: "\xff"}, false},
		"many roles":            {tasks.Task{Name: "x", Roles: make([]string, tasks.MaxRoles+1)}, false},
		"a role without name":   {tasks.Task{Name: "x", Roles: []string{""}}, false},
		"a long role":           {tasks.Task{Name: "x", Roles: []string{long(tasks.MaxPerson + 1)}}, false},
		"a long assignee":       {tasks.Task{Name: "x", Assignee: long(tasks.MaxPerson + 1)}, false},
		"a large payload":       {tasks.Task{Name: "x", Payload: []byte(long(tasks.MaxPayload + 1))}, false},
		"a large form":          {tasks.Task{Name: "x", Form: []byte(long(tasks.MaxForm + 1))}, false},
		"a form that is none":   {tasks.Task{Name: "x", Form: []byte(`{"type":"oject"}`)}, false},
		"a form elsewhere":      {tasks.Task{Name: "x", Form: []byte(`{"$ref":"https://example.com/form.json"}`)}, false},
		"a form of a file":      {tasks.Task{Name: "x", Form: []byte(`{"$ref":"file:///etc/passwd"}`)}, false},
		"a form that is broken": {tasks.Task{Name: "x", Form: []byte(`{`)}, false},
	} {
		if err := c.task.Validate(); (err == nil) != c.ok || err != nil && !errors.Is(err, tasks.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := newFixture(t, tables.NewMemory())
	r := o.ask(t, "a", nil)
	for _, output := range []string{``, `{`, `1`, `"true"`, `true false`, `"` + long(tasks.MaxOutput) + `"`} {
		if _, err := o.Complete(t.Context(), r, people()["ann"], []byte(output), "", ""); !errors.Is(err, tasks.ErrOutput) || len(err.Error()) > 2000 {
			t.Errorf("%.20s: %.100v", output, err)
		}
	}
	for _, r := range []tasks.Ref{{}, {Orchestration: "a"}, {ID: "1-1"}, {Orchestration: "a", ID: "1-1-end"}, {Orchestration: "a", ID: "1-1' or '"}, {Orchestration: "b", ID: "1-1"}} {
		if _, err := o.Get(t.Context(), r); !errors.Is(err, tasks.ErrNotFound) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if _, err := o.Release(t.Context(), r, people()["ann"], "", long(tasks.MaxNote+1)); err != nil {
		t.Errorf("a release of what nobody has leaves no note: %v", err)
	}
	if _, err := o.Assign(t.Context(), r, people()["ann"], tasks.Person{ID: "bob"}, "", long(tasks.MaxNote+1)); !errors.Is(err, tasks.ErrInvalid) {
		t.Error(err)
	}
	if _, err := o.Claim(t.Context(), r, people()["ann"], `W/"old"`); !errors.Is(err, tasks.ErrChanged) {
		t.Error(err)
	}
}

// Of returns the tasks of an orchestration as Get returns each, in one query; a bound on the rows reports more.
func TestTasksOfAnOrchestration(t *testing.T) {
	t.Parallel()
	o := newFixture(t, tables.NewMemory())
	refs := []tasks.Ref{o.ask(t, "o", func(*tasks.Task) {}), o.ask(t, "o", func(t *tasks.Task) { t.ID = "1-10" })}
	o.ask(t, "another", func(*tasks.Task) {})
	if _, err := o.Claim(t.Context(), refs[0], people()["ann"], ""); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Complete(t.Context(), refs[0], people()["ann"], json.RawMessage(`true`), "", "fine"); err != nil {
		t.Fatal(err)
	}
	var want []tasks.Task
	for _, r := range refs {
		one, err := o.Get(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, one)
	}
	got, more, err := o.Of(t.Context(), "o", 1000)
	if diff := cmp.Diff(want, got); diff != "" || more || err != nil {
		t.Errorf("%v %v\n%s", more, err, diff)
	}
	if _, more, err := o.Of(t.Context(), "o", 3); err != nil || !more {
		t.Errorf("%v %v", more, err)
	}
	if got, more, err := o.Of(t.Context(), "", 3); err != nil || more || got != nil {
		t.Errorf("%v %v %v", got, more, err)
	}
}
