package main

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/handler"
)

const (
	// patienceSetting is the time that a run waits for a new version to arrive, and askedSetting the roles of the
	// task meanwhile.
	patienceSetting = "ROUNDHOUSE_ROTATION_PATIENCE"
	askedSetting    = "ROUNDHOUSE_ROTATION_ROLES"
)

// consumersOf returns the consumers of an engine's credentials. knows is called after the engine has been built.
func consumersOf(p *handler.Platform, engine string, knows func(ctx context.Context, target, version string) (bool, error)) (*consumers.Consumers, error) {
	return consumers.New(consumers.Config{Engine: engine, Tables: p.Tables, Outbox: p.Events, Targets: rotationsFrom(p.Settings).targets(engine), Knows: knows,
		Patience: patience(p), Roles: p.Settings.List(askedSetting)})
}

func patience(p *handler.Platform) time.Duration {
	return p.Settings.Duration(patienceSetting, consumers.DefaultPatience, time.Second)
}

// targets returns the credentials of an engine, with the consumers that acknowledge new versions.
func (all rotations) targets(engine string) map[string]consumers.Target {
	targets := map[string]consumers.Target{}
	for _, r := range all[engine] {
		if len(r.consumers) > 0 {
			targets[r.target] = consumers.Target{TenantID: r.tenantID, Names: r.consumers}
		}
	}
	return targets
}

// checkKept refuses a retirement time after which the arrival of a version's event would be unknown.
func checkKept(p *handler.Platform, setting string, d time.Duration) {
	if kept := p.Events.Kept(); d >= kept {
		p.Settings.Reject(setting, fmt.Errorf("it is %v: set less than ROUNDHOUSE_OUTBOX_RETENTION (%v), because the event of a version has to be there still when the one before is retired", d, kept))
	}
}
