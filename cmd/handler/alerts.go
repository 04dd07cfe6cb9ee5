package main

import (
	"encoding/json"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/intake"
)

// sampleAlert is an alert in the common schema of Azure Monitor, which every profile can process.
const sampleAlert = `{"schemaId":"azureMonitorCommonAlertSchema","data":{"essentials":{"alertId":"sample-alert","alertRule":"sample rule","severity":"Sev3",` +
	`"monitorCondition":"Fired","monitoringService":"sample","firedDateTime":"2026-11-21T10:00:00Z"}}}`

// alertsEngine converts alerts to events (docs/engines/alerts.md). Callers with the key, or with a token of Azure
// Monitor, may send.
func alertsEngine(p *handler.Platform) (engine.Definition, error) {
	rules, err := alerts.ParseRules(p.Settings.Text("ROUNDHOUSE_ALERT_RULES"))
	p.Settings.Reject("ROUNDHOUSE_ALERT_RULES", err)
	steps, err := alerts.New(alerts.Config{Rules: rules})
	if err != nil {
		return engine.Definition{}, err
	}
	d := alerts.Definition(steps)
	d.Function = "alert-processor" // name from the standard
	d.Example = &engine.Message{Input: json.RawMessage(sampleAlert)}
	opener := key(p, "ROUNDHOUSE_ALERTS_KEY")
	tokens, err := tokensOf(p, "ROUNDHOUSE_ALERTS_", intake.AlertsCaller)
	d.Intakes = []engine.Intake{{Function: "alert-intake", Route: "alerts", Authorize: intake.KeyOrToken(opener, tokens), Closed: opener == "" && tokens == nil}}
	return d, err
}
