package secrets_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/services/secrets/secretstest"
)

var kinds = []error{
	secrets.ErrNotFound, secrets.ErrForbidden, secrets.ErrInvalid, secrets.ErrDeleted, secrets.ErrThrottled, secrets.ErrOutcomeUnknown,
}

// checkKind reports an error that is not of exactly the wanted kind.
func checkKind(t *testing.T, what string, err, want error) {
	t.Helper()
	for _, kind := range kinds {
		if errors.Is(err, kind) != (kind == want) {
			t.Errorf("%s: %v, want it to be %q alone", what, err, want)
			return
		}
	}
}

func TestKeyVaultAddErrors(t *testing.T) {
	t.Parallel()
	cases := []struct {
		what     string
		fault    secretstest.Fault
		want     error
		text     string // in the error
		versions int    // afterwards
	}{
		{"bad request", secretstest.Fault{Status: 400, Code: "BadParameter", Message: "no good"}, secrets.ErrInvalid, "no good", 0},
		{"no permission", secretstest.Fault{Status: 403, Code: "Forbidden", InnerCode: "ForbiddenByRbac"}, secrets.ErrForbidden, "Key Vault Secrets Officer", 0},
		{"conflict of two changes", secretstest.Fault{Status: 409, Code: "Conflict"}, secrets.ErrThrottled, "status 409", 0},
		{"throttled for long", secretstest.Fault{Status: 429, Code: "Throttled", RetryAfter: time.Hour}, secrets.ErrThrottled, "status 429", 0},
		{"server error", secretstest.Fault{Status: 500}, secrets.ErrOutcomeUnknown, "status 500", 0},
		{"server error after it was applied", secretstest.Fault{Status: 503, Applied: true}, secrets.ErrOutcomeUnknown, "status 503", 1},
		{"time-out of a gateway", secretstest.Fault{Status: 504, Applied: true}, secrets.ErrOutcomeUnknown, "status 504", 1},
		{"cut before it was applied", secretstest.Fault{}, secrets.ErrOutcomeUnknown, "", 0},
		{"cut after it was applied", secretstest.Fault{Applied: true}, secrets.ErrOutcomeUnknown, "", 1},
		{"answer without a version", secretstest.Fault{Status: 200, Applied: true}, secrets.ErrOutcomeUnknown, "", 1},
		{"long message", secretstest.Fault{Status: 400, Message: strings.Repeat("ü", 5000)}, secrets.ErrInvalid, "...", 0},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			vault := secretstest.NewVault(t)
			store := openVault(t, vault)
			c.fault.Method = http.MethodPut
			vault.Inject(c.fault)
			_, err := store.Add(t.Context(), "key", []byte("value"), nil)
			checkKind(t, "Add", err, c.want)
			if err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "secret key") || len(err.Error()) > 1000 {
				t.Errorf("Add = %v, want it to name the operation, the secret and %q, briefly", err, c.text)
			}
			if n := vault.Count(http.MethodPut); n != 1 {
				t.Errorf("%d requests, want 1: a repeated one can make a second version", n)
			}
			if got, err := store.Versions(t.Context(), "key"); err != nil || len(got) != c.versions {
				t.Errorf("Versions = %v, %v; want %d", got, err, c.versions)
			}
		})
	}
}

func TestKeyVaultAddRepeatsWhatWasTurnedAway(t *testing.T) {
	t.Parallel()
	vault := secretstest.NewVault(t)
	store := openVault(t, vault)
	turnedAway := secretstest.Fault{Method: http.MethodPut, Status: 429, RetryAfter: time.Millisecond}
	vault.Inject(turnedAway, turnedAway)
	testenv.Must(store.Add(t.Context(), "key", []byte("value"), nil))(t)
	if n := vault.Count(http.MethodPut); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

func TestKeyVaultAddTimesOut(t *testing.T) {
	t.Parallel()
	vault := secretstest.NewVault(t)
	store := openVault(t, vault)
	hangs := make(chan struct{})
	vault.Inject(secretstest.Fault{Method: http.MethodPut, Applied: true, Hang: hangs})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-hangs; cancel() }()
	_, err := store.Add(ctx, "key", []byte("value"), map[string]string{"job": "1"})
	checkKind(t, "Add", err, secrets.ErrOutcomeUnknown)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Add = %v, want the context's error in it too", err)
	}
	got, err := store.Versions(t.Context(), "key")
	if err != nil || len(got) != 1 || got[0].Tags["job"] != "1" {
		t.Errorf("Versions = %v, %v; want the one that was applied", got, err)
	}
}

