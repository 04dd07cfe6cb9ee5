package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/registry"
	enginetls "github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/outbound"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// heard is a received request.
type heard struct {
	method, host, body string
	header             http.Header
}

// components is an endpoint of components that install each version immediately, and are healthy.
type components struct {
	url string

	mu       sync.Mutex
	heard    []heard
	versions map[string]string
}

func newComponents(t *testing.T) *components {
	t.Helper()
	c := &components{versions: map[string]string{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *components) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, heard{r.Method, r.Host, string(body), r.Header})
	switch {
	case r.Method == http.MethodPut:
		var wanted struct{ Version string }
		_ = json.Unmarshal(body, &wanted)
		c.versions[r.URL.Path] = wanted.Version
	case strings.HasSuffix(r.URL.Path, "/health"):
		_, _ = io.WriteString(w, `{"status":"pass"}`)
	case strings.HasSuffix(r.URL.Path, "/components"):
		_, _ = io.WriteString(w, `{"components":["web"]}`)
	case c.versions[r.URL.Path] == "":
		w.WriteHeader(http.StatusNotFound)
	default:
		_ = json.NewEncoder(w).Encode(map[string]string{"version": c.versions[r.URL.Path], "state": "Ready"})
	}
}

// last returns the last request that matches.
func (c *components) last(t *testing.T, match func(heard) bool) heard {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.heard) - 1; i >= 0; i-- {
		if match(c.heard[i]) {
			return c.heard[i]
		}
	}
	t.Fatalf("nothing like it among %d requests", len(c.heard))
	return heard{}
}

// signed checks a request's signature with a key, by Standard Webhooks.
func signed(h heard, key string) bool {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(h.header.Get("Webhook-Id") + "." + h.header.Get("Webhook-Timestamp") + "." + h.body))
	return strings.Contains(h.header.Get("Webhook-Signature"), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// The history contains the caller's identity in requests to components, word for word; without a setting of its own,
// checks use that of updates.
func TestHistoryHasWhatWasSent(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("k", outbox.MinSecret)
	c := newComponents(t)
	h := handlertest.New(t, handler.App{Engines: engines}, map[string]string{contextSetting: "managed-app", endpointSetting: c.url,
		updateAuthSetting: `{"signingKeys":[{"id":"2026-11","secret":"components-hook"}]}`})
	testenv.Must(secrets.NewDevelopment(h.Tables).Add(t.Context(), "components-hook", whsec(key), nil))(t)
	testenv.Must(registry.New(h.Tables, "").Create(t.Context(), registry.Instance{InstanceID: "i1"}))(t)
	h.Send(update.Queue, `{"correlationId":"c1","instanceId":"i1","input":{"version":"2","components":[{"name":"web","version":"1.1"}]}}`)
	h.Deliver()
	h.Send(health.Queue, `{"correlationId":"c2","instanceId":"i1"}`)
	h.Deliver()
	for name, operation := range map[string]string{update.Engine: update.OperationComponentUpdate, health.Engine: health.OperationCheck} {
		got := c.last(t, func(h heard) bool {
			return (h.method == http.MethodPut) == (name == update.Engine)
		})
		want := &outbound.Sent{Target: "http://" + got.host, SignedBy: []string{got.header.Get("Webhook-Key-Id")}, WebhookID: got.header.Get("Webhook-Id"),
			Idempotency: got.header.Get("Idempotency-Key")}
		found := false
		for _, entry := range h.History(name) {
			if entry.Operation != operation {
				continue
			}
			whole := testenv.Must(engine.NewHistory(h.Tables, "").Get(t.Context(), name, entry.RowKey))(t)
			var output struct{ Sent *outbound.Sent }
			if err := json.Unmarshal(whole.Output, &output); err != nil {
				t.Fatalf("%v: %+v", err, whole)
			}
			found = true
			if diff := cmp.Diff(want, output.Sent); diff != "" || !signed(got, key) || want.WebhookID == "" {
				t.Errorf("%s (-sent +history):\n%s%s", name, diff, whole.Output)
			}
		}
		if !found {
			t.Errorf("%s: no %s in the history: %+v, dead letters %+v", name, operation, h.History(name), h.DeadLetters(name))
		}
	}
}

// A separate endpoint of checks does not get the credentials of the endpoint of updates.
func TestHealthEndpointOfItsOwn(t *testing.T) {
	t.Parallel()
	c := newComponents(t)
	h := handlertest.New(t, handler.App{Engines: engines}, map[string]string{contextSetting: "managed-app", endpointSetting: "http://127.0.0.1:1",
		"ROUNDHOUSE_HEALTH_ENDPOINT": c.url, updateAuthSetting: `{"signingKeys":[{"id":"2026-11","secret":"components-hook"}]}`})
	testenv.Must(registry.New(h.Tables, "").Create(t.Context(), registry.Instance{InstanceID: "i1"}))(t)
	h.Send(health.Queue, `{"correlationId":"c2","instanceId":"i1"}`)
	h.Deliver()
	if got := c.last(t, func(heard) bool { return true }); got.header.Get("Webhook-Signature") != "" || got.header.Get("Authorization") != "" {
		t.Errorf("it was told %v", got.header)
	}
}

func TestAuthThatIsRefused(t *testing.T) {
	t.Parallel()
	targets := func(auth string) string {
		return `[{"id":"a","address":"a.example.com:443","notifyUrl":"https://a.example.com/n"` + auth + `}]`
	}
	for _, tt := range []struct {
		in            deployment
		setting, text string
		want          string
	}{
		{managedApp, updateAuthSetting, `{"audiences":"x"}`, `unknown field "audiences"`},
		{managedApp, updateAuthSetting, `{"audience":"api://a/.default"}`, "audience: leave /.default off its end"},
		{managedApp, updateAuthSetting, `{"clientCertificate":"client"}`, "clientCertificate: the address has to begin with https://"},
		{managedApp, "ROUNDHOUSE_HEALTH_AUTH", `{"signingKeys":[{"id":"k","secret":"no/name"}]}`, "signingKeys[0].secret: give the name of a secret"},
		{publisher, targetsSetting, targets(`,"audience":" "`), "audience: give the URI"},
		{publisher, targetsSetting, targets(`,"auth":{}`), `unknown field "auth"`},
		{publisher, targetsSetting, `[{"id":"a","address":"a:1","notifyUrl":"http://a.example.com/n","audience":"api://a"}]`, "https://"},
	} {
		_, err := handler.New(handler.App{Engines: engines}, handler.Config{Lookup: func(name string) (string, bool) {
			text, ok := map[string]string{contextSetting: string(tt.in), tt.setting: tt.text, "AzureWebJobsStorage": "UseDevelopmentStorage=true",
				"FUNCTIONS_CUSTOMHANDLER_PORT": "0", endpointSetting: "http://127.0.0.1:1"}[name]
			return text, ok
		}})
		if err == nil || !strings.Contains(err.Error(), tt.setting) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s=%s: error %v, want %q", tt.setting, tt.text, err, tt.want)
		}
	}
}

