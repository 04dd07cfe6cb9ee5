// Package keystest is the test kit of package keys: the conformance suite that every implementation passes, and a Key
// Vault on an HTTPS server for tests of the wire.
package keystest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/services/keys"
)

// Key is a key with the operations of its owner.
type Key struct {
	codec.Keys
	// Unnamed unwraps with all keys of the vault, and cannot wrap.
	Unnamed codec.Keys
	// Rotate makes a newer version.
	Rotate func(ctx context.Context) error
	// Disable makes a version unusable, named by the last part of its id.
	Disable func(ctx context.Context, version string) error
}

// Run tests the promises of package keys. open makes a key for each test.
func Run(t *testing.T, open func(t *testing.T) Key) {
	t.Helper()
	for name, run := range map[string]func(t *testing.T, k Key){
		"wraps and unwraps": wraps, "rotation": rotates, "disabled": disables, "other ids": otherIDs, "what another key wrapped": foreign, "without a name": unnamed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, open(t))
		})
	}
}

func wrap(t *testing.T, k codec.Keys) (key, wrapped []byte, id string) {
	t.Helper()
	key = make([]byte, 32)
	_, _ = rand.Read(key)
	wrapped, id, err := k.Wrap(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(wrapped, key) || len(wrapped) > codec.MaxWrapped || id == "" || len(id) > codec.MaxKeyID {
		t.Fatalf("wrapped in %d bytes with %q", len(wrapped), id)
	}
	return key, wrapped, id
}

func wantKey(t *testing.T, k codec.Keys, id string, wrapped, want []byte) {
	t.Helper()
	if got, err := k.Unwrap(t.Context(), id, wrapped); err != nil || !bytes.Equal(got, want) {
		t.Errorf("unwrapped with %s: %v, the same: %v", id, err, bytes.Equal(got, want))
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func wraps(t *testing.T, k Key) {
	key, wrapped, id := wrap(t, k)
	wantKey(t, k, id, wrapped, key)
	_, again, same := wrap(t, k)
	if id != same || bytes.Equal(wrapped, again) {
		t.Errorf("%s, then %s", id, same)
	}
}

func rotates(t *testing.T, k Key) {
	key, wrapped, id := wrap(t, k)
	if err := k.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	young, youngWrapped, youngID := wrap(t, k)
	if id == youngID {
		t.Errorf("%s wraps before and after the rotation", id)
	}
	wantKey(t, k, id, wrapped, key)
	wantKey(t, k, youngID, youngWrapped, young)
}

func disables(t *testing.T, k Key) {
	_, wrapped, id := wrap(t, k)
	if err := k.Disable(t.Context(), id[strings.LastIndexByte(id, '/')+1:]); err != nil {
		t.Fatal(err)
	}
	_, err := k.Unwrap(t.Context(), id, wrapped)
	wantError(t, "unwrap with a disabled version", err, keys.ErrForbidden)
	_, _, err = k.Wrap(t.Context(), make([]byte, 32))
	wantError(t, "wrap with a disabled version", err, keys.ErrForbidden)
}

func otherIDs(t *testing.T, k Key) {
	_, wrapped, id := wrap(t, k)
	for other, want := range map[string]error{
		"": keys.ErrInvalid, "x": keys.ErrInvalid, "a/b/c/d": keys.ErrInvalid, "../secrets/x": keys.ErrInvalid,
		id[:strings.LastIndexByte(id, '/')+1] + strings.Repeat("0a", 16): keys.ErrNotFound,
	} {
		_, err := k.Unwrap(t.Context(), other, wrapped)
		wantError(t, "unwrap with "+other, err, want)
	}
}

func foreign(t *testing.T, k Key) {
	_, wrapped, id := wrap(t, k)
	wrapped[len(wrapped)/2] ^= 1
	_, err := k.Unwrap(t.Context(), id, wrapped)
	wantError(t, "unwrap what was changed", err, keys.ErrInvalid)
}

func unnamed(t *testing.T, k Key) {
	key, wrapped, id := wrap(t, k)
	wantKey(t, k.Unnamed, id, wrapped, key)
	_, _, err := k.Unnamed.Wrap(t.Context(), key)
	wantError(t, "wrap without a name", err, keys.ErrNoName)
}
