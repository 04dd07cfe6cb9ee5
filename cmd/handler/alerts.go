package main

import (
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/intake"
)

// alertsEngine turns alerts into events (docs/engines/alerts.md). Whoever has the key, or a token of Azure Monitor, may send.
func alertsEngine(p *handler.Platform) (engine.Definition, error) {
	rules, err := alerts.ParseRules(p.Settings.Text("ROUNDHOUSE_ALERT_RULES"))
	p.Settings.Reject("ROUNDHOUSE_ALERT_RULES", err)
	steps, err := alerts.New(alerts.Config{Rules: rules})
	if err != nil {
		return engine.Definition{}, err
	}
	d := alerts.Definition(steps)
	d.Function = "alert-processor" // the standard's own name
	opener := key(p, "ROUNDHOUSE_ALERTS_KEY")
	tokens, err := tokensOf(p, "ROUNDHOUSE_ALERTS_", intake.AlertsCaller)
	d.Intakes = []engine.Intake{{Function: "alert-intake", Route: "alerts", Authorize: intake.KeyOrToken(opener, tokens), Closed: opener == "" && tokens == nil}}
	return d, err
}