func TestKeyVaultReadsAreRepeated(t *testing.T) {
	t.Parallel()
	for _, fault := range []secretstest.Fault{{Status: 503}, {Status: 429, RetryAfter: time.Millisecond}, {}} {
		vault := secretstest.NewVault(t)
		store := openVault(t, vault)
		v := testenv.Must(store.Add(t.Context(), "key", []byte("value"), nil))(t)
		get, patch := fault, fault
		get.Method, patch.Method = http.MethodGet, http.MethodPatch
		vault.Inject(get, patch)
		if got, err := store.Versions(t.Context(), "key"); err != nil || len(got) != 1 {
			t.Errorf("%+v: Versions = %v, %v", fault, got, err)
		}
		if err := store.Disable(t.Context(), "key", v.Version); err != nil {
			t.Errorf("%+v: Disable = %v", fault, err)
		}
	}
}

func TestKeyVaultUnknownSecretWithoutList(t *testing.T) {
	t.Parallel()
	vault := secretstest.NewVault(t)
	store := openVault(t, vault)
	vault.Inject(secretstest.Fault{Method: http.MethodGet, Status: 404, Code: "SecretNotFound"})
	if got, err := store.Versions(t.Context(), "key"); err != nil || len(got) != 0 {
		t.Errorf("Versions = %v, %v; want none", got, err)
	}
}

func TestKeyVaultListsOldestFirst(t *testing.T) {
	t.Parallel()
	vault := secretstest.NewVault(t)
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	vault.Now = func() time.Time { now = now.Add(time.Second); return now }
	store := openVault(t, vault)
	var want []string
	for range 30 {
		v := testenv.Must(store.Add(t.Context(), "key", []byte("v"), nil))(t)
		want = append(want, v.Version)
	}
	got, err := store.Versions(t.Context(), "key")
	if err != nil || len(got) != len(want) {
		t.Fatalf("Versions = %v, %v", got, err)
	}
	for i := range got {
		if got[i].Version != want[i] {
			t.Errorf("version %d is %s, want %s", i, got[i].Version, want[i])
		}
	}
}

