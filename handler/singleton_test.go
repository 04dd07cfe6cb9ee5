package handler_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// A correlation id of a singleton engine belongs to the instance that used it first, through every entry point: over HTTP the
// other instance is refused, and its queue message becomes a dead letter.
func TestSingletonsUnderOneCorrelationID(t *testing.T) {
	t.Parallel()
	const (
		api     = "/api/orchestrations"
		durable = "/api/runtime/webhooks/durabletask/orchestrators/visit"
	)
	start := func(instance string) string {
		return fmt.Sprintf(`{"orchestrator":"visit","correlationId":"c1","input":{"instanceId":%q}}`, instance)
	}
	message := func(instance string) string { return fmt.Sprintf(`{"correlationId":"c1","instanceId":%q}`, instance) }
	key := func(r *http.Request) { r.Header.Set("Idempotency-Key", "key") }
	for name, first := range map[string]func(t *testing.T, h *handlertest.Host){
		"API": func(t *testing.T, h *handlertest.Host) {
			answers(t, h, http.StatusAccepted, "", http.MethodPost, api, start("i1"))
		},
		"API, a key": func(t *testing.T, h *handlertest.Host) {
			answers(t, h, http.StatusAccepted, "", http.MethodPost, api, start("i1"), key)
		},
		"Durable API": func(t *testing.T, h *handlertest.Host) {
			answers(t, h, http.StatusAccepted, "", http.MethodPost, durable, message("i1"))
		},
		"queue": func(_ *testing.T, h *handlertest.Host) { h.Send("visit-queue", message("i1")) },
	} {
		for _, ended := range []bool{false, true} {
			testenv.Bubble(t, fmt.Sprintf("%s, ended %v", name, ended), func(t *testing.T) {
				h := handlertest.New(t, visits(), nil)
				first(t, h)
				if ended || name == "queue" {
					h.Deliver()
				}
				answers(t, h, http.StatusConflict, "", http.MethodPost, api, start("i2"))
				answers(t, h, http.StatusUnprocessableEntity, "Idempotency-Key", http.MethodPost, api, start("i2"), key)
				answers(t, h, http.StatusConflict, "", http.MethodPost, durable, message("i2"))
				h.Send("visit-queue", message("i2"))
				if name != "Durable API" { // which restarts an ended orchestration
					first(t, h)
				}
				h.Deliver()
				letters := h.DeadLetters("visit")
				if len(letters) != 1 || !strings.Contains(letters[0].ErrorMessage, "the correlation id belongs to other work") || letters[0].InstanceID != "i2" {
					t.Errorf("dead letters: %+v", letters)
				}
				if entries := h.History("visit"); len(entries) != 1 || entries[0].InstanceID != "i1" {
					t.Errorf("history: %+v", entries)
				}
			})
		}
	}
}
