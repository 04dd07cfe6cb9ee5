package keys_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/keys"
	"github.com/vibedata/roundhouse/services/keys/keystest"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

func TestDevelopment(t *testing.T) {
	t.Parallel()
	keystest.Run(t, func(t *testing.T) keystest.Key {
		store := tables.NewMemory()
		testenv.OK(t, store.CreateTable(t.Context(), secrets.DevelopmentTable))
		kept := secrets.NewDevelopment(store)
		named, err := keys.NewDevelopment(kept, "payloads")
		unnamed, alsoErr := keys.NewDevelopment(kept, "")
		testenv.OK(t, errors.Join(err, alsoErr))
		return keystest.Key{Keys: named, Unnamed: unnamed, Disable: named.Disable,
			Rotate: func(ctx context.Context) error { _, err := named.Rotate(ctx); return err }}
	})
}

func TestKeyVault(t *testing.T) {
	t.Parallel()
	keystest.Run(t, func(t *testing.T) keystest.Key {
		vault := newVault(t)
		return keystest.Key{Keys: connect(t, vault, "payloads"), Unnamed: connect(t, vault, ""),
			Rotate:  func(context.Context) error { _, err := vault.Rotate("payloads"); return err },
			Disable: func(_ context.Context, version string) error { vault.Disable("payloads", version); return nil }}
	})
}

// newVault returns a vault with a key.
func newVault(t *testing.T) *keystest.Vault {
	t.Helper()
	vault := keystest.NewVault(t)
	testenv.Must(vault.Rotate("payloads"))(t)
	return vault
}

func connect(t *testing.T, vault *keystest.Vault, name string) *keys.KeyVault {
	t.Helper()
	return testenv.Must(keys.NewKeyVault(vault.URL(), name, vault.Credential(), vault.Options()))(t)
}

// A refusal of Key Vault is reported with a remedy, and is no error of storage.
func TestKeyVaultErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		refusal keystest.Refusal
		want    error
		text    string
	}{
		{keystest.Refusal{Status: 400, Code: "BadParameter", Message: "no good"}, keys.ErrInvalid, "type RSA"},
		{keystest.Refusal{Status: 403, Code: "Forbidden", InnerCode: "ForbiddenByRbac"}, keys.ErrForbidden, "Key Vault Crypto Service Encryption User"},
		{keystest.Refusal{Status: 404, Code: "KeyNotFound"}, keys.ErrNotFound, "az keyvault key recover"},
		{keystest.Refusal{Status: 409, Code: "Conflict", InnerCode: "ObjectIsDeletedButRecoverable"}, keys.ErrNotFound, "az keyvault key recover"},
		{keystest.Refusal{Status: 418, Message: strings.Repeat("ü", 5000)}, keys.ErrUnavailable, "..."},
	} {
		vault := newVault(t)
		vault.Refuse(c.refusal)
		_, _, err := connect(t, vault, "payloads").Wrap(t.Context(), make([]byte, 32))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "payloads") || len(err.Error()) > 1000 {
			t.Errorf("%d: %v, want %v and %q", c.refusal.Status, err, c.want, c.text)
		}
		if errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrInvalid) {
			t.Errorf("%v is one of storage", err)
		}
	}
}

// Requests to a busy vault are repeated, and an unavailable one is reported.
func TestKeyVaultRepeats(t *testing.T) {
	t.Parallel()
	vault := newVault(t)
	vault.Refuse(keystest.Refusal{Status: 503}, keystest.Refusal{Status: 429}, keystest.Refusal{})
	if _, _, err := connect(t, vault, "payloads").Wrap(t.Context(), make([]byte, 32)); err != nil {
		t.Error(err)
	}
	vault.Refuse(keystest.Refusal{}, keystest.Refusal{}, keystest.Refusal{}, keystest.Refusal{}, keystest.Refusal{})
	if _, _, err := connect(t, vault, "payloads").Wrap(t.Context(), make([]byte, 32)); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// An envelope sends the vault two requests to encrypt any number of payloads, and another process one to read them.
func TestKeyVaultIsAskedSeldom(t *testing.T) {
	t.Parallel()
	vault := newVault(t)
	var envelopes [2]*codec.Envelope
	for i := range envelopes {
		var err error
		if envelopes[i], err = codec.NewEnvelope(codec.EnvelopeConfig{Keys: connect(t, vault, "payloads")}); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		sealed := testenv.Must(envelopes[0].Encode(t.Context(), []byte("payload"), "p"))(t)
		if got, err := envelopes[1].Decode(t.Context(), sealed, "p"); err != nil || string(got) != "payload" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	for operation, want := range map[string]int{"get": 1, "wrapkey": 1, "unwrapkey": 1} {
		if n := vault.Count(operation); n != want {
			t.Errorf("%d times %s, want %d", n, operation, want)
		}
	}
}

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	vault := keystest.NewVault(t)
	for _, url := range []string{"", "http://x.vault.azure.net", "https://u:p@x.vault.azure.net", "https://x/keys/payloads"} {
		if _, err := keys.NewKeyVault(url, "payloads", vault.Credential(), nil); !errors.Is(err, keys.ErrInvalid) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := keys.NewKeyVault(vault.URL(), "payloads", nil, nil); err == nil {
		t.Error("no credential")
	}
	for _, name := range []string{"a/b", "..", "ä", strings.Repeat("x", 128)} {
		_, err := keys.NewKeyVault(vault.URL(), name, vault.Credential(), nil)
		_, alsoErr := keys.NewDevelopment(nil, name)
		if !errors.Is(err, keys.ErrInvalid) || !errors.Is(alsoErr, keys.ErrInvalid) {
			t.Errorf("%s: %v, %v", name, err, alsoErr)
		}
	}
}
