package main

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/handler"
)

const (
	// patienceSetting is for how long a run waits for a new version to arrive, and askedSetting who is asked meanwhile.
	patienceSetting = "ROUNDHOUSE_ROTATION_PATIENCE"
	askedSetting    = "ROUNDHOUSE_ROTATION_ROLES"
)

// consumersOf are those of an engine's credentials. knows is asked when the engine has been built.
func consumersOf(p *handler.Platform, engine string, knows func(ctx context.Context, target, version string) (bool, error)) (*consumers.Consumers, error) {
	return consumers.New(consumers.Config{Engine: engine, Tables: p.Tables, Outbox: p.Events, Targets: rotationsFrom(p.Settings).targets(engine), Knows: knows,
		Patience: patience(p), Roles: p.Settings.List(askedSetting)})
}

func patience(p *handler.Platform) time.Duration {
	return p.Settings.Duration(patienceSetting, consumers.DefaultPatience, time.Second)
}

// targets are the credentials of an engine, with those who acknowledge new versions of them.
func (all rotations) targets(engine string) map[string]consumers.Target {
	targets := map[string]consumers.Target{}
	for _, r := range all[engine] {
		if len(r.consumers) > 0 {
			targets[r.target] = consumers.Target{TenantID: r.tenantID, Names: r.consumers}
		}
	}
	return targets
}

// checkKept refuses a time in which a version is retired at the end of which nobody could tell whether its event has arrived.
func checkKept(p *handler.Platform, setting string, d time.Duration) {
	if kept := p.Events.Kept(); d >= kept {
		p.Settings.Reject(setting, fmt.Errorf("it is %v: set less than ROUNDHOUSE_OUTBOX_RETENTION (%v), because the event of a version has to be there still when the one before is retired", d, kept))
	}
}
