package alerts

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/handler/drain"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

// publish makes a run publish an event of a type.
func (w *world) publish(id, event string) {
	w.t.Helper()
	w.host.Send("work-queue", fmt.Sprintf(`{"correlationId":%q,"input":{"do":"publish","event":%q}}`, id, event))
}

// answer sets the receiver's answer. A retry of 0 sends no Retry-After.
func (w *world) answer(status int, retryAfter time.Duration) {
	w.receiver.status.Store(int64(status))
	w.receiver.retryAfter.Store(int64(retryAfter / time.Second))
}

// produce adds an event without delivering it, as a process without a dispatcher does whose wake-up is lost.
func (w *world) produce() {
	w.t.Helper()
	o, err := outbox.New(outbox.Config{Tables: w.host.Tables, Queues: w.host.Queues, Blobs: w.host.Blobs, Options: outbox.DefaultOptions(), Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = outbox.NewWriter(o).Add(w.t.Context(), outbox.Message{TenantID: "contoso", EventType: "done", Payload: []byte(`{}`)})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// outboxScenarios are those of events.
func outboxScenarios() []scenario {
	return []scenario{
		{alert: "RoundhouseOutboxDead", also: []string{"RoundhouseDeadLettersPending"}, run: func(w *world) {
			w.publish("c1", "done")
			w.well(20 * time.Minute)
			w.answer(http.StatusBadRequest, 0)
			w.publish("c2", "done")
			w.broken(30 * time.Minute)
			w.answer(http.StatusOK, 0)
			w.retry("outbox")
			w.mended(20 * time.Minute)
		}},
		{alert: "RoundhouseOutboxMisconfigured", also: []string{"RoundhouseDeadLettersPending", "RoundhouseOutboxOld"}, run: func(w *world) {
			w.publish("c1", "done")
			w.well(20 * time.Minute)
			w.publish("c2", "signed")
			w.broken(60 * time.Minute)
			if _, err := secrets.NewDevelopment(w.host.Tables).Add(w.t.Context(), "hook", []byte("whsec_"+base64.StdEncoding.EncodeToString(make([]byte, outbox.MinSecret))), nil); err != nil {
				w.t.Fatal(err)
			}
			w.mended(30 * time.Minute)
		}},
		{alert: "RoundhouseOutboxOld", run: func(w *world) {
			w.publish("c1", "done")
			w.well(20 * time.Minute)
			w.answer(http.StatusServiceUnavailable, time.Hour)
			w.publish("c2", "done")
			w.broken(50 * time.Minute)
			w.answer(http.StatusOK, 0)
			w.mended(40 * time.Minute)
		}},
		{name: "an app that stays drained", alert: "RoundhouseOutboxStalled", also: []string{"RoundhouseOutboxOld"}, run: func(w *world) {
			w.publish("c1", "done")
			w.well(20 * time.Minute)
			store := drain.Store{Tables: w.host.Tables}
			if _, err := store.Begin(w.t.Context(), "somebody", 2*time.Hour); err != nil {
				w.t.Fatal(err)
			}
			w.produce()
			w.host.Send("work-queue", "{}")
			w.broken(45 * time.Minute)
			if err := store.End(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
			w.mended(20 * time.Minute)
		}},
		{alert: "RoundhouseOutboxCircuitOpen", also: []string{"RoundhouseOutboxOld"}, settings: map[string]string{"ROUNDHOUSE_OUTBOX_MAX_RETRIES": "100"}, run: func(w *world) {
			n := 0
			w.meanwhile = func() {
				n++
				w.publish(fmt.Sprint("c", n), "done")
			}
			w.well(20 * time.Minute)
			w.answer(http.StatusInternalServerError, 0)
			w.broken(60 * time.Minute)
			w.answer(http.StatusOK, 0)
			w.mended(40 * time.Minute)
		}},
		{name: "a circuit that nobody closes", alert: "RoundhouseOutboxCircuitOpen", also: []string{"RoundhouseOutboxOld", "RoundhouseOutboxDead", "RoundhouseDeadLettersPending"},
			settings: map[string]string{"ROUNDHOUSE_OUTBOX_MAX_RETRIES": "3"}, run: func(w *world) {
				w.publish("c0", "done")
				w.well(20 * time.Minute)
				w.answer(http.StatusInternalServerError, 0)
				for i := range 6 {
					w.publish(fmt.Sprint("c", i+1), "done")
				}
				w.broken(50 * time.Minute)
				w.spend(40 * time.Minute)
				w.resolve("outbox") // the events are obsolete
				w.mended(40 * time.Minute)
				if open := w.last(`roundhouse_outbox_circuit_open{job="roundhouse", instance="a", destination="receiver"}`); open != 1 {
					w.t.Errorf("the circuit is closed: %v", open)
				}
			}},
		{alert: "RoundhouseOutboxFailures", run: func(w *world) {
			n := 0
			w.meanwhile = func() {
				for range 2 {
					n++
					w.publish(fmt.Sprint("c", n), "done")
				}
			}
			w.well(20 * time.Minute)
			w.receiver.flaky.Store(true)
			w.broken(40 * time.Minute)
			w.receiver.flaky.Store(false)
			w.mended(30 * time.Minute)
		}},
		{alert: "RoundhouseOutboxStalled", also: []string{"RoundhouseOutboxOld"}, run: func(w *world) {
			w.publish("c1", "done")
			w.well(20 * time.Minute)
			w.timer("outbox-sweep-timer", true)
			w.host.Disable("outbox-wake-trigger", true)
			w.produce()
			w.dropWakes()
			w.broken(40 * time.Minute)
			w.timer("outbox-sweep-timer", false)
			w.host.Disable("outbox-wake-trigger", false)
			w.mended(20 * time.Minute)
		}},
	}
}

// dropWakes deletes the wake-ups of the outbox.
func (w *world) dropWakes() {
	w.t.Helper()
	messages, err := w.host.Queues.Receive(w.t.Context(), outbox.DefaultQueue, 32, time.Minute)
	for _, m := range messages {
		err = errors.Join(err, w.host.Queues.Delete(w.t.Context(), outbox.DefaultQueue, m.ID, m.PopReceipt))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
