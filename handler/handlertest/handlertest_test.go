package handlertest_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/orchestrator"
)

func mail(_ context.Context, to string) (string, error) { return "reminded " + to, nil }

// The queue of a disabled function is not read, and processed when the function is enabled.
func TestDisable(t *testing.T) {
	t.Parallel()
	h := handlertest.New(t, handler.App{Engines: reminders}, nil)
	h.Send("reminder-queue", `{"correlationId": "c1", "input": "ada@example.org"}`)
	for _, disabled := range []bool{true, false} {
		h.Disable("reminder-queue-trigger", disabled)
		if taken := h.Deliver(); (taken > 0) == disabled {
			t.Errorf("disabled %t: %d messages are taken", disabled, taken)
		}
	}
}

// The host of a test behaves like the Functions host: it delivers messages and events, and timers when they are due.
func TestHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := handlertest.New(t, handler.App{Engines: reminders}, nil)
		h.Send("reminder-queue", `{"correlationId": "c1", "input": "ada@example.org"}`)
		h.Send("reminder-queue", `{"correlationId": "c2", "input": "grace@example.org"}`)
		h.Send("reminder-queue", `no message`)
		h.Deliver()
		if status, answer := h.Do(http.MethodPost, "/api/orchestrations/reminder-c1/events/paid", `true`); status != http.StatusAccepted {
			t.Fatal(status, answer)
		}
		h.Deliver()
		if first, second := h.Outcome("reminder-c1"), h.Outcome("reminder-c2"); first.Status != orchestrator.Completed || string(first.Output) != `"paid"` ||
			second.Status != orchestrator.Running {
			t.Errorf("%+v\n%+v", first, second)
		}
		time.Sleep(48 * time.Hour)
		h.Deliver()
		if second := h.Outcome("reminder-c2"); string(second.Output) != `"reminded grace@example.org"` {
			t.Errorf("%+v", second)
		}
		if letters := h.DeadLetters("reminder"); len(letters) != 1 {
			t.Errorf("%+v", letters)
		}
		if h.Schedule("reminder", "", time.Now()) != 1 || h.Deliver() == 0 {
			t.Error("the schedule sent nothing")
		}
	})
}
