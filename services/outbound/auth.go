package outbound

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

// maxAudience bounds an audience, in bytes.
const maxAudience = 256

// tokenScope turns an audience into a scope.
const tokenScope = "/.default"

// Auth is the configured identification of the caller to a target; the zero value sends none. It names secrets and
// holds none.
type Auth struct {
	// Audience is the application that a token of the app's own identity is for, such as "api://{client id}".
	Audience string `json:"audience,omitempty"`
	// SigningKeys sign requests as Standard Webhooks does, the current key first.
	SigningKeys []SigningKey `json:"signingKeys,omitempty"`
	// ClientCertificate is the name of a certificate in the vault.
	ClientCertificate string `json:"clientCertificate,omitempty"`
}

// SigningKey is a key that signs requests: Secret is the name of the secret in the vault.
type SigningKey struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
}

// None reports whether no identification is sent.
func (a Auth) None() bool {
	return a.Audience == "" && len(a.SigningKeys) == 0 && a.ClientCertificate == ""
}

// Validate returns all errors, by the members.
func (a Auth) Validate() error {
	var errs []error
	switch {
	case len(a.Audience) > maxAudience || strings.ContainsFunc(a.Audience, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		errs = append(errs, fmt.Errorf("audience: give the URI or the id of an application, without blanks, %d bytes at most", maxAudience))
	case strings.HasSuffix(a.Audience, tokenScope):
		errs = append(errs, fmt.Errorf("audience: leave %s off its end", tokenScope))
	}
	if len(a.SigningKeys) > outbox.MaxKeys {
		errs = append(errs, fmt.Errorf("signingKeys: %d are too many, use %d at most", len(a.SigningKeys), outbox.MaxKeys))
	}
	for i, key := range a.SigningKeys {
		// Only the id is validated: a placeholder secret of the right length replaces the missing one.
		if err := (outbox.SigningKey{ID: key.ID, Secret: make([]byte, outbox.MinSecret)}).Validate(); err != nil {
			errs = append(errs, fmt.Errorf("signingKeys[%d].id: %w", i, err))
		}
		if !secrets.ValidName(key.Secret) {
			errs = append(errs, fmt.Errorf("signingKeys[%d].secret: give the name of a secret, 1 to %d letters, digits and dashes", i, secrets.MaxName))
		}
	}
	if a.ClientCertificate != "" && !secrets.ValidName(a.ClientCertificate) {
		errs = append(errs, fmt.Errorf("clientCertificate: give the name of a certificate, 1 to %d letters, digits and dashes", secrets.MaxName))
	}
	return errors.Join(errs...)
}

// forInstance at the end of the name of a secret is replaced by an instance.
const forInstance = "-{instance}"

// For returns a with the keys of an instance: the name of a secret such as events-{instance} becomes
// secrets.Name("events", instanceID), so that each instance has its own. Names without {instance} are for all; for ""
// (no instance) only these are kept.
func (a Auth) For(instanceID string) Auth {
	var keys []SigningKey
	for _, key := range a.SigningKeys {
		kind, own := strings.CutSuffix(key.Secret, forInstance)
		if own && instanceID == "" {
			continue
		}
		if own {
			key.Secret = secrets.Name(kind, instanceID)
		}
		keys = append(keys, key)
	}
	a.SigningKeys = keys
	return a
}

// ValidateFor is Validate for keys that may be those of instances.
func (a Auth) ValidateFor() error {
	errs := []error{a.For("instance").Validate()}
	for i, key := range a.SigningKeys {
		if kind, ok := strings.CutSuffix(key.Secret, forInstance); ok && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			errs = append(errs, fmt.Errorf("signingKeys[%d].secret: before %s there are lower-case letters and digits only", i, forInstance))
		}
	}
	return errors.Join(errs...)
}

// String returns a description for messages.
func (a Auth) String() string {
	var ways []string
	if a.Audience != "" {
		ways = append(ways, "token for "+a.Audience)
	}
	if len(a.SigningKeys) > 0 {
		ids := make([]string, len(a.SigningKeys))
		for i, key := range a.SigningKeys {
			ids[i] = key.ID
		}
		ways = append(ways, "signature with "+strings.Join(ids, ", "))
	}
	if a.ClientCertificate != "" {
		ways = append(ways, "certificate "+a.ClientCertificate)
	}
	if len(ways) == 0 {
		return "none"
	}
	return strings.Join(ways, "; ")
}
