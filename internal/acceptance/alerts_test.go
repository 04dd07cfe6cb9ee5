package acceptance

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
)

// alertRules send pages, and exclude tests from later rules.
const alertRules = `[{"name":"tests","alertRule":"test ","stop":true},{"name":"page","severities":["Sev1"],"event":"alert.page","tenantId":"operations"},{"name":"note","event":"alert.note"}]`

var alarms = at(alerts.Engine, alerts.Queue)

// alert returns an Azure Monitor alert with any context.
func alert(t *testing.T, context string) (body []byte, correlationID string) {
	t.Helper()
	id := "/subscriptions/" + uuid.NewString() + "/providers/Microsoft.AlertsManagement/alerts/" + uuid.NewString()
	body, err := json.Marshal(map[string]any{"schemaId": "azureMonitorCommonAlertSchema", "data": map[string]any{
		"essentials": map[string]any{"alertId": id, "alertRule": "too many errors", "severity": "Sev1", "monitorCondition": "Fired",
			"monitoringService": "Platform", "firedDateTime": "2026-11-21T08:00:00Z", "description": "it burns"},
		"alertContext": map[string]string{"text": context},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return body, engine.DeriveCorrelationID("alert", id, alerts.Fired)
}

// raise sends an alert over HTTP, with the key in the header or in the query.
func (p *platform) raise(t *testing.T, key string, body []byte) {
	t.Helper()
	path, header := "/api/alerts", http.Header{"X-Functions-Key": {key}}
	for range 2 {
		if status, answer := p.ask(t, http.MethodPost, path, header, body); status != http.StatusAccepted {
			t.Fatalf("the intake answers with %d %s", status, answer)
		}
		path, header = "/api/alerts"+"?code="+key, http.Header{"X-Functions-Key": {}}
	}
}

// checkAlert checks an alert that was sent twice over HTTP: each of the two rules sent one event.
func (p *platform) checkAlert(t *testing.T, s *sink, id string) {
	t.Helper()
	p.ran(t, alarms, id, "process of publisher Succeeded Succeeded")
	p.allWell(t, id, 2)
	for kind, tenant := range map[string]string{"alert.page": "operations", "alert.note": engine.PublisherInstance} {
		events := s.told(t, kind, id)
		if e := decode[alerts.Event](t, events[0].Body); len(events) != 1 || events[0].Tenant != tenant || e.Alert.Description != "it burns" || e.CorrelationID != id {
			t.Errorf("%d times %s for %s: %+v", len(events), kind, events[0].Tenant, e)
		}
	}
	if status, _ := p.ask(t, http.MethodPost, "/api/alerts", nil, []byte(`{}`)); status != http.StatusUnauthorized {
		t.Errorf("a sender with the key of the functions is answered with %d", status)
	}
}

func (w *world) testAlert(t *testing.T) {
	body, id := alert(t, w.canary)
	w.raise(t, w.alertsKey, body)
	w.checkAlert(t, w.sink, id)
}

// testLargeAlert: an alert that exceeds a queue message is stored in a blob.
func (w *world) testLargeAlert(t *testing.T) {
	body, id := alert(t, strings.Repeat(w.canary, 5000))
	w.raise(t, w.alertsKey, body)
	w.checkAlert(t, w.sink, id)
}

// testLargeAlertDead: the blob stays unreadable for all attempts.
func (w *world) testLargeAlertDead(t *testing.T) {
	w.proxy.refuseIf(func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/engine-messages/")
	})
	defer w.proxy.refuseIf(nil)
	body, id := alert(t, strings.Repeat("x", 50_000))
	if status, answer := w.ask(t, http.MethodPost, "/api/alerts", http.Header{"X-Functions-Key": {w.alertsKey}}, body); status != http.StatusAccepted {
		t.Fatalf("the intake answers with %d %s", status, answer)
	}
	d := w.buried(t, grave{entrance: alarms, correlationID: id, reason: "read the input from blob alerts/" + id, count: 5})
	if message := decode[engine.Message](t, []byte(d["originalMessage"].(string))); !strings.HasPrefix(message.Blob, "alerts/"+id+"/") || message.Input != nil {
		t.Errorf("original message %s", d["originalMessage"])
	}
	failed := "process of publisher Failed Failed"
	w.checkHistory(t, alarms, id, w.rests(t, alarms, id), []string{failed, failed, failed, failed})
}
