package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/internal/ncrontab"
	"github.com/vibedata/roundhouse/services/entra"
)

// spnCron is when secrets of service principals are rotated.
const spnCron = "0 26 2 * * 0"

// owner is what the mark of a deployment's secrets looks like.
var owner = regexp.MustCompile(`^[0-9A-Za-z.-]{1,40}$`)

// spnEngine rotates secrets of service principals (docs/engines/spn.md).
func spnEngine(p *handler.Platform) (engine.Definition, error) {
	const prefix = "ROUNDHOUSE_SPN_"
	r := p.Settings
	r.NeedsRole(settings.SecretsOfficer())
	config := spn.Config{Vault: p.Secrets, Values: p.Secrets, Owner: ownerOf(r.Text(prefix+"OWNER"), p.VaultURL),
		Overlap:     r.Duration(prefix+"OVERLAP", spn.DefaultOverlap, time.Nanosecond),
		RemoveAfter: r.Duration(prefix+"REMOVE_AFTER", spn.DefaultRemoveAfter, time.Nanosecond),
		Lifetime:    r.Duration(prefix+"LIFETIME", spn.DefaultLifetime, time.Nanosecond), EventID: p.Events.ID}
	checkKept(p, prefix+"OVERLAP", config.Overlap)
	r.Reject(prefix+"LIFETIME", checkLifetime(config, patience(p), spnCron))
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
	var steps *spn.Steps
	needed, err := consumersOf(p, spn.Engine, func(ctx context.Context, target, version string) (bool, error) {
		return steps.Knows(ctx, target, version)
	})
	if err != nil {
		return engine.Definition{}, err
	}
	config.Directory, config.Login, config.Arrivals = graph, login, needed
	if steps, err = spn.New(config); err != nil {
		return engine.Definition{}, err
	}
	d := spn.Definition(steps)
	d.Schedules = []engine.Schedule{rotationsFrom(r).schedule(spn.Engine, spnCron)}
	d.Consumers = needed
	return d, nil
}

// checkLifetime refuses passwords that would end before the next one is there and those who need it could take it up, or before
// they are removed.
func checkLifetime(c spn.Config, patience time.Duration, cron string) error {
	apart, err := longestGap(cron)
	if err != nil {
		return err
	}
	if least := apart + max(c.Overlap+patience, c.Overlap+c.RemoveAfter); c.Lifetime <= least {
		return fmt.Errorf("it is %v: set more than %v, which is %v from one rotation to the next, the overlap (%v), and the longer of ROUNDHOUSE_ROTATION_PATIENCE (%v) and ROUNDHOUSE_SPN_REMOVE_AFTER (%v)",
			c.Lifetime, least, apart, c.Overlap, patience, c.RemoveAfter)
	}
	return nil
}

// longestGap is how far apart two occurrences of a schedule are at most, in the next hundred.
func longestGap(cron string) (gap time.Duration, err error) {
	expression, err := ncrontab.Parse(cron)
	if err != nil {
		return 0, err
	}
	at := expression.Next(time.Now())
	for range 100 {
		next := expression.Next(at)
		gap, at = max(gap, next.Sub(at)), next
	}
	return gap, nil
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