// clients returns clients with a vault that has a signing key.
func clients(t *testing.T) (*outbound.Clients, *secrets.Development) {
	t.Helper()
	store := tables.NewMemory()
	vault := secrets.NewDevelopment(store)
	testenv.OK(t, store.CreateTable(t.Context(), secrets.DevelopmentTable))
	testenv.Must(vault.Add(t.Context(), "hook", whsec(strings.Repeat("k", outbox.MinSecret)), nil))(t)
	c, err := outbound.New(outbound.Config{Vault: vault, Identity: func() (azcore.TokenCredential, error) { return nil, errors.New("no identity") }})
	if err != nil {
		t.Fatal(err)
	}
	return c, vault
}

// None of the four callers follows a redirect, with identity or without: it is a permanent error that names the
// redirect.
func TestRedirectsAreRefused(t *testing.T) {
	t.Parallel()
	var elsewhere sync.Map
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { elsewhere.Store(r.URL.Path, r.Header) }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	all, _ := clients(t)
	auth := outbound.Auth{SigningKeys: []outbound.SigningKey{{ID: "k", Secret: "hook"}}}
	with := testenv.Must(all.Client("TEST", server.URL, auth))(t)
	t.Cleanup(with.CloseIdleConnections)
	for name, client := range map[string]*http.Client{"with identity": with, "without": {Transport: &http.Transport{DisableKeepAlives: true}}} {
		checkRedirects(t, name, server.URL, client)
	}
	sender, err := outbox.NewHTTP(outbox.HTTPConfig{URL: server.URL + "/hook", Source: "/test", AllowPlaintext: true, Allow: []string{"127.0.0.0/8"}, Keys: all.Keys(auth)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sender.Close() })
	e, ok := errors.AsType[*outbox.DeliveryError](sender.Deliver(t.Context(), outbox.Event{ID: "1", TenantID: "t", Type: "x", Key: uuid.New(), Payload: []byte("{}")}))
	if !ok || !e.Permanent || !strings.Contains(e.Error(), "redirects are not followed") {
		t.Errorf("an event: %v", e)
	}
	elsewhere.Range(func(path, header any) bool { t.Errorf("a redirect was followed to %v: %v", path, header); return true })
}

