package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

const (
	// keysFresh is how long signing keys are used before they are looked up again: a new version takes that long to be used.
	keysFresh = 5 * time.Minute
	// keysStale is how long they are used when they cannot be looked up: no longer, since they may have been revoked.
	keysStale = time.Hour
	// keysPause is the pause between two look-ups that fail while there are keys.
	keysPause = 15 * time.Second
)

// errNoVersion: a signing secret has no version that could be used.
var errNoVersion = errors.New("the secret has no enabled version: add one")

// keyring has the signing keys of a destination, for minutes. It is safe for concurrent use.
type keyring struct {
	settings []settings.SigningKey
	store    secrets.Store
	values   secrets.Reader
	log      *slog.Logger
	now      func() time.Time

	mu       sync.Mutex
	found    []outbox.SigningKey
	foundAt  time.Time
	failedAt time.Time
}

func newKeyring(of []settings.SigningKey, store secrets.Store, values secrets.Reader, log *slog.Logger) *keyring {
	return &keyring{settings: of, store: store, values: values, log: log, now: time.Now}
}

// keys gives the keys to sign with, in the order of the settings: of each secret the newest version that is enabled.
func (k *keyring) keys(ctx context.Context) ([]outbox.SigningKey, error) {
	k.mu.Lock() // deliveries that come at once look up once
	defer k.mu.Unlock()
	now := k.now()
	usable := k.found != nil && now.Sub(k.foundAt) < keysStale
	if k.found != nil && now.Sub(k.foundAt) < keysFresh || usable && now.Sub(k.failedAt) < keysPause {
		return k.found, nil
	}
	found, err := k.lookUp(ctx)
	switch {
	case err == nil:
		k.found, k.foundAt = found, now
		return found, nil
	case usable:
		k.failedAt = now
		k.log.WarnContext(ctx, "outbox signing keys not refreshed: the ones of before are used", "since", k.foundAt, "reason", err.Error())
		return k.found, nil
	default:
		return nil, err
	}
}

func (k *keyring) lookUp(ctx context.Context) ([]outbox.SigningKey, error) {
	var found []outbox.SigningKey
	for _, s := range k.settings {
		key, err := k.read(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("signing key %s: %w", s.ID, err)
		}
		found = append(found, key)
	}
	return found, nil
}

// read reads one key. A secret is a text as Standard Webhooks hands them out, whsec_ and base64, or else the bytes
// themselves.
func (k *keyring) read(ctx context.Context, s settings.SigningKey) (outbox.SigningKey, error) {
	versions, err := k.store.Versions(ctx, s.Secret)
	if err != nil {
		return outbox.SigningKey{}, err
	}
	for _, v := range slices.Backward(versions) {
		if !v.Enabled {
			continue
		}
		value, err := k.values.Value(ctx, s.Secret, v.Version)
		if err != nil {
			return outbox.SigningKey{}, err
		}
		if key, err := outbox.ParseSigningKey(s.ID, string(value)); err == nil {
			return key, nil
		}
		key := outbox.SigningKey{ID: s.ID, Secret: value}
		return key, key.Validate()
	}
	return outbox.SigningKey{}, fmt.Errorf("secret %s: %w", s.Secret, errNoVersion)
}
