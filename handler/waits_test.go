package handler_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/handler/handlertest"
)

// What waits answers before the host gives up: two seconds later the host kills the handler, with all that it does.
func TestWaitsEndBeforeTheHostGivesUp(t *testing.T) {
	t.Parallel()
	for functionTimeout, most := range map[string]time.Duration{"00:01:00": 30 * time.Second, "00:03:00": 150 * time.Second, "-1": 220 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := handlertest.New(t, waitingApp(), map[string]string{"AzureFunctionsJobHost__functionTimeout": functionTimeout})
			begin := time.Now()
			status, answer := h.Do(http.MethodPost, "/api/runtime/webhooks/durabletask/orchestrators/wait?timeout=86400&pollingInterval=5", "")
			if took := time.Since(begin); status != http.StatusAccepted || took > most || took < most/2 {
				t.Errorf("functionTimeout %s: %d %s, after %s", functionTimeout, status, answer, took)
			}
		})
	}
}
