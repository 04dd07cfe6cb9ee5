package tasks_test

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

// Open tasks are counted, and of them those that are overdue, until they are answered.
func TestCount(t *testing.T) {
	t.Parallel()
	o := newFixture(t, tables.NewMemory())
	count := func(want tasks.Count) {
		t.Helper()
		got, err := o.Count(t.Context())
		if got.LongestOverdue = got.LongestOverdue.Round(time.Minute); err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	count(tasks.Count{})
	due := func(after time.Duration) func(*tasks.Task) {
		return func(task *tasks.Task) { task.DueAt = o.clock.Add(after) }
	}
	o.ask(t, "whenever", nil)
	late := o.ask(t, "late", due(time.Hour))
	o.ask(t, "later", due(2*time.Hour))
	count(tasks.Count{Open: 3})
	o.clock = o.clock.Add(3 * time.Hour)
	count(tasks.Count{Open: 3, Overdue: 2, LongestOverdue: 2 * time.Hour})
	if _, err := o.Complete(t.Context(), late, people()["ann"], []byte("true"), "", ""); err != nil {
		t.Fatal(err)
	}
	count(tasks.Count{Open: 2, Overdue: 1, LongestOverdue: time.Hour})
}
