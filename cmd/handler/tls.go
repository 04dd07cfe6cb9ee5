package main

import (
	"errors"
	"net/http"
	"net/mail"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/tls/acme"
	"github.com/vibedata/roundhouse/handler"
)

// The directories of Let's Encrypt: that for everybody, and that for tests, which the emulator uses.
const (
	letsEncrypt        = "https://acme-v02.api.letsencrypt.org/directory"
	letsEncryptStaging = "https://acme-staging-v02.api.letsencrypt.org/directory"
)

// targetsSetting is a JSON array of those who serve certificates.
const targetsSetting = "ROUNDHOUSE_TLS_TARGETS"

// distributionTimeout bounds one request that tells a target about a certificate.
const distributionTimeout = 30 * time.Second

// tlsEngine renews certificates (docs/engines/tls.md). Challenges of certificate authorities come without a key.
func tlsEngine(p *handler.Platform) (engine.Definition, error) {
	r := p.Settings
	directory := letsEncrypt
	if r.Development {
		directory = letsEncryptStaging
	}
	directory = r.URL("ROUNDHOUSE_ACME_DIRECTORY", directory)
	contact := r.Text("ROUNDHOUSE_ACME_CONTACT")
	if _, err := mail.ParseAddress(contact); err != nil && contact != "" {
		r.Reject("ROUNDHOUSE_ACME_CONTACT", errors.New("set an e-mail address, or nothing"))
	}
	var targets tls.StaticTargets
	r.JSON(targetsSetting, &targets)
	challenges := acme.HTTP01{Tables: p.Tables}
	authority, err := acme.New(acme.Config{Directory: directory, Contact: contact, Vault: p.Secrets, Solvers: []acme.Solver{challenges}, Log: p.Log})
	if err != nil {
		return engine.Definition{}, err
	}
	steps, err := tls.New(tls.Config{Vault: p.Certificates, Authority: authority, Targets: targets, Tables: p.Tables,
		Distributor: tls.HTTPDistributor{Client: &http.Client{Timeout: distributionTimeout}}})
	if err != nil {
		return engine.Definition{}, err
	}
	d := tls.Definition(steps)
	d.Schedules = []engine.Schedule{rotationsFrom(r).schedule(tls.Engine, "0 41 2 * * *")}
	d.Endpoints = []engine.Endpoint{{Function: "acme-challenge", Route: "acme-challenge/{token}", Methods: []string{http.MethodGet}, Anonymous: true, Handler: challenges}}
	return d, nil
}
