package main

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/services/outbound"
)

const (
	endpointSetting   = "ROUNDHOUSE_UPDATE_ENDPOINT"
	updateAuthSetting = "ROUNDHOUSE_UPDATE_AUTH"
	// developmentEndpoint is the address of components with the emulator.
	developmentEndpoint = "http://127.0.0.1:7080"
)

// componentEndpoint returns the address of the components' management.
func componentEndpoint(p *handler.Platform) string {
	p.Settings.Required(endpointSetting, "the https address where components are managed")
	return p.Settings.URL(endpointSetting, developmentEndpoint)
}

// healthEndpoint returns the address of health checks, and the setting of their authentication. A separate endpoint
// does not get the credentials of the other one.
func healthEndpoint(p *handler.Platform) (endpoint, auth string) {
	const own, ownAuth = "ROUNDHOUSE_HEALTH_ENDPOINT", "ROUNDHOUSE_HEALTH_AUTH"
	endpoint = p.Settings.URL(own, componentEndpoint(p))
	if p.Settings.Text(own) == "" && p.Settings.Text(ownAuth) == "" {
		return endpoint, updateAuthSetting
	}
	return endpoint, ownAuth
}

// clientOf returns the client of a target, with the authentication of the setting: {"audience", "signingKeys",
// "clientCertificate"}. Errors are recorded.
func clientOf(p *handler.Platform, setting, target string) *http.Client {
	var auth outbound.Auth
	p.Settings.JSON(setting, &auth)
	return clientWith(p, setting, target, auth)
}

func clientWith(p *handler.Platform, setting, target string, auth outbound.Auth) *http.Client {
	client, err := p.Outbound.Client(setting, target, auth)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			p.Settings.Reject(setting, errors.New(line))
		}
		return nil
	}
	return client
}

// updateEngine updates the components of a managed instance (docs/engines/update.md).
func updateEngine(p *handler.Platform) (engine.Definition, error) {
	endpoint := componentEndpoint(p)
	components, err := update.NewHTTP(endpoint, clientOf(p, updateAuthSetting, endpoint))
	if err != nil {
		return engine.Definition{}, err
	}
	const prefix = "ROUNDHOUSE_UPDATE_"
	r := p.Settings
	var approvals map[string]update.ApprovalRequest
	r.JSON(prefix+"APPROVAL", &approvals)
	r.Reject(prefix+"APPROVAL", update.CheckApprovals(approvals))
	steps, err := update.New(update.Config{Components: components, Registry: p.Registry, Approvals: approvals,
		VerifyTimeout:  r.Duration(prefix+"VERIFY_TIMEOUT", 0, time.Nanosecond),
		VerifyInterval: r.Duration(prefix+"VERIFY_INTERVAL", 0, time.Nanosecond),
		LockDuration:   r.Duration(prefix+"LOCK_DURATION", 0, time.Nanosecond)})
	if err != nil {
		return engine.Definition{}, err
	}
	d := update.Definition(steps)
	d.Intakes = []engine.Intake{updateIntake(p)}
	return d, nil
}

// healthEngine checks the components of managed instances (docs/engines/health.md).
func healthEngine(p *handler.Platform) (engine.Definition, error) {
	endpoint, auth := healthEndpoint(p)
	checker, err := health.NewHTTP(endpoint, clientOf(p, auth, endpoint))
	if err != nil {
		return engine.Definition{}, err
	}
	steps, err := health.New(health.Config{Checker: checker, Registry: p.Registry,
		CheckTimeout: p.Settings.Duration("ROUNDHOUSE_HEALTH_CHECK_TIMEOUT", 0, time.Nanosecond)})
	if err != nil {
		return engine.Definition{}, err
	}
	d := health.Definition(steps)
	d.Schedules = []engine.Schedule{health.Every("0 */5 * * * *", p.Registry)}
	return d, nil
}

// updatePublisherEngine notifies managed instances of releases (docs/engines/update-publisher.md).
func updatePublisherEngine(p *handler.Platform) (engine.Definition, error) {
	const prefix = "ROUNDHOUSE_UPDATE_"
	releases, err := updatepublisher.ParseReleases(p.Settings.Text(prefix + "RELEASES"))
	p.Settings.Reject(prefix+"RELEASES", err)
	steps, err := updatepublisher.New(updatepublisher.Config{Registry: p.Registry, Releases: releases,
		DefaultRing: p.Settings.Text(prefix + "DEFAULT_RING"), Wanted: active})
	if err != nil {
		return engine.Definition{}, err
	}
	d := updatepublisher.Definition(steps)
	d.Schedules = []engine.Schedule{updatepublisher.Every("0 23 * * * *")}
	d.Intakes = []engine.Intake{reportIntake(p)}
	return d, nil
}
