package alerts_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine/alerts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const alertID = "/subscriptions/1c2f6d3e/providers/Microsoft.AlertsManagement/alerts/b9569717"

// common returns an alert in the form of Azure Monitor.
func common(condition string) string {
	return fmt.Sprintf(`{"schemaId":"azureMonitorCommonAlertSchema","data":{"essentials":{"alertId":%q,"alertRule":"cpu high","severity":"Sev1",
		"signalType":"Metric","monitorCondition":%q,"monitoringService":"Platform","alertTargetIDs":["/subscriptions/1c2f6d3e/resourcegroups/rg/vm"],
		"configurationItems":["vm"],"originAlertId":"o","firedDateTime":"2026-11-21T10:00:00.1Z","resolvedDateTime":"","description":"d","essentialsVersion":"1.0"},
		"alertContext":{"properties":{"password":"in-the-context"}},"customProperties":{"a":"b"}}}`, alertID, condition)
}

const activation = `{"schemaId":"roundhouseActivatorAlert","ruleId":"r1","ruleName":"too hot","objectId":"oven","activatedAt":"2026-11-21T10:00:00Z","severity":"Sev2","fields":{"t":99}}`

func TestAdapt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string
		ok   bool
		err  string
	}{
		"common":            {common("Fired"), true, ""},
		"resolved":          {common("resolved"), true, ""},
		"activation":        {activation, true, ""},
		"another schema":    {`{"schemaId":"Microsoft.Insights/activityLogs"}`, true, "turn the common alert schema on"},
		"no id":             {strings.Replace(common("Fired"), alertID, "", 1), true, "the id of the alert"},
		"an endless id":     {strings.Replace(common("Fired"), alertID, strings.Repeat("x", 4096), 1), true, "the id of the alert"},
		"another condition": {common("Closed"), true, "the condition"},
		"no time":           {strings.Replace(activation, "2026-11-21T10:00:00Z", "", 1), true, "the id of the alert"},
		"envelope":          {`{"correlationId":"c","input":{"schemaId":"x"}}`, false, ""},
		"no JSON":           {`{`, false, ""},
	}
	ids := map[string]string{}
	for name, tt := range tests {
		m, ok, err := alerts.Adapt([]byte(tt.body))
		if ok != tt.ok || (err == nil) != (tt.err == "") || err != nil && !(errors.Is(err, alerts.ErrAlert) && strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
		if other, taken := ids[m.CorrelationID]; taken && m.CorrelationID != "" {
			t.Errorf("%s has the correlation id of %s", name, other)
		}
		ids[m.CorrelationID] = name
	}
	first, _, _ := alerts.Adapt([]byte(common("Fired")))
	again, _, _ := alerts.Adapt([]byte(strings.Replace(common("FIRED"), "cpu high", "changed", 1)))
	if first.CorrelationID == "" || first.CorrelationID != again.CorrelationID {
		t.Errorf("the same alert has the ids %s and %s", first.CorrelationID, again.CorrelationID)
	}
}

func TestProcessRoutes(t *testing.T) {
	t.Parallel()
	rules := `[
		{"name":"silence","alertRule":"TEST ","stop":true},
		{"name":"page","severities":["sev0","sev1"],"conditions":["fired"],"event":"alert.page","tenantId":"ops"},
		{"name":"machines","target":"/SUBSCRIPTIONS/1c2f6d3e/","services":["Platform"],"event":"alert.machine","stop":true},
		{"name":"rest","event":"alert.rest"}]`
	tests := map[string]struct {
		rules string
		alert alerts.Alert
		want  string
	}{
		"none":     {"", alerts.Alert{}, "default:alert.raised:"},
		"silenced": {rules, alerts.Alert{Rule: "test cpu", Severity: "Sev0", Condition: "Fired"}, ""},
		"both": {rules, alerts.Alert{Severity: "Sev1", Condition: "Fired", Service: "Platform", Targets: []string{"/x", "/subscriptions/1c2f6d3e/vm"}},
			"page:alert.page:ops machines:alert.machine:"},
		"resolved": {rules, alerts.Alert{Severity: "Sev1", Condition: "Resolved"}, "rest:alert.rest:"},
		"no match": {`[{"name":"a","severities":["Sev4"],"event":"e"}]`, alerts.Alert{Severity: "Sev1"}, ""},
	}
	for name, tt := range tests {
		parsed, err := alerts.ParseRules(tt.rules)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := alerts.New(alerts.Config{Rules: parsed})
		if err != nil {
			t.Fatal(err)
		}
		out, err := steps.Process(t.Context(), tt.alert)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range out.Routes {
			got = append(got, r.Rule+":"+r.Event+":"+r.TenantID)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseRulesRefuses(t *testing.T) {
	t.Parallel()
	for text, part := range map[string]string{
		`{}`:                                  "array",
		`[{"name":"a","event":"e","oops":1}]`: "oops",
		`[{"event":"e"}]`:                     "name",
		`[{"name":"a","event":"e"},{"name":"a","event":"e"}]`: "no other rule",
		`[{"name":"a"}]`: "does nothing",
		`[{"name":"a","event":"e","severities":["critical"]}]`: "critical",
		`[{"name":"a","event":"e","conditions":["Closed"]}]`:   "Closed",
	} {
		if _, err := alerts.ParseRules(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// For any input, the fields of an alert are bounded, and read back unchanged.
func FuzzAlert(f *testing.F) {
	for _, body := range []string{common("Fired"), activation, `{"schemaId":1}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, ok, err := alerts.Adapt(body)
		if !ok || err != nil {
			return
		}
		a, err := alerts.ParseAlert(m.Input)
		if err != nil || len(a.ID) > 2<<10 || len(a.Targets) > 32 || len(a.Description) > 2<<10 {
			t.Errorf("%q: %v", body, err)
		}
	})
}
