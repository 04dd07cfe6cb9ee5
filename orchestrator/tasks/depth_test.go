package tasks_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

func nested(open, inner, shut string, levels int) json.RawMessage {
	return json.RawMessage(strings.Repeat(open, levels) + inner + strings.Repeat(shut, levels))
}

// An answer to a task without a form is any JSON that may be stored.
func TestDeepAnswers(t *testing.T) {
	t.Parallel()
	for levels, want := range map[int]error{payload.MaxDepth: nil, payload.MaxDepth + 1: tasks.ErrOutput, 9_998: tasks.ErrOutput} {
		o := newFixture(t, tables.NewMemory())
		r := o.ask(t, "o", func(t *tasks.Task) { t.Form = nil })
		answer := nested("[", "", "]", levels)
		_, err := o.Complete(t.Context(), r, people()["ann"], answer, "", "")
		if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "500 levels") {
			t.Errorf("%d levels: %v", levels, err)
		}
		now, err := o.Get(t.Context(), r)
		if err != nil || now.Open() != (want != nil) || len(o.guarded) != len(o.woken) || now.End != nil && string(now.End.Output) != string(answer) {
			t.Errorf("%d levels: then %s, %v", levels, now.Status, err)
		}
	}
}

func TestDeepTasks(t *testing.T) {
	t.Parallel()
	for levels, want := range map[int]error{payload.MaxDepth: nil, payload.MaxDepth + 1: tasks.ErrInvalid, 2_000: tasks.ErrInvalid} {
		for name, task := range map[string]tasks.Task{
			"payload": {Name: "n", Payload: nested("[", "", "]", levels)},
			"form":    {Name: "n", Form: nested(`{"not":`, "{}", "}", levels-1)},
		} {
			if err := task.Validate(); !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "500 levels") {
				t.Errorf("%s of %d levels: %v", name, levels, err)
			}
		}
	}
}
