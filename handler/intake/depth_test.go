package intake_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/handler/intake"
	"github.com/vibedata/roundhouse/internal/payload"
)

// deepen gives a body so many levels, by a member that nobody reads.
func deepen(body string, levels int) string {
	return strings.TrimSuffix(body, "}") + `,"more":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + "}"
}

// An alert travels in a message, which has a level of its own; of a webhook, what is not read stays behind.
func TestDeepBodies(t *testing.T) {
	t.Parallel()
	d := newDoor(t, through)
	const sig = "/api/managed-app/resource?sig=" + signature
	notification := `{"eventType":"PUT","applicationId":"` + application + `","eventTime":"2026-11-21T10:00:00Z","provisioningState":"Succeeded"}`
	for name, tt := range map[string]struct {
		request
		deepest int
		queue   string
	}{
		"alert":        {request{"POST", "/api/alerts?code=" + alertsKey, alert(""), nil}, payload.MaxDepth - 1, alerts.Queue},
		"webhook":      {request{"POST", webhookPath, webhook, d.good(t, intake.MarketplaceCaller)}, payload.MaxDepth, provisioning.Queue},
		"notification": {request{"POST", sig, notification, nil}, payload.MaxDepth, provisioning.Queue},
	} {
		for levels, taken := range map[int]bool{tt.deepest: true, tt.deepest + 1: false, 9_998: false} {
			r := tt.request
			r.body = deepen(tt.body, levels)
			status, header := d.send(t, r)
			if taken && status >= 300 || !taken && (status != http.StatusBadRequest || header.Get("x-ms-error-code") != "BodyTooDeep") {
				t.Errorf("%s, %d levels: %d %s", name, levels, status, header.Get("x-ms-error-code"))
			}
			want := 0
			if taken {
				want = 1
			}
			if got := d.messages(t, tt.queue); len(got) != want {
				t.Errorf("%s, %d levels: %d messages", name, levels, len(got))
			}
		}
	}
}
