package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// examineApp checks the settings and the app.
func (a *app) examineApp(ctx context.Context, p *patient) {
	c, err := a.api(ctx)
	if !p.tried("app settings", err, "", "set ROUNDHOUSE_URL to the app's address, https://NAME.azurewebsites.net") {
		return
	}
	environment := "not production: dangerous commands ask, and no more"
	if a.production(false) {
		environment = "production: dangerous commands need --execute"
	}
	p.findings[len(p.findings)-1].Found = fmt.Sprintf("%s, %s", c.URL().Redacted(), environment)
	began := a.Now()
	answer, err := a.ask(ctx, c, client.Request{Method: http.MethodGet, Path: []string{"health", "live"}})
	if !p.tried("app answers", err, "health/live says pass", "start the app, or correct --url") {
		return
	}
	if !answer.Date.IsZero() {
		p.clock("app clock", answer.Date, began, a.Now())
	}
	me, err := look[client.Me](ctx, a, c, nil, "me")
	const signIn = "sign in with --entra and az login, or give a function key with ROUNDHOUSE_KEY (docs/security.md)"
	if p.azure != nil && (unauthenticated(err) || forbidden(err)) {
		p.add("app access", watch, signIn, "%s: what the app says about itself was not looked at", oneLine(err))
		return
	}
	if !p.tried("app access", err, "as "+cmp.Or(me.Name, me.ID)+": "+strings.Join(me.Roles, ", "), signIn) {
		return
	}
	a.examineHealth(ctx, c, p)
	a.examineNodes(ctx, c, p)
}

// examineHealth copies the app's own health report.
func (a *app) examineHealth(ctx context.Context, c *client.Client, p *patient) {
	answer, err := a.ask(ctx, c, client.Request{Method: http.MethodGet, Path: []string{"health", "full"}})
	var health client.Health
	if refusal, ok := errors.AsType[*client.Error](err); ok && refusal.Status == http.StatusServiceUnavailable {
		err = nil // a report with a failed check is no error here
	}
	if err == nil {
		err = decodeInto(answer.Data, &health)
	}
	if err == nil && health.Status == "" {
		err = errors.New("the app answers without a health report")
	}
	if !p.tried("app health", err, "release "+health.ReleaseID, "look at the app's log") {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(health.Checks)) {
		for _, check := range health.Checks[name] {
			v := map[string]verdict{"pass": fine, "warn": watch}[check.Status]
			if v == "" {
				v = broken
			}
			text := strings.TrimSpace(readable(check.ObservedValue) + " " + check.ObservedUnit + " " + check.Output)
			p.add(name, v, "see docs/operating.md", "%s", text)
		}
	}
}
