package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/tls/acme"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/services/outbound"
)

// The directories of Let's Encrypt: the production one, and the test one for the emulator.
const (
	letsEncrypt        = "https://acme-v02.api.letsencrypt.org/directory"
	letsEncryptStaging = "https://acme-staging-v02.api.letsencrypt.org/directory"
)

// targetsSetting is a JSON array of the targets that serve certificates.
const targetsSetting = "ROUNDHOUSE_TLS_TARGETS"

// target is an element of that array: the target, and the authentication of its notices. Runs record only the former,
// so that a correction of the latter applies to the next attempt.
type target struct {
	tls.Target
	outbound.Auth
}

// firstDomains returns the names of the scheduled certificates.
func (all rotations) firstDomains() []string {
	var names []string
	for _, r := range all[tls.Engine] {
		if in, ok := r.input("").(tls.Input); ok {
			names = append(names, in.Domains[0])
		}
	}
	return names
}

// wildcards reports whether a scheduled certificate has a wildcard.
func (all rotations) wildcards() bool {
	return slices.ContainsFunc(all[tls.Engine], func(r rotation) bool {
		in, ok := r.input("").(tls.Input)
		return ok && slices.ContainsFunc(in.Domains, func(domain string) bool { return strings.HasPrefix(domain, "*.") })
	})
}

// targetsOf reads the targets, with the client for each. certificates are the scheduled ones.
func targetsOf(p *handler.Platform, certificates []string) (tls.StaticTargets, map[string]*http.Client) {
	var all []target
	p.Settings.JSON(targetsSetting, &all)
	var targets tls.StaticTargets
	clients := map[string]*http.Client{}
	for i, one := range all {
		targets = append(targets, one.Target)
		if len(one.Certificates) == 0 && len(certificates) == 1 {
			targets[i].Certificates = certificates // and not those of messages
		}
		if one.NotifyURL == "" && one.Auth.None() {
			continue // a target without a notice address is only checked
		}
		clients[one.ID] = clientWith(p, fmt.Sprintf("%s[%d]", targetsSetting, i), one.NotifyURL, one.Auth)
	}
	if err := targets.Validate(certificates); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			p.Settings.Reject(targetsSetting, errors.New(line))
		}
	}
	return targets, clients
}

// tlsEngine renews certificates (docs/engines/tls.md). Certificate authorities request challenges without a key.
func tlsEngine(p *handler.Platform) (engine.Definition, error) {
	r := p.Settings
	r.NeedsRole(settings.SecretsOfficer()) // the key of the account at the authority
	r.NeedsRole(settings.CertificatesOfficer())
	directory := letsEncrypt
	if r.Development {
		directory = letsEncryptStaging
	}
	directory = r.URL("ROUNDHOUSE_ACME_DIRECTORY", directory)
	contact := r.Text("ROUNDHOUSE_ACME_CONTACT")
	if _, err := mail.ParseAddress(contact); err != nil && contact != "" {
		r.Reject("ROUNDHOUSE_ACME_CONTACT", errors.New("set an e-mail address, or nothing"))
	}
	all := rotationsFrom(r)
	targets, clients := targetsOf(p, all.firstDomains())
	challenges := acme.HTTP01{Tables: p.Tables}
	authority, err := acme.New(acme.Config{Directory: directory, Contact: contact, Vault: p.Secrets, Solvers: solversOf(p, challenges, all.wildcards()), Log: p.Log})
	if err != nil {
		return engine.Definition{}, err
	}
	steps, err := tls.New(tls.Config{Vault: p.Certificates, Authority: authority, Targets: targets, Tables: p.Tables,
		Distributor: tls.HTTPDistributor{Client: func(to tls.Target) (*http.Client, error) {
			if client := clients[to.ID]; client != nil {
				return client, nil
			}
			return nil, fmt.Errorf("%s has no target %.80q any more", targetsSetting, to.ID)
		}}})
	if err != nil {
		return engine.Definition{}, err
	}
	d := tls.Definition(steps)
	d.Schedules = []engine.Schedule{all.schedule(tls.Engine, "0 41 2 * * *")}
	d.Credentials = certificateExpiries(p.Certificates, all.names(tls.Engine))
	d.Endpoints = []engine.Endpoint{{Function: "acme-challenge", Route: "acme-challenge/{token}", Methods: []string{http.MethodGet}, Anonymous: true, Handler: challenges}}
	return d, nil
}