func checkRedirects(t *testing.T, name, url string, client *http.Client) {
	t.Helper()
	updates, err1 := update.NewHTTP(url, client)
	checks, err2 := health.NewHTTP(url, client)
	testenv.OK(t, errors.Join(err1, err2))
	notices := enginetls.HTTPDistributor{Client: func(enginetls.Target) (*http.Client, error) { return client, nil }}
	for what, tt := range map[string]struct {
		err  error
		want error
	}{
		"update": {updates.Apply(t.Context(), "i1", "web", "1", "key"), update.ErrRefused},
		"health": {func() error { _, err := checks.Components(t.Context(), "i1"); return err }(), health.ErrRefused},
		"notice": {notices.Distribute(t.Context(), enginetls.Target{ID: "a", NotifyURL: url + "/n"}, enginetls.Certificate{Fingerprint: "f"}), enginetls.ErrTarget},
	} {
		if !errors.Is(tt.err, tt.want) || !strings.Contains(tt.err.Error(), "307") {
			t.Errorf("%s, %s: %v", what, name, tt.err)
		}
	}
	if _, err := checks.Check(t.Context(), "i1", "web"); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("check, %s: %v", name, err)
	}
}

// Events use connections with the client certificate of the setting.
func TestEventsWithAClientCertificate(t *testing.T) {
	t.Parallel()
	all, vault := clients(t)
	text := testenv.Must(os.ReadFile("../../services/outbound/testdata/client.pfx.base64"))(t)
	testenv.Must(vault.Add(t.Context(), "client", text, nil))(t)
	var presented []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		presented = append(presented, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	sender, err := outbox.NewHTTP(outbox.HTTPConfig{URL: server.URL + "/hook", Source: "/test", Allow: []string{"127.0.0.0/8"}, RootCAs: roots,
		Identify: func(connections *http.Transport) (http.RoundTripper, error) {
			return all.Identified("TEST", server.URL, outbound.Auth{ClientCertificate: "client"}, connections)
		}})
	if err != nil {
		t.Fatal(err)
	}
	deliver := func(ctx context.Context) error {
		return sender.Deliver(ctx, outbox.Event{ID: "1", TenantID: "t", Type: "x", Key: uuid.New(), Payload: []byte("{}")})
	}
	if err := errors.Join(deliver(t.Context()), deliver(t.Context()), sender.Close()); err != nil || !cmp.Equal(presented, []string{"outbound-pfx", "outbound-pfx"}) {
		t.Errorf("%v, %v", presented, err)
	}
}

// The entry point of managed applications accepts only their notices: a webhook of the marketplace needs the token of
// the other entry point.
func TestManagedAppDoorTakesNoWebhooks(t *testing.T) {
	t.Parallel()
	const signature = "a-signature-of-enough-length"
	h := handlertest.New(t, handler.App{Engines: engines}, map[string]string{"ROUNDHOUSE_MANAGED_APP_SIGNATURE": signature})
	for body, want := range map[string]int{
		`{"id":"7e0c9c9e-1111-4222-8333-000000000001","subscriptionId":"7e0c9c9e-1111-4222-8333-000000000002","action":"Unsubscribe"}`:                                                                                                 http.StatusBadRequest,
		`{"subscriptionId":"7e0c9c9e-1111-4222-8333-000000000002","operationType":"Suspend"}`:                                                                                                                                          http.StatusBadRequest,
		`{"eventType":"PUT","provisioningState":"Accepted","eventTime":"2026-11-21T10:00:00Z","applicationId":"/subscriptions/7e0c9c9e-1111-4222-8333-000000000003/resourceGroups/rg/providers/Microsoft.Solutions/applications/app"}`: http.StatusOK,
	} {
		if status, answer := h.Do(http.MethodPost, "/api/managed-app/resource?sig="+signature, body); status != want {
			t.Errorf("%s: %d %s, want %d", body, status, answer, want)
		}
	}
}
