package tasks_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

func ofLength(unit string, n int) string { return strings.Repeat(unit, n/len(unit)) }

func document(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("<", n-2) + `"`) }

// A task at its limits is created and read back unchanged; beyond one it is refused, with the limit.
func TestSizesOfTasks(t *testing.T) {
	t.Parallel()
	form := func(n int) json.RawMessage {
		const frame = `{"title":""}`
		return json.RawMessage(`{"title":"` + strings.Repeat("<", n-len(frame)) + `"}`)
	}
	for _, tt := range []struct {
		what  string
		limit int
		set   func(t *tasks.Task, n int)
		get   func(t tasks.Task) string
	}{
		{"name", tasks.MaxName, func(t *tasks.Task, n int) { t.Name = ofLength("<", n) }, func(t tasks.Task) string { return t.Name }},
		{"payload", tasks.MaxPayload, func(t *tasks.Task, n int) { t.Payload = document(n) }, func(t tasks.Task) string { return string(t.Payload) }},
		{"form", tasks.MaxForm, func(t *tasks.Task, n int) { t.Form = form(n) }, func(t tasks.Task) string { return string(t.Form) }},
		{"assignee", tasks.MaxPerson, func(t *tasks.Task, n int) { t.Assignee = ofLength("<", n) }, func(t tasks.Task) string { return t.Assignee }},
		{"tenant", tasks.MaxPerson, func(t *tasks.Task, n int) { t.TenantID = ofLength("<", n) }, func(t tasks.Task) string { return t.TenantID }},
		{"role", tasks.MaxPerson, func(t *tasks.Task, n int) { t.Roles = []string{ofLength("<", n)} }, func(t tasks.Task) string { return fmt.Sprint(t.Roles) }},
		{"roles", tasks.MaxRoles, func(t *tasks.Task, n int) {
			t.Roles = nil
			for i := range n {
				t.Roles = append(t.Roles, fmt.Sprintf("%03d", i)+ofLength("\x01", tasks.MaxPerson-3))
			}
		}, func(t tasks.Task) string { return fmt.Sprint(t.Roles) }},
	} {
		for n := tt.limit - 1; n <= tt.limit+1; n++ {
			o := newFixture(t, tables.NewMemory())
			var wanted tasks.Task
			change := func(t *tasks.Task) { tt.set(t, n); wanted = *t }
			if n > tt.limit {
				task := tasks.Task{Name: "n"}
				change(&task)
				if err := task.Validate(); !errors.Is(err, tasks.ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprint(tt.limit)) {
					t.Errorf("%s of %d: %v", tt.what, n, err)
				}
				continue
			}
			got, err := o.Get(t.Context(), o.ask(t, "o", change))
			if err == nil {
				err = wanted.Validate()
			}
			if err != nil || tt.get(got) != tt.get(wanted) {
				t.Errorf("%s of %d: %d bytes came back, %v", tt.what, n, len(tt.get(got)), err)
			}
			page, err := o.List(t.Context(), tasks.Filter{}, 1, "")
			if err != nil || len(page.Tasks) != 1 || !slices.Equal(page.Tasks[0].Roles, wanted.Roles) {
				t.Errorf("%s of %d: a list has %d, %v", tt.what, n, len(page.Tasks), err)
			}
		}
	}
}

// An answer and a note at their limits are kept; beyond, the task stays open.
func TestSizesOfAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what          string
		limit         int
		answer, notes func(n int) int
		want          error
	}{
		{"answer", tasks.MaxOutput, func(n int) int { return n }, func(int) int { return tasks.MaxNote }, tasks.ErrOutput},
		{"note", tasks.MaxNote, func(int) int { return tasks.MaxOutput }, func(n int) int { return n }, tasks.ErrInvalid},
	} {
		for n := tt.limit - 1; n <= tt.limit+1; n++ {
			o := newFixture(t, tables.NewMemory())
			r := o.ask(t, "o", func(t *tasks.Task) { t.Form = nil })
			answer, note := document(tt.answer(n)), ofLength("<", tt.notes(n))
			_, err := o.Complete(t.Context(), r, people()["ann"], answer, "", note)
			now, getErr := o.Get(t.Context(), r)
			switch {
			case getErr != nil:
				t.Error(getErr)
			case n > tt.limit:
				if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), fmt.Sprint(tt.limit)) || !now.Open() || len(o.guarded) != 0 {
					t.Errorf("%s of %d: %v, then %s", tt.what, n, err, now.Status)
				}
			case err != nil || now.Open() || string(now.End.Output) != string(answer) || now.End.Note != note:
				t.Errorf("%s of %d: %v, then %s", tt.what, n, err, now.Status)
			}
		}
	}
}
