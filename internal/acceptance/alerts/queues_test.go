package alerts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/handler/function"
)

// queueScenarios are those of queues and schedules.
func queueScenarios() []scenario {
	const work = "work-queue-trigger"
	return []scenario{
		{alert: "RoundhouseQueueStuck", run: func(w *world) {
			w.well(20 * time.Minute)
			w.host.Disable(work, true)
			w.host.Send("work-queue", `{"correlationId":"c1"}`)
			w.broken(25 * time.Minute)
			w.host.Disable(work, false)
			w.mended(20 * time.Minute)
		}},
		{alert: "RoundhouseQueueOld", run: func(w *world) {
			w.well(20 * time.Minute)
			w.host.Disable(work, true) // a host that accepts one message in five minutes
			for i := range 30 {
				w.host.Send("work-queue", fmt.Sprintf(`{"correlationId":"c%d"}`, i))
			}
			n := 0
			w.meanwhile = func() {
				if n++; n%5 == 0 {
					w.deliverOne(work, "work-queue")
				}
			}
			w.broken(60 * time.Minute)
			w.meanwhile = nil
			w.host.Disable(work, false)
			w.mended(30 * time.Minute)
		}},
		{alert: "RoundhouseSchedulesOverdue", run: func(w *world) {
			w.well(50 * time.Minute)
			w.timer("schedules-timer", true)
			w.broken(60 * time.Minute)
			w.timer("schedules-timer", false)
			w.mended(20 * time.Minute)
		}},
		{alert: "RoundhouseSchedulesFailing", also: []string{"RoundhouseSchedulesOverdue"}, run: func(w *world) {
			w.well(50 * time.Minute)
			w.app.unwell.Store(true)
			w.broken(60 * time.Minute)
			w.app.unwell.Store(false)
			w.mended(60 * time.Minute)
		}},
	}
}

// deliverOne makes a function receive one message of its queue.
func (w *world) deliverOne(name, queue string) {
	w.t.Helper()
	messages, err := w.host.Queues.Receive(w.t.Context(), queue, 1, time.Minute)
	if err != nil || len(messages) != 1 {
		w.t.Fatalf("%d messages, %v", len(messages), err)
	}
	m := messages[0]
	body, err := json.Marshal(map[string]any{"Data": map[string]any{function.QueueParameter: base64.StdEncoding.EncodeToString([]byte(m.Text))},
		"Metadata": map[string]any{"Id": m.ID, "DequeueCount": m.DequeueCount, "InsertionTime": m.InsertedAt}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.do(http.MethodPost, "/"+name, string(body))
	if err := w.host.Queues.Delete(w.t.Context(), queue, m.ID, m.PopReceipt); err != nil {
		w.t.Fatal(err)
	}
}
