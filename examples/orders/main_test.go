package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/examples/orders/orders"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/orchestrator"
)

// These tests run the whole app on stores in memory, with the test in the place of the Functions host. In a bubble of
// synctest, time is virtual: time.Sleep takes no real time.

const (
	chair = `{"order": {"id": "o-1", "lines": [{"article": "chair", "pieces": 2, "cents": 4900}]}}`
	sofa  = `{"order": {"id": "o-2", "lines": [{"article": "sofa", "pieces": 1, "cents": 250000}]}}`
	paid  = `{"reference": "p-1", "cents": 9800}`
)

// app returns the app of main.
func app() handler.App { return handler.App{Engines: engines} }

// inBubble runs a test of the app in virtual time.
func inBubble(t *testing.T, settings map[string]string, test func(t *testing.T, h *handlertest.Host)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, handlertest.New(t, app(), settings)) })
}

// pay raises the event of the bank, and lets the grace pass.
func pay(t *testing.T, h *handlertest.Host, correlationID string) {
	t.Helper()
	status, answer := h.Do(http.MethodPost, "/api/orchestrations/orders-"+correlationID+"/events/"+orders.EventPaid, paid)
	if status != http.StatusAccepted {
		t.Fatalf("the event: %d %s", status, answer)
	}
	h.Deliver()
	time.Sleep(31 * time.Minute)
	h.Deliver()
}

// state returns the final state of the run of a correlation id; "" before its end.
func state(t *testing.T, h *handlertest.Host, correlationID string) orders.State {
	t.Helper()
	outcome := h.Outcome("orders-" + correlationID)
	var result orders.Result
	if outcome.Status == orchestrator.Completed {
		if err := json.Unmarshal(outcome.Output, &result); err != nil {
			t.Fatal(err)
		}
	}
	return result.State
}

// A message in the queue becomes rows of the history, one per operation.
func TestMessage(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, h *handlertest.Host) {
		h.Send(orders.Queue, `{"correlationId": "c-1", "input": `+chair+`}`)
		h.Deliver()
		if got := h.Outcome("orders-c-1").Status; got != orchestrator.Running {
			t.Errorf("the order that is not paid is %s", got)
		}
		pay(t, h, "c-1")
		if got := state(t, h, "c-1"); got != orders.Shipped {
			t.Errorf("the order that is paid is %q", got)
		}
		entries := h.History(orders.Engine)
		if len(entries) != 2 || entries[0].Operation != "book-payment" || entries[1].Operation != "reserve" || entries[0].CorrelationID != "c-1" {
			t.Errorf("%+v", entries)
		}
	})
}

// The same over HTTP: the intake answers with the correlation id.
func TestIntake(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, h *handlertest.Host) {
		status, answer := h.Do(http.MethodPost, "/api/orders", `{"input": `+chair+`}`)
		var taken struct{ CorrelationID string }
		if err := json.Unmarshal([]byte(answer), &taken); err != nil || status != http.StatusAccepted || taken.CorrelationID == "" {
			t.Fatalf("%d %s, %v", status, answer, err)
		}
		h.Deliver()
		pay(t, h, taken.CorrelationID)
		if got := state(t, h, taken.CorrelationID); got != orders.Shipped {
			t.Errorf("the order is %q", got)
		}
		if status, answer := h.Do(http.MethodPost, "/api/orders", `no JSON`); status != http.StatusBadRequest {
			t.Errorf("%d %s", status, answer)
		}
	})
}

// An expensive order waits for a user with the role in the settings, who answers over the API.
func TestApproval(t *testing.T) {
	inBubble(t, map[string]string{"ORDERS_APPROVERS": "boss"}, func(t *testing.T, h *handlertest.Host) {
		h.Send(orders.Queue, `{"correlationId": "c-2", "input": `+sofa+`}`)
		h.Deliver()
		_, answer := h.Do(http.MethodGet, "/api/tasks?role=boss", "")
		var list struct {
			Data struct {
				Items []struct{ OrchestrationID, TaskID string }
			}
		}
		if err := json.Unmarshal([]byte(answer), &list); err != nil || len(list.Data.Items) != 1 {
			t.Fatalf("%s, %v", answer, err)
		}
		task := "/api/tasks/" + list.Data.Items[0].OrchestrationID + "/" + list.Data.Items[0].TaskID
		if status, answer := h.Do(http.MethodPost, task+"/complete", `{"output": {"approve": true}}`); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
		h.Deliver()
		pay(t, h, "c-2")
		if got := state(t, h, "c-2"); got != orders.Shipped {
			t.Errorf("the order is %q", got)
		}
	})
}

// The schedule closes a day once, however often the slot is sent.
func TestSchedule(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, h *handlertest.Host) {
		due := time.Date(2000, 1, 1, 22, 0, 0, 0, time.UTC)
		for range 2 {
			if sent := h.Schedule("orders", "close", due); sent != 1 {
				t.Fatalf("%d messages", sent)
			}
			h.Deliver()
		}
		if entries := h.History(orders.Engine); len(entries) != 1 || entries[0].Operation != "total" {
			t.Errorf("%+v", entries)
		}
	})
}

// An invalid message becomes a dead letter immediately.
func TestDeadLetter(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, h *handlertest.Host) {
		h.Send(orders.Queue, `{"correlationId": "c-3", "input": {"order": {"id": "o-3"}}}`)
		h.Deliver()
		letters := h.DeadLetters(orders.Engine)
		if len(letters) != 1 || letters[0].CorrelationID != "c-3" || !strings.Contains(letters[0].ErrorMessage, "needs an id and lines") {
			t.Errorf("%+v", letters)
		}
	})
}

// The app has the functions for the host, and lists its settings.
func TestManifest(t *testing.T) {
	t.Parallel()
	m := handlertest.New(t, app(), nil).Manifest()
	for _, name := range []string{"orders-queue-trigger", "schedules-timer", "orders-intake"} {
		if _, ok := m.Functions[name]; !ok {
			t.Errorf("there is no function %s", name)
		}
	}
	if settings := strings.Join(m.Settings, " "); !strings.Contains(settings, "ORDERS_APPROVERS") || !strings.Contains(settings, "ORDERS_GRACE") {
		t.Errorf("settings: %s", settings)
	}
}

// All errors of the settings are reported together.
func TestSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{"ORDERS_GRACE": "soon", "ORDERS_APPROVAL_LIMIT": "much"}
	_, err := handler.Describe(app(), func(name string) (string, bool) { value, ok := env[name]; return value, ok })
	for name := range env {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in %v", name, err)
		}
	}
}
