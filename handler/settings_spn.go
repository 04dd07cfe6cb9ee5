package main

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/services/entra"
)

// spnSettings is what the environment tells about the spn engine (docs/settings.md).
type spnSettings struct {
	Tenant   string // of the applications: its id, or a domain of it
	Owner    string // marks the secrets of this deployment
	Overlap  time.Duration
	Lifetime time.Duration
	GraphURL string
	LoginURL string
}

// maxOwner is the longest mark that the engine takes.
const maxOwner = 40

// spnFrom reads what begins with ROUNDHOUSE_SPN_. The tenant is required outside of the emulator; the owner is the vault's
// host name unless it is set, so that two vaults never share one.
func spnFrom(lookup lookupFunc, vaultURL string, required bool) (spnSettings, error) {
	const prefix = "ROUNDHOUSE_SPN_"
	s := spnSettings{Tenant: setting(lookup, prefix+"TENANT"), Owner: setting(lookup, prefix+"OWNER"), GraphURL: entra.DefaultGraph, LoginURL: entra.DefaultLogin,
		Overlap: spn.DefaultOverlap, Lifetime: spn.DefaultLifetime}
	var errs []error
	if s.Tenant == "" && required {
		errs = append(errs, errors.New(prefix+"TENANT is not set: set it to the id or a domain of the tenant of the applications"))
	}
	if s.Tenant == "" {
		s.Tenant = "common"
	}
	if s.Owner == "" {
		s.Owner = "development"
		if vaultURL != "" {
			s.Owner, _, _ = strings.Cut(strings.TrimPrefix(vaultURL, "https://"), ".")
		}
	}
	if len(s.Owner) > maxOwner || !regexp.MustCompile(`^[0-9A-Za-z.-]+$`).MatchString(s.Owner) {
		errs = append(errs, fmt.Errorf("%sOWNER is %.64q: set it to 1 to %d letters, digits, dots and dashes", prefix, s.Owner, maxOwner))
	}
	for name, field := range map[string]*time.Duration{"OVERLAP": &s.Overlap, "LIFETIME": &s.Lifetime} {
		if text := setting(lookup, prefix+name); text != "" {
			var err error
			if *field, err = time.ParseDuration(text); err != nil || *field <= 0 {
				errs = append(errs, fmt.Errorf("%s%s: set a Go duration of more than 0, such as 24h", prefix, name))
			}
		}
	}
	for name, field := range map[string]*string{"GRAPH_URL": &s.GraphURL, "LOGIN_URL": &s.LoginURL} {
		var err error
		*field, err = cloudSetting(lookup, prefix+name, *field)
		errs = append(errs, err)
	}
	return s, errors.Join(errs...)
}

// cloudSetting is the address of a service in another cloud, without a slash at the end; otherwise that of the public one.
func cloudSetting(lookup lookupFunc, name, otherwise string) (string, error) {
	text := setting(lookup, name)
	if text == "" {
		return otherwise, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return otherwise, fmt.Errorf("%s: set https:// and the host name of the cloud that is not the public one", name)
	}
	return strings.TrimSuffix(text, "/"), nil
}
