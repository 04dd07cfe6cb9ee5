package handler_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

// What the log of an event's attempts says of how its receiver learned who sends is what the receiver got.
func TestAttemptsTellHowTheySent(t *testing.T) {
	t.Parallel()
	for name, auth := range map[string]string{"signed": `,"signingKeys":[{"id":"2026-11","secret":"hook"}]`, "not signed": ""} {
		t.Run(name, func(t *testing.T) {
			got := make(chan http.Header, 1)
			receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
			t.Cleanup(receiver.Close)
			h := handlertest.New(t, shop(), map[string]string{"ROUNDHOUSE_OUTBOX": fmt.Sprintf(
				`{"destinations":{"crm":{"http":{"url":%q,"allowPlaintext":true,"allow":["127.0.0.0/8"]%s}}},"routes":[{"eventType":"*","destination":"crm"}]}`, receiver.URL, auth)})
			testenv.Done(t)(secrets.NewDevelopment(h.Tables).Add(t.Context(), "hook", []byte(strings.Repeat("k", 32)), nil))
			h.Send("shop-queue", `{"correlationId":"c","tenantId":"red","input":{}}`)
			h.Deliver()
			header := <-got
			var list struct {
				Data struct{ Items []struct{ ID string } }
			}
			_, answer := h.Do(http.MethodGet, "/api/workflow/outbox?tenant=red", "")
			if err := json.Unmarshal([]byte(answer), &list); err != nil || len(list.Data.Items) != 1 {
				t.Fatalf("%s, %v", answer, err)
			}
			var event struct {
				Data struct{ Attempts []outbox.Attempt }
			}
			_, answer = h.Do(http.MethodGet, "/api/workflow/outbox/red/"+list.Data.Items[0].ID, "")
			if err := json.Unmarshal([]byte(answer), &event); err != nil || len(event.Data.Attempts) != 1 {
				t.Fatalf("%s, %v", answer, err)
			}
			want := "to " + receiver.URL
			if auth != "" {
				want += ", signed by " + header.Get(outbox.HeaderKeyID) + ", webhook-id " + header.Get(outbox.HeaderWebhookID)
			}
			want += ", idempotency key " + header.Get(outbox.HeaderIdempotencyKey)
			if got := event.Data.Attempts[0].SentAs; got != want || auth != "" && !strings.Contains(got, "2026-11") {
				t.Errorf("the log says %q, the receiver %q", got, want)
			}
		})
	}
}
