package keys

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/services/secrets"
)

// developmentPrefix begins the ids of keys outside Key Vault.
const developmentPrefix = "development/"

// SecretStore is the store of Development's key.
type SecretStore interface {
	secrets.Store
	secrets.Reader
}

// Development is the key for a developer's machine. It is stored in the development secret store, so it protects
// nothing: it demonstrates encryption. An id of a key is development/{name}/{version}.
type Development struct {
	store SecretStore
	name  string
}

var _ codec.Keys = (*Development)(nil)

// NewDevelopment uses the key with this name, which is made on first use; "" unwraps only.
func NewDevelopment(store SecretStore, name string) (*Development, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	return &Development{store, name}, nil
}

// Wrap implements codec.Keys.
func (d *Development) Wrap(ctx context.Context, key []byte) (wrapped []byte, id string, err error) {
	if d.name == "" {
		return nil, "", fmt.Errorf("wrap a data key: %w", ErrNoName)
	}
	version, _, err := d.newest(ctx)
	if err == nil && version == "" {
		version, err = d.Rotate(ctx)
	}
	if err != nil {
		return nil, "", err
	}
	aead, err := d.aead(ctx, d.name, version)
	if err != nil {
		return nil, "", err
	}
	return aead.Seal(nil, nil, key, nil), developmentPrefix + d.name + "/" + version, nil
}

// Unwrap implements codec.Keys.
func (d *Development) Unwrap(ctx context.Context, id string, wrapped []byte) ([]byte, error) {
	own, ok := strings.CutPrefix(id, developmentPrefix)
	if !ok {
		return nil, fmt.Errorf("unwrap a data key: %w: %.300q is a key of Key Vault: set ROUNDHOUSE_KEY_VAULT_URL", ErrInvalid, id)
	}
	name, version, err := splitID(own)
	if err != nil {
		return nil, fmt.Errorf("unwrap a data key: %w", err)
	}
	aead, err := d.aead(ctx, name, version)
	if err != nil {
		return nil, err
	}
	key, err := aead.Open(nil, nil, wrapped, nil)
	if err != nil {
		return nil, fmt.Errorf("unwrap a data key with %s: %w: another key has wrapped it", id, ErrInvalid)
	}
	return key, nil
}

// generationTag counts the versions of a key: the store has their times to the second only.
const generationTag = "generation"

// newest returns the version that wraps, "" for none, and its generation.
func (d *Development) newest(ctx context.Context) (version string, generation int, err error) {
	versions, err := d.store.Versions(ctx, secretName(d.name))
	if err != nil {
		return "", 0, fmt.Errorf("find the key %s: %w", d.name, kept(err))
	}
	for _, v := range versions {
		n, err := strconv.Atoi(v.Tags[generationTag])
		if err != nil {
			return "", 0, fmt.Errorf("find the key %s: %w: its version %s has no %s", d.name, ErrInvalid, v.Version, generationTag)
		}
		if n >= generation {
			version, generation = v.Version, n
		}
	}
	return version, generation, nil
}

// Rotate makes a version of the key, which wraps from then on, and returns its name.
func (d *Development) Rotate(ctx context.Context) (version string, err error) {
	_, generation, err := d.newest(ctx)
	if err != nil {
		return "", err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	made, err := d.store.Add(ctx, secretName(d.name), key, map[string]string{generationTag: strconv.Itoa(generation + 1)})
	if err != nil {
		return "", fmt.Errorf("make a version of the key %s: %w", d.name, kept(err))
	}
	return made.Version, nil
}

// Disable makes the keys that a version has wrapped unreadable.
func (d *Development) Disable(ctx context.Context, version string) error {
	if err := d.store.Disable(ctx, secretName(d.name), version); err != nil {
		return fmt.Errorf("disable version %s of the key %s: %w", version, d.name, kept(err))
	}
	return nil
}

func (d *Development) aead(ctx context.Context, name, version string) (cipher.AEAD, error) {
	key, err := d.store.Value(ctx, secretName(name), version)
	if err != nil {
		return nil, fmt.Errorf("use the key %s/%s: %w", name, version, kept(err))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("use the key %s/%s: %w: it has %d bytes", name, version, ErrInvalid, len(key))
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func secretName(key string) string { return secrets.Name("payloadkey", strings.ToLower(key)) }

// kept converts an error of the secret store to one of this package's. It keeps only the text: the error may be one of
// table storage, which callers would take for missing data.
func kept(err error) error {
	for _, pair := range []struct{ from, to error }{
		{secrets.ErrNotFound, ErrNotFound}, {secrets.ErrForbidden, ErrForbidden}, {secrets.ErrInvalid, ErrInvalid},
	} {
		if errors.Is(err, pair.from) {
			return fmt.Errorf("%w: %v", pair.to, err)
		}
	}
	return fmt.Errorf("%w: %v", ErrUnavailable, err)
}
