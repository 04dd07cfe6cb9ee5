package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/handler/intake"
)

// outside is what the environment says of the marketplace, and of those who send over HTTP.
type outside struct {
	// MarketplaceTenant and MarketplaceApp say whose tokens webhooks bear, and for which application
	// (ROUNDHOUSE_MARKETPLACE_TENANT, ROUNDHOUSE_MARKETPLACE_APP_ID); without them there is no webhook intake.
	MarketplaceTenant, MarketplaceApp string
	// Signature is the sig of managed applications (ROUNDHOUSE_MANAGED_APP_SIGNATURE, 16 characters or more); without it
	// there is no notification intake.
	Signature string
	// MarketplaceURL and ManagementURL are other endpoints than those of the public cloud (ROUNDHOUSE_MARKETPLACE_URL,
	// ROUNDHOUSE_MANAGEMENT_URL).
	MarketplaceURL, ManagementURL string
	// LoginURL is Microsoft Entra of another cloud, whose tokens the intakes take (ROUNDHOUSE_INTAKE_LOGIN_URL).
	LoginURL string
	// Plans are those that customers may change to (ROUNDHOUSE_MARKETPLACE_PLANS, separated by commas); all unless set.
	Plans []string
	// BootstrapDeadline is how long an instance gets (ROUNDHOUSE_BOOTSTRAP_DEADLINE, a Go duration); 1h unless set.
	BootstrapDeadline time.Duration
	// AlertRules say what becomes of alerts (ROUNDHOUSE_ALERT_RULES, a JSON array); one for all unless set.
	AlertRules []alerts.Rule
	// AlertsKey opens the alerts intake (ROUNDHOUSE_ALERTS_KEY, 16 characters or more), and so do tokens of AlertsTenant
	// for AlertsApp (ROUNDHOUSE_ALERTS_TENANT, ROUNDHOUSE_ALERTS_APP_ID); without either there is no alerts intake.
	AlertsKey, AlertsTenant, AlertsApp string
}

func outsideSettings(lookup lookupFunc) (outside, error) {
	var o outside
	var errs [7]error
	o.MarketplaceTenant, o.MarketplaceApp, errs[0] = tokenSettings(lookup, "ROUNDHOUSE_MARKETPLACE_TENANT", "ROUNDHOUSE_MARKETPLACE_APP_ID")
	o.AlertsTenant, o.AlertsApp, errs[1] = tokenSettings(lookup, "ROUNDHOUSE_ALERTS_TENANT", "ROUNDHOUSE_ALERTS_APP_ID")
	o.Signature, errs[2] = keySetting(lookup, "ROUNDHOUSE_MANAGED_APP_SIGNATURE")
	o.AlertsKey, errs[3] = keySetting(lookup, "ROUNDHOUSE_ALERTS_KEY")
	o.MarketplaceURL, o.ManagementURL = setting(lookup, "ROUNDHOUSE_MARKETPLACE_URL"), setting(lookup, "ROUNDHOUSE_MANAGEMENT_URL")
	for plan := range strings.SplitSeq(setting(lookup, "ROUNDHOUSE_MARKETPLACE_PLANS"), ",") {
		if plan = strings.TrimSpace(plan); plan != "" {
			o.Plans = append(o.Plans, plan)
		}
	}
	o.LoginURL, errs[6] = cloudSetting(lookup, "ROUNDHOUSE_INTAKE_LOGIN_URL", "")
	o.BootstrapDeadline, errs[4] = deadlineSetting(lookup)
	if o.AlertRules, errs[5] = alerts.ParseRules(setting(lookup, "ROUNDHOUSE_ALERT_RULES")); errs[5] != nil {
		errs[5] = fmt.Errorf("ROUNDHOUSE_ALERT_RULES: %w", errs[5])
	}
	return o, errors.Join(errs[:]...)
}

func tokenSettings(lookup lookupFunc, tenantName, appName string) (tenant, app string, err error) {
	tenant, app = setting(lookup, tenantName), setting(lookup, appName)
	if _, bad := uuid.Parse(tenant); (tenant != "" || app != "") && (bad != nil || app == "") {
		err = fmt.Errorf("%s and %s: set both, the first to the id of a tenant, or none", tenantName, appName)
	}
	return tenant, app, err
}

func keySetting(lookup lookupFunc, name string) (string, error) {
	key := setting(lookup, name)
	if key != "" && len(key) < 16 {
		return "", fmt.Errorf("%s is too short: set 16 characters or more", name)
	}
	return key, nil
}

func deadlineSetting(lookup lookupFunc) (time.Duration, error) {
	const name = "ROUNDHOUSE_BOOTSTRAP_DEADLINE"
	text := setting(lookup, name)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Minute {
		return 0, fmt.Errorf("%s is %q: set a Go duration of a minute or more, such as 1h", name, text)
	}
	return d, nil
}

// intakes adds to a configuration the intakes whose senders can be verified; the marketplace's are the publisher's alone.
func intakes(o outside, d deployment, c intake.Config) (intake.Config, error) {
	var errs [2]error
	webhooks := intake.Target{Queue: provisioning.Queue, Adapt: provisioning.Adapt}
	if d == publisher && o.MarketplaceTenant != "" {
		c.Webhook = &intake.Webhook{Target: webhooks, Declines: func(body []byte) bool { return provisioning.Declines(body, o.Plans) }}
		c.Webhook.Tokens, errs[0] = intake.NewEntra(intake.EntraConfig{Tenant: o.MarketplaceTenant, Audiences: []string{o.MarketplaceApp}, Callers: []string{intake.MarketplaceCaller}, Authority: o.LoginURL})
	}
	if d == publisher && o.Signature != "" {
		c.Notifications = &intake.Notifications{Target: webhooks, Signature: o.Signature}
	}
	if o.AlertsKey != "" || o.AlertsTenant != "" {
		c.Alerts = &intake.Alerts{Target: intake.Target{Queue: alerts.Queue, Adapt: alerts.Adapt}, Key: o.AlertsKey}
	}
	if o.AlertsTenant != "" {
		c.Alerts.Tokens, errs[1] = intake.NewEntra(intake.EntraConfig{Tenant: o.AlertsTenant, Audiences: []string{o.AlertsApp, "api://" + o.AlertsApp}, Callers: []string{intake.AlertsCaller}, Authority: o.LoginURL})
	}
	return c, errors.Join(errs[:]...)
}
