package main

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// updateSettings is what the environment tells about the update engine (docs/settings.md).
type updateSettings struct {
	Endpoint       string // of the instances' components
	VerifyTimeout  time.Duration
	VerifyInterval time.Duration
	LockDuration   time.Duration
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
	for name, field := range map[string]*time.Duration{"VERIFY_TIMEOUT": &u.VerifyTimeout, "VERIFY_INTERVAL": &u.VerifyInterval, "LOCK_DURATION": &u.LockDuration} {
		if text := setting(lookup, prefix+name); text != "" {
			var err error
			if *field, err = time.ParseDuration(text); err != nil || *field <= 0 {
				errs = append(errs, fmt.Errorf("%s%s: set a Go duration of more than 0, such as 30m", prefix, name))
			}
		}
	}
	return u, errors.Join(errs...)
}
