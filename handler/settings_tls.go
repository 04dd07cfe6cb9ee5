package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"strings"

	"github.com/vibedata/roundhouse/engine/tls"
)

// The directories of Let's Encrypt: that for everybody, and that for tests, which the emulator uses.
const (
	letsEncrypt        = "https://acme-v02.api.letsencrypt.org/directory"
	letsEncryptStaging = "https://acme-staging-v02.api.letsencrypt.org/directory"
)

// tlsSettings is what the environment tells about the tls engine (docs/settings.md).
type tlsSettings struct {
	Directory string // of the authority
	Contact   string // that the authority may write to; none when empty
	Targets   tls.StaticTargets
}

// tlsFrom reads ROUNDHOUSE_ACME_DIRECTORY, ROUNDHOUSE_ACME_CONTACT and ROUNDHOUSE_TLS_TARGETS.
func tlsFrom(lookup lookupFunc, emulator bool) (tlsSettings, error) {
	s := tlsSettings{Directory: setting(lookup, "ROUNDHOUSE_ACME_DIRECTORY"), Contact: setting(lookup, "ROUNDHOUSE_ACME_CONTACT")}
	var errs []error
	switch {
	case s.Directory == "" && emulator:
		s.Directory = letsEncryptStaging
	case s.Directory == "":
		s.Directory = letsEncrypt
	}
	if u, err := url.Parse(s.Directory); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		errs = append(errs, errors.New("ROUNDHOUSE_ACME_DIRECTORY: set the https address of the authority's directory"))
	}
	if _, err := mail.ParseAddress(s.Contact); err != nil && s.Contact != "" {
		errs = append(errs, errors.New("ROUNDHOUSE_ACME_CONTACT: set an e-mail address, or nothing"))
	}
	if text := setting(lookup, "ROUNDHOUSE_TLS_TARGETS"); text != "" {
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		err := d.Decode(&s.Targets)
		if err == nil && d.More() {
			err = errors.New("there is something behind the array")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("ROUNDHOUSE_TLS_TARGETS: set a JSON array as docs/engines/tls.md describes: %w", err))
		}
	}
	return s, errors.Join(errs...)
}
