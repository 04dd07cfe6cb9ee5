package acme

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"github.com/mholt/acmez/v3/acme"

	"github.com/vibedata/roundhouse/services/secrets"
)

// secretKind is the prefix of the name of the account key's secret.
const secretKind = "acme"

// tagDirectory is the tag of an account key with its directory.
const tagDirectory = "acmeDirectory"

// ensureAccount opens the account, or finds the account of the key: the authority identifies it by the key (RFC 8555,
// section 7.3.1).
func (a *Authority) ensureAccount(ctx context.Context) (acme.Account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.account != nil {
		return *a.account, nil
	}
	key, err := a.accountKey(ctx)
	if err != nil {
		return acme.Account{}, err
	}
	account, err := a.client.NewAccount(ctx, acme.Account{Contact: a.config.contacts(), TermsOfServiceAgreed: true, PrivateKey: key})
	if err != nil {
		return acme.Account{}, err
	}
	a.account = &account
	return account, nil
}

// forgetAccount makes the next call open the account again.
func (a *Authority) forgetAccount() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.account = nil
}

// accountKey reads the account's key, and makes one if none exists. Concurrent processes all use the oldest one.
func (a *Authority) accountKey(ctx context.Context) (crypto.Signer, error) {
	name := secrets.Name(secretKind, a.config.Directory)
	version, found, err := a.keyVersion(ctx, name)
	if err != nil {
		return nil, err
	}
	if !found {
		if err := a.makeKey(ctx, name); err != nil {
			return nil, err
		}
		if version, found, err = a.keyVersion(ctx, name); err != nil || !found {
			return nil, errors.Join(err, fmt.Errorf("the account's key %s is not in the vault after it was stored there: try again", name))
		}
	}
	value, err := a.config.Vault.Value(ctx, name, version)
	if err != nil {
		return nil, err
	}
	defer clear(value)
	parsed, err := x509.ParsePKCS8PrivateKey(value)
	key, ok := parsed.(crypto.Signer)
	if err != nil || !ok {
		// The parser's own error is omitted: it may contain a secret.
		return nil, fmt.Errorf("secret %s version %s is no key: disable it to have another account opened", name, version)
	}
	return key, nil
}

// keyVersion finds the version of the account's key: the oldest enabled one.
func (a *Authority) keyVersion(ctx context.Context, name string) (string, bool, error) {
	versions, err := a.config.Vault.Versions(ctx, name)
	if err != nil {
		return "", false, err
	}
	at := slices.IndexFunc(versions, func(v secrets.Version) bool { return v.Enabled })
	if at < 0 {
		return "", false, nil
	}
	return versions[at].Version, true, nil
}

// makeKey stores a new key. The versions show whether it was stored.
func (a *Authority) makeKey(ctx context.Context, name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	value, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	defer clear(value)
	tags := map[string]string{tagDirectory: a.config.Directory[:min(len(a.config.Directory), secrets.MaxTag)]}
	if _, err := a.config.Vault.Add(ctx, name, value, tags); err != nil && !errors.Is(err, secrets.ErrOutcomeUnknown) {
		return err
	}
	return nil
}
