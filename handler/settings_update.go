package main

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/engine/updatepublisher"
)

// updateSettings is what the environment tells about the update engine (docs/settings.md).
type updateSettings struct {
	Endpoint       string // of the instances' components
	VerifyTimeout  time.Duration
	VerifyInterval time.Duration
	LockDuration   time.Duration
	// Releases are what the publisher tells instances of, by their rings, and DefaultRing is the ring of those without one.
	Releases    []updatepublisher.Release
	DefaultRing string
	// HealthEndpoint is where components are looked at; the update endpoint unless set.
	HealthEndpoint string
	HealthTimeout  time.Duration
}

// developmentEndpoint is where components are looked for with the emulator.
const developmentEndpoint = "http://127.0.0.1:7080"

// updateFrom reads what begins with ROUNDHOUSE_UPDATE_. The endpoint is required outside of the emulator.
func updateFrom(lookup lookupFunc, required bool) (updateSettings, error) {
	const prefix = "ROUNDHOUSE_UPDATE_"
	u := updateSettings{Endpoint: setting(lookup, prefix+"ENDPOINT")}
	var errs []error
	switch parsed, err := url.Parse(u.Endpoint); {
	case u.Endpoint == "" && required:
		errs = append(errs, errors.New(prefix+"ENDPOINT is not set: set it to the https address where components are managed"))
	case u.Endpoint == "":
		u.Endpoint = developmentEndpoint
	case err != nil || parsed.Host == "" || parsed.User != nil || required && parsed.Scheme != "https":
		errs = append(errs, errors.New(prefix+"ENDPOINT: set the https address where components are managed"))
	}
	for name, field := range map[string]*time.Duration{prefix + "VERIFY_TIMEOUT": &u.VerifyTimeout, prefix + "VERIFY_INTERVAL": &u.VerifyInterval,
		prefix + "LOCK_DURATION": &u.LockDuration, "ROUNDHOUSE_HEALTH_CHECK_TIMEOUT": &u.HealthTimeout} {
		if text := setting(lookup, name); text != "" {
			var err error
			if *field, err = time.ParseDuration(text); err != nil || *field <= 0 {
				errs = append(errs, fmt.Errorf("%s: set a Go duration of more than 0, such as 30m", name))
			}
		}
	}
	if text := setting(lookup, prefix+"RELEASES"); text != "" {
		var err error
		if u.Releases, err = updatepublisher.ParseReleases(text); err != nil {
			errs = append(errs, fmt.Errorf("%sRELEASES: %w", prefix, err))
		}
	}
	u.DefaultRing = setting(lookup, prefix+"DEFAULT_RING")
	if u.HealthEndpoint = setting(lookup, "ROUNDHOUSE_HEALTH_ENDPOINT"); u.HealthEndpoint == "" {
		u.HealthEndpoint = u.Endpoint
	}
	return u, errors.Join(errs...)
}
