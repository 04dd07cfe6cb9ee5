package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/internal/ncrontab"
	"github.com/vibedata/roundhouse/services/entra"
)

// spnCron is the schedule for secrets of service principals.
const spnCron = "0 26 2 * * 0"

// owner matches a valid mark of a deployment's secrets.
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
	r.Reject(prefix+"LIFETIME", checkLifetime(config, patience(p), longestGap(inForce(r, spn.Engine, spnCron))))
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
	if loginErr != nil { // its addresses are checked before
		r.Reject(prefix+"TENANT", errors.New("set the id or a domain of the tenant of the applications, and no address"))
	}
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
	all := rotationsFrom(r)
	d.Schedules = []engine.Schedule{all.schedule(spn.Engine, spnCron)}
	d.Credentials = passwordExpiries(p.Secrets, all.names(spn.Engine))
	d.Consumers = needed
	return d, nil
}

// checkLifetime refuses passwords that would expire before their successor exists and its consumers could adopt it,
// or before they are removed.
func checkLifetime(c spn.Config, patience, apart time.Duration) error {
	if least := apart + max(c.Overlap+patience, c.Overlap+c.RemoveAfter); c.Lifetime <= least {
		return fmt.Errorf("it is %v: set more than %v, which is %v from one rotation to the next, the overlap (%v), and the longer of ROUNDHOUSE_ROTATION_PATIENCE (%v) and ROUNDHOUSE_SPN_REMOVE_AFTER (%v)",
			c.Lifetime, least, apart, c.Overlap, patience, c.RemoveAfter)
	}
	return nil
}

// inForce returns the schedule expressions of an engine and its targets: those of ROUNDHOUSE_SCHEDULES, or its own.
func inForce(r *settings.Reader, engine, own string) []string {
	var set schedule.Setting
	r.JSON("ROUNDHOUSE_SCHEDULES", &set) // NewPlan reports its errors
	crons := []string{own}
	for _, key := range []string{engine, engine + "/schedule"} {
		if cron := set[key].Cron; cron != "" {
			crons[0] = cron
		}
		for _, item := range set[key].Items {
			crons = append(crons, item.Cron)
		}
	}
	return crons
}

// longestGap returns the longest interval between two occurrences of an expression among the next hundred; 0 for Off
// and for an invalid expression.
func longestGap(crons []string) (gap time.Duration) {
	for _, cron := range crons {
		expression, err := ncrontab.Parse(cron)
		if err != nil {
			continue
		}
		at := expression.Next(time.Now())
		for range 100 {
			next := expression.Next(at)
			gap, at = max(gap, next.Sub(at)), next
		}
	}
	return gap
}

// ownerOf returns the mark of this deployment's secrets: the vault's host name unless it is set, so that two vaults
// never share one.
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
