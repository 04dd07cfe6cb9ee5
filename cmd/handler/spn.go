package main

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/services/entra"
)

// owner is what the mark of a deployment's secrets looks like.
var owner = regexp.MustCompile(`^[0-9A-Za-z.-]{1,40}$`)

// spnEngine rotates secrets of service principals (docs/engines/spn.md).
func spnEngine(p *handler.Platform) (engine.Definition, error) {
	const prefix = "ROUNDHOUSE_SPN_"
	r := p.Settings
	r.NeedsRole(settings.SecretsOfficer())
	config := spn.Config{Vault: p.Secrets, Values: p.Secrets, Owner: ownerOf(r.Text(prefix+"OWNER"), p.VaultURL),
		Overlap:  r.Duration(prefix+"OVERLAP", spn.DefaultOverlap, time.Nanosecond),
		Lifetime: r.Duration(prefix+"LIFETIME", spn.DefaultLifetime, time.Nanosecond)}
	if !owner.MatchString(config.Owner) {
		r.Reject(prefix+"OWNER", errors.New("set 1 to 40 letters, digits, dots and dashes"))
	}
	tenant := r.Required(prefix+"TENANT", "the id or a domain of the tenant of the applications")
	if tenant == "" {
		tenant = "common"
	}
	graphURL, loginURL := r.URL(prefix+"GRAPH_URL", entra.DefaultGraph), r.URL(prefix+"LOGIN_URL", entra.DefaultLogin)
	credential, err := p.Identity()
	if err != nil {
		return engine.Definition{}, err
	}
	graph, graphErr := entra.NewGraph(graphURL, credential, nil)
	login, loginErr := entra.NewLogin(loginURL, tenant, graphURL, nil)
	if err := errors.Join(graphErr, loginErr); err != nil {
		return engine.Definition{}, err
	}
	config.Directory, config.Login = graph, login
	steps, err := spn.New(config)
	if err != nil {
		return engine.Definition{}, err
	}
	d := spn.Definition(steps)
	d.Schedules = []engine.Schedule{rotationsFrom(r).schedule(spn.Engine, "0 26 2 * * 0")}
	return d, nil
}

// ownerOf marks the secrets of this deployment: the vault's host name unless it is set, so that two vaults never share one.
func ownerOf(set, vaultURL string) string {
	if set != "" {
		return set
	}
	if vaultURL == "" {
		return "development"
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(vaultURL, "https://"), ".")
	return name
}
