package main

import (
	"errors"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/intake"
	"github.com/vibedata/roundhouse/internal/entraid"
	"github.com/vibedata/roundhouse/services/marketplace"
)

// provisioningEngine provisions purchases of the marketplace (docs/engines/provisioning.md).
func provisioningEngine(p *handler.Platform) (engine.Definition, error) {
	r := p.Settings
	plans := r.List("ROUNDHOUSE_MARKETPLACE_PLANS")
	credential, err := p.Identity()
	if err != nil {
		return engine.Definition{}, err
	}
	market, err := marketplace.New(marketplace.Config{Endpoint: r.Text("ROUNDHOUSE_MARKETPLACE_URL"), Management: r.Text(managementSetting), Credential: credential})
	if err != nil {
		return engine.Definition{}, err
	}
	steps, err := provisioning.New(provisioning.Config{Marketplace: market, Registry: instances{p.Registry}, Plans: plans,
		BootstrapDeadline: r.Duration("ROUNDHOUSE_BOOTSTRAP_DEADLINE", 0, time.Minute)})
	if err != nil {
		return engine.Definition{}, err
	}
	d := provisioning.Definition(steps)
	tokens, err := tokensOf(p, "ROUNDHOUSE_MARKETPLACE_", intake.MarketplaceCaller)
	signature := key(p, "ROUNDHOUSE_MANAGED_APP_SIGNATURE")
	d.Intakes = []engine.Intake{
		// The marketplace and managed applications accept only 200 as a success. The configured address of a managed
		// application is .../api/managed-app: it appends /resource.
		{Function: "marketplace-webhook", Route: "marketplace/webhook", Status: http.StatusOK, Authorize: intake.KeyOrToken("", tokens), Closed: tokens == nil,
			Adapt: provisioning.AdaptWebhook, Declines: func(body []byte) bool { return provisioning.Declines(body, plans) }},
		{Function: "managed-app-notification", Route: "managed-app/resource", Status: http.StatusOK, Authorize: intake.Signature("sig", signature), Closed: signature == "",
			Adapt: provisioning.AdaptNotification},
	}
	return d, err
}

// tokensOf verifies tokens of Microsoft Entra for our application (prefix+"APP_ID", an id, or the URI made of it) in
// our tenant (prefix+"TENANT"), in a caller's name; nil when neither is set.
func tokensOf(p *handler.Platform, prefix, caller string) (*intake.Entra, error) {
	tenant, app := p.Settings.Text(prefix+"TENANT"), p.Settings.Text(prefix+"APP_ID")
	authority := p.Settings.URL("ROUNDHOUSE_INTAKE_LOGIN_URL", "")
	if tenant == "" && app == "" {
		return nil, nil
	}
	if tenant == "" || app == "" {
		p.Settings.Reject(prefix+"TENANT and "+prefix+"APP_ID", errors.New("set both, the first to the id of a tenant, or none"))
		return nil, nil
	}
	tenant, tenantErr := entraid.Parse(tenant)
	app, appErr := entraid.Application(app)
	if tenantErr != nil || appErr != nil {
		p.Settings.Reject(prefix+"TENANT", tenantErr)
		p.Settings.Reject(prefix+"APP_ID", appErr)
		return nil, nil
	}
	return intake.NewEntra(intake.EntraConfig{Tenant: tenant, Audiences: []string{app, "api://" + app}, Callers: []string{caller}, Authority: authority})
}

// key reads a key or a signature.
func key(p *handler.Platform, name string) string {
	text := p.Settings.Text(name)
	if text != "" {
		p.Settings.Reject(name, intake.CheckKey(text))
	}
	return text
}
