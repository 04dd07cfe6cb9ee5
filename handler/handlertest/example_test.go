package handlertest_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/orchestrator"
)

// reminders returns an app whose engine waits for two days, and for a payment meanwhile.
func reminders(*handler.Platform) ([]engine.Definition, error) {
	remind := orchestrator.NewActivity("remind", mail)
	run := func(ctx *orchestrator.Context, r engine.Request[string]) (string, error) {
		paid := orchestrator.Event[bool](ctx, "paid")
		if orchestrator.Any(ctx, paid, orchestrator.Timer(ctx, 48*time.Hour)) == 0 {
			return "paid", nil
		}
		return remind.Call(ctx, r.Input).Await()
	}
	return []engine.Definition{{Name: "reminder", Queue: "reminder-queue", Orchestrator: engine.Orchestrate("reminder", run),
		Operations: []orchestrator.AnyActivity{remind}, Schedules: []engine.Schedule{{Cron: "0 0 9 * * *"}}}}, nil
}

// A test of an app in a bubble of virtual time: a message, an event over the API, two days that take no time, and a
// slot of a schedule. Here it is a plain function; in a test file it is a Test function.
func Example() {
	_ = func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := handlertest.New(t, handler.App{Engines: reminders}, nil)
			h.Send("reminder-queue", `{"correlationId": "c1", "input": "ada@example.org"}`)
			h.Send("reminder-queue", `{"correlationId": "c2", "input": "grace@example.org"}`)
			h.Deliver()
			h.Do(http.MethodPost, "/api/orchestrations/reminder-c1/events/paid", `true`)
			h.Deliver()
			time.Sleep(48 * time.Hour)
			h.Deliver()
			if got := h.Outcome("reminder-c1"); string(got.Output) != `"paid"` {
				t.Errorf("%+v", got)
			}
			if got := h.Outcome("reminder-c2"); string(got.Output) != `"reminded grace@example.org"` {
				t.Errorf("%+v", got)
			}
			if h.Schedule("reminder", "", time.Now()) != 1 {
				t.Error("the schedule sent nothing")
			}
		})
	}
}