func TestKeyVaultForeignValues(t *testing.T) {
	t.Parallel()
	vault := secretstest.NewVault(t)
	client, err := azsecrets.NewClient(vault.URL(), vault.Credential(), vault.Options())
	if err != nil {
		t.Fatal(err)
	}
	store := openVault(t, vault)
	cases := []struct {
		contentType string
		want        string
		err         error
	}{
		{"text/plain", "!plain!", nil},
		{"application/octet-stream;base64", "", secrets.ErrInvalid},
	}
	for _, c := range cases {
		set, err := client.SetSecret(t.Context(), "key", azsecrets.SetSecretParameters{Value: to.Ptr("!plain!"), ContentType: &c.contentType}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.Value(t.Context(), "key", set.ID.Version())
		checkKind(t, c.contentType, err, c.err)
		if string(got) != c.want || err != nil && strings.Contains(err.Error(), "plain!") {
			t.Errorf("%s: Value = %q, %v; want %q", c.contentType, got, err, c.want)
		}
	}
}

func TestKeyVaultSoftDeleted(t *testing.T) {
	t.Parallel()
	vault := secretstest.NewVault(t)
	store := openVault(t, vault)
	testenv.Must(store.Add(t.Context(), "key", []byte("value"), nil))(t)
	vault.SoftDelete("key")
	if got, err := store.Versions(t.Context(), "key"); err != nil || len(got) != 0 {
		t.Errorf("Versions = %v, %v; want none", got, err)
	}
	_, err := store.Add(t.Context(), "key", []byte("value"), nil)
	checkKind(t, "Add", err, secrets.ErrDeleted)
	if err == nil || !strings.Contains(err.Error(), "recover") || !strings.Contains(err.Error(), "purge") {
		t.Errorf("Add = %v, want it to say what to do", err)
	}
}

func TestKeyVaultHidesAnEchoedValue(t *testing.T) {
	t.Parallel()
	value := []byte("\x00\xff the value")
	text := base64.StdEncoding.EncodeToString(value)
	vault := secretstest.NewVault(t)
	store := openVault(t, vault)
	vault.Inject(secretstest.Fault{Method: http.MethodPut, Status: 400, Code: "BadParameter", Message: strings.Repeat("x", 290) + text})
	_, err := store.Add(t.Context(), "key", value, nil)
	checkKind(t, "Add", err, secrets.ErrInvalid)
	if err == nil || strings.Contains(err.Error(), text[:8]) || !strings.Contains(err.Error(), "BadParameter") {
		t.Errorf("Add = %v, want the code and nothing of the value", err)
	}
}

// TestKeyVaultLogsNoValue is not parallel: the SDK has one listener for the whole process.
func TestKeyVaultLogsNoValue(t *testing.T) {
	var mu sync.Mutex
	var lines strings.Builder
	log.SetListener(func(event log.Event, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines.WriteString(line)
	})
	t.Cleanup(func() { log.SetListener(nil) })
	value := []byte("\x00\xff the value")
	vault := secretstest.NewVault(t)
	options := vault.Options()
	options.Logging.IncludeBody = true
	store := testenv.Must(secrets.NewKeyVault(vault.URL(), vault.Credential(), options))(t)
	v := testenv.Must(store.Add(t.Context(), "key", value, nil))(t)
	testenv.Must(store.Value(t.Context(), "key", v.Version))(t)
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(lines.String(), "/secrets/key") {
		t.Fatal("the SDK logged nothing")
	}
	if text := base64.StdEncoding.EncodeToString(value); strings.Contains(lines.String(), text) {
		t.Error("the SDK logged the value")
	}
}

// noToken is a credential without tokens.
type noToken struct{}

func (noToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, errors.New("no identity here")
}

func TestKeyVaultWithoutToken(t *testing.T) {
	t.Parallel()
	vault := secretstest.NewVault(t)
	store, err := secrets.NewKeyVault(vault.URL(), noToken{}, vault.Options())
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Add(t.Context(), "key", []byte("value"), nil)
	checkKind(t, "Add", err, nil)
	if err == nil || !strings.Contains(err.Error(), "not sent") || !strings.Contains(err.Error(), "no identity here") {
		t.Errorf("Add = %v, want that it was not sent, and why", err)
	}
}

func TestNewKeyVaultURL(t *testing.T) {
	t.Parallel()
	credential := noToken{}
	for _, good := range []string{"https://v.vault.azure.net", "https://v.vault.azure.net/", "https://127.0.0.1:8443"} {
		if _, err := secrets.NewKeyVault(good, credential, nil); err != nil {
			t.Errorf("NewKeyVault(%q): %v", good, err)
		}
	}
	for _, bad := range []string{"", "v.vault.azure.net", "http://v.vault.azure.net", "https://", "https://u:hunter2@v.net", "https://v.net/secrets", "https://v.net?a=b", "https://v.net#x", "https://v\x7f"} {
		_, err := secrets.NewKeyVault(bad, credential, nil)
		if !errors.Is(err, secrets.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("NewKeyVault(%q) = %v, want ErrInvalid without the URL", bad, err)
		}
	}
	if _, err := secrets.NewKeyVault("https://v.vault.azure.net", nil, nil); err == nil {
		t.Error("NewKeyVault without a credential succeeded")
	}
}
