package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

const (
	audience = "api://7e0c9c9e-1111-4222-8333-000000000001"
	secret1  = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

func secretBytes(t *testing.T, text string) []byte {
	t.Helper()
	return testenv.Must(base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_")))(t)
}

// whsec returns a key in the form of Standard Webhooks.
func whsec(key string) string { return "whsec_" + base64.StdEncoding.EncodeToString([]byte(key)) }

// A token is for the configured audience, and is sent only to the target.
func TestToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, other := w.newReceiver(t, nil), w.newReceiver(t, nil)
	c := w.client(t, r, Auth{Audience: audience})
	testenv.OK(t, post(t, t.Context(), c, r.URL+"/hook", "", "x"))
	if got := r.last(t).header.Get("Authorization"); got != "Bearer "+tokenPrefix+audience+"/.default" {
		t.Errorf("Authorization: %q", got)
	}
	err := post(t, t.Context(), c, other.URL+"/hook", "", "x")
	if !errors.Is(err, ErrElsewhere) || strings.Contains(err.Error(), tokenPrefix) || len(other.all()) > 0 {
		t.Errorf("another host got %v: %v", other.all(), err)
	}
	if strings.Contains(w.log.String(), tokenPrefix) {
		t.Errorf("the log has the token:\n%s", &w.log)
	}
}

// Without the target's token no request is sent.
func TestNoToken(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]func() (azcore.TokenCredential, error){
		"no identity": func() (azcore.TokenCredential, error) { return nil, errors.New("no identity here\nsecond line") },
		"no token": func() (azcore.TokenCredential, error) {
			return identity{errors.New("no identity here\nsecond line")}, nil
		},
	} {
		w := newWorld(t, func(c *Config) { c.Identity = find })
		r := w.newReceiver(t, nil)
		err := post(t, t.Context(), w.client(t, r, Auth{Audience: audience}), r.URL+"/hook", "", "x")
		if err == nil || !strings.Contains(err.Error(), "no token for "+audience+": no identity here") || strings.Contains(err.Error(), "second") || len(r.all()) > 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(r.all()))
		}
	}
}

// Signatures cover the sent body, under an id that is the same in all attempts, by all keys; a rotation needs no
// restart.
func TestSignature(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.newReceiver(t, nil)
	w.store(t, "hook", secret1)
	w.store(t, "hook-before", whsec(strings.Repeat("b", outbox.MinSecret)))
	c := w.client(t, r, Auth{SigningKeys: []SigningKey{{"2026-11", "hook"}, {"2026-10", "hook-before"}}})
	for range 2 {
		testenv.OK(t, post(t, t.Context(), c, r.URL+"/hook", "key-1", `{"n":1}`))
		got := r.last(t)
		if !verified(got, secretBytes(t, secret1)) || !verified(got, []byte(strings.Repeat("b", outbox.MinSecret))) || verified(got, []byte("another")) {
			t.Errorf("signature %v", got.header)
		}
		if got.body != `{"n":1}` || got.header.Get("Webhook-Id") != "key-1" || got.header.Get("Webhook-Key-Id") != "2026-11 2026-10" {
			t.Errorf("%+v", got)
		}
	}
	second := strings.Repeat("\xf0\x01", 16)
	w.store(t, "hook", second)
	w.pass(fresh)
	testenv.OK(t, post(t, t.Context(), c, r.URL+"/hook", "", ""))
	if got := r.last(t); !verified(got, []byte(second)) || verified(got, secretBytes(t, secret1)) || len(got.header.Get("Webhook-Id")) != 36 {
		t.Errorf("after the rotation: %v", got.header)
	}
}

func TestWebhookID(t *testing.T) {
	t.Parallel()
	if got := WebhookID("key-1"); got != "key-1" {
		t.Errorf("%q", got)
	}
	if a, b := WebhookID("a.b"), WebhookID("a.c"); a == b || strings.Contains(a, ".") || a != WebhookID("a.b") {
		t.Errorf("%q and %q", a, b)
	}
}

// With a missing key in the vault, the request is not sent.
func TestKeysOfTheVault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.newReceiver(t, nil)
	c := w.client(t, r, Auth{SigningKeys: []SigningKey{{"k1", "hook"}}})
	send := func() error { return post(t, t.Context(), c, r.URL+"/hook", "", "x") }
	if err := send(); !errors.Is(err, secrets.ErrNoVersion) || !strings.Contains(err.Error(), "signing key k1") || len(r.all()) > 0 {
		t.Errorf("without a version: %v, %d requests", err, len(r.all()))
	}
	calls := len(w.plan.Calls())
	for range 30 {
		if err := send(); !errors.Is(err, secrets.ErrNoVersion) {
			t.Errorf("again without a version: %v", err)
		}
	}
	if more := len(w.plan.Calls()) - calls; more > 0 {
		t.Errorf("the vault is asked %d times more for what it does not have", more)
	}
	w.store(t, "hook", secret1)
	w.pass(pause)
	testenv.OK(t, send())
	calls = len(w.plan.Calls())
	if err := send(); err != nil || len(w.plan.Calls()) != calls {
		t.Errorf("keys are not kept: %v, %d calls more", err, len(w.plan.Calls())-calls)
	}
	second := strings.Repeat("2", outbox.MinSecret)
	w.store(t, "hook", whsec(second))
	w.pass(fresh)
	if err := send(); err != nil || !verified(r.last(t), []byte(second)) {
		t.Errorf("the newest that is enabled: %v", err)
	}
	w.plan.Refuse = func(faults.Call) bool { return true }
	w.pass(stale - time.Second)
	if err := send(); err != nil || !verified(r.last(t), []byte(second)) {
		t.Errorf("keys of before, while the vault is away: %v", err)
	}
	w.pass(time.Second)
	if err := send(); !errors.Is(err, tables.ErrThrottled) || strings.Contains(err.Error(), second) {
		t.Errorf("keys that are too old: %v", err)
	}
	if log := w.log.String(); !strings.Contains(log, "not refreshed from the vault") || strings.Contains(log, second) {
		t.Errorf("log:\n%s", log)
	}
}

// demand makes a receiver require client certificates of these authorities.
func demand(authorities ...*x509.Certificate) func(*tls.Config) {
	return func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		for _, authority := range authorities {
			c.ClientCAs.AddCert(authority)
		}
	}
}

// A certificate of the vault is presented, and its renewal needs no restart.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, firstPrint, a := issued(t, "first")
	second, secondPrint, b := issued(t, "second")
	r := w.newReceiver(t, demand(a, b))
	w.store(t, "client", first)
	c := w.client(t, r, Auth{ClientCertificate: "client"})
	for _, want := range []string{firstPrint, secondPrint} {
		for range 2 {
			ctx, last := Record(t.Context())
			testenv.OK(t, post(t, ctx, c, r.URL+"/hook", "", "x"))
			if got := r.last(t).certificate; got != want || last() == nil || last().ClientCertificate != want {
				t.Errorf("the receiver saw %s, the record has %+v, want %s", got, last(), want)
			}
		}
		w.store(t, "client", second)
		w.pass(fresh)
	}
	w.store(t, "client", "no certificate")
	w.pass(fresh)
	if err := post(t, t.Context(), c, r.URL+"/hook", "", "x"); err != nil || r.last(t).certificate != secondPrint {
		t.Errorf("a version that cannot be read: %v", err)
	}
	if log := w.log.String(); !strings.Contains(log, "no certificate with a private key") {
		t.Errorf("log:\n%s", log)
	}
}

// Key Vault also returns certificates as PKCS #12 in base64.
func TestClientCertificateAsPKCS12(t *testing.T) {
	t.Parallel()
	text := testenv.Must(os.ReadFile("testdata/client.pfx.base64"))(t)
	w := newWorld(t)
	w.store(t, "client", string(text))
	found := testenv.Must(readCertificate(t.Context(), w.vault, "client"))(t)
	r := w.newReceiver(t, demand(found.Leaf))
	if err := post(t, t.Context(), w.client(t, r, Auth{ClientCertificate: "client"}), r.URL+"/hook", "", "x"); err != nil || r.last(t).certificate != fingerprintOf(found.Leaf.Raw) {
		t.Errorf("%v", err)
	}
}

// A target that does not request the certificate gets no request: it could not identify the sender.
func TestClientCertificateThatNobodyAsksFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text, _, _ := issued(t, "client")
	w.store(t, "client", text)
	r := w.newReceiver(t, nil)
	if err := post(t, t.Context(), w.client(t, r, Auth{ClientCertificate: "client"}), r.URL+"/hook", "", "x"); !errors.Is(err, ErrNotAsked) || len(r.all()) > 0 {
		t.Errorf("%v, %d requests", err, len(r.all()))
	}
}

func TestClientCertificateThatIsNone(t *testing.T) {
	t.Parallel()
	one, _, _ := issued(t, "one")
	other, _, _ := issued(t, "other")
	certificate, _, _ := strings.Cut(one, "-----BEGIN PRIVATE KEY")
	_, key, _ := strings.Cut(other, "-----BEGIN PRIVATE KEY")
	for name, value := range map[string]string{
		"text": "hidden", "no key": certificate, "no certificate": "-----BEGIN PRIVATE KEY" + key, "another's key": certificate + "-----BEGIN PRIVATE KEY" + key,
	} {
		w := newWorld(t)
		w.store(t, "client", value)
		r := w.newReceiver(t, nil)
		err := post(t, t.Context(), w.client(t, r, Auth{ClientCertificate: "client"}), r.URL+"/hook", "", "x")
		if !errors.Is(err, ErrCertificate) || strings.Contains(err.Error(), "hidden") || len(r.all()) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No redirect is followed, not even to the target itself, and its address gets no request.
func TestRedirects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store(t, "hook", secret1)
	other := w.newReceiver(t, nil)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, a := range []Auth{{}, {Audience: audience}, {SigningKeys: []SigningKey{{"k1", "hook"}}}} {
			r := w.newReceiver(t, nil)
			for _, to := range []string{other.URL + "/hidden", strings.Replace(other.URL, "https:", "http:", 1) + "/hidden", r.URL + "/hidden", "/hidden"} {
				r.turn = func(w http.ResponseWriter, in *http.Request) { http.Redirect(w, in, to, status) }
				err := post(t, t.Context(), w.client(t, r, a), r.URL+"/hook", "", "x")
				if !errors.Is(err, ErrRedirect) || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), tokenPrefix) {
					t.Errorf("%d to %s with %s: %v", status, to, a, err)
				}
			}
			if got := len(r.all()); got != 4 {
				t.Errorf("%d requests for 4", got)
			}
		}
	}
	if len(other.all()) > 0 {
		t.Errorf("where redirects lead to got %v", other.all())
	}
}

// The record is the identification that the receiver got, of all kinds together.
func TestRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text, _, authority := issued(t, "client")
	w.store(t, "client", text)
	w.store(t, "hook", secret1)
	r := w.newReceiver(t, demand(authority))
	c := w.client(t, r, Auth{Audience: audience, SigningKeys: []SigningKey{{"k1", "hook"}}, ClientCertificate: "client"})
	for _, key := range []string{"key-1", "with.dots"} {
		ctx, last := Record(t.Context())
		if last() != nil {
			t.Error("something is recorded before anything was sent")
		}
		testenv.OK(t, post(t, ctx, c, r.URL+"/hook", key, "x"))
		got := r.last(t)
		want := &Sent{Target: r.URL, Audience: audience, SignedBy: strings.Fields(got.header.Get("Webhook-Key-Id")), ClientCertificate: got.certificate,
			WebhookID: got.header.Get("Webhook-Id"), Idempotency: got.header.Get("Idempotency-Key")}
		if diff := cmp.Diff(want, last()); diff != "" || want.WebhookID == "" || want.Idempotency != key || !verified(got, secretBytes(t, secret1)) {
			t.Errorf("recorded (-sent +recorded):\n%s", diff)
		}
		if diff := cmp.Diff(*want, last().As(key)); diff != "" {
			t.Errorf("another attempt of it:\n%s", diff)
		}
		for _, hidden := range []string{tokenPrefix, secret1, "PRIVATE"} {
			if strings.Contains(last().String(), hidden) {
				t.Errorf("the record shows %s: %s", hidden, last())
			}
		}
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	nine := make([]SigningKey, 9)
	for i := range nine {
		nine[i] = SigningKey{"k", "hook"}
	}
	for name, tt := range map[string]struct {
		target      string
		auth        Auth
		development bool
		want        string // "" for none
	}{
		"nothing":                      {"https://h", Auth{}, false, ""},
		"this machine":                 {"http://127.0.0.1:1", Auth{Audience: audience}, false, ""},
		"this machine by name":         {"http://localhost:1", Auth{SigningKeys: []SigningKey{{"k", "hook"}}}, false, ""},
		"in clear with the emulator":   {"http://components:1", Auth{SigningKeys: []SigningKey{{"k", "hook"}}}, true, ""},
		"in clear":                     {"http://h", Auth{}, false, "https://"},
		"token in clear":               {"http://h", Auth{Audience: audience}, true, "https://"},
		"certificate in clear":         {"http://localhost", Auth{ClientCertificate: "c"}, true, "clientCertificate"},
		"no URL":                       {"hidden", Auth{}, false, "https URL"},
		"another scheme":               {"ftp://h", Auth{}, false, "https URL"},
		"a user":                       {"https://user:hidden@h", Auth{}, false, "user name"},
		"scope in place of audience":   {"https://h", Auth{Audience: audience + "/.default"}, false, "audience: leave /.default off"},
		"audience with a blank":        {"https://h", Auth{Audience: "api://a b"}, false, "audience: "},
		"id of a key":                  {"https://h", Auth{SigningKeys: []SigningKey{{"a b", "hook"}}}, false, "signingKeys[0].id"},
		"secret of a key":              {"https://h", Auth{SigningKeys: []SigningKey{{"k", "no/name"}}}, false, "signingKeys[0].secret"},
		"too many keys":                {"https://h", Auth{SigningKeys: nine}, false, "signingKeys: 9 are too many"},
		"certificate that is no name":  {"https://h", Auth{ClientCertificate: "-----BEGIN hidden"}, false, "clientCertificate: give the name"},
		"everything that is wrong":     {"https://h", Auth{Audience: " ", ClientCertificate: "/"}, false, "clientCertificate: give the name"},
		"everything that is wrong (2)": {"https://h", Auth{Audience: " ", ClientCertificate: "/"}, false, "audience: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *Config) { c.Development = tt.development })
			_, err := w.Client("TARGET", tt.target, tt.auth)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden")) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := New(Config{}); err == nil {
		t.Error("clients without a vault are made")
	}
}

// The log of an app's start has the targets that cannot identify the caller.
func TestTargetsWithoutIdentityAreLogged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		target      string
		auth        Auth
		development bool
		want        string
	}{
		"no identity":       {"https://h.example/hidden", Auth{}, false, "level=WARN msg=\"calls carry no identity"},
		"identity":          {"https://h.example/hidden", Auth{Audience: audience}, false, "level=INFO msg=\"calls carry identity\" setting=TARGET target=h.example identity=\"token for " + audience},
		"with the emulator": {"https://h.example/hidden", Auth{}, true, ""},
		"on this machine":   {"http://127.0.0.1:1/hidden", Auth{}, false, ""},
	} {
		w := newWorld(t, func(c *Config) { c.Development = tt.development })
		testenv.Must(w.Client("TARGET", tt.target, tt.auth))(t)
		if log := w.log.String(); !strings.Contains(log, tt.want) || (log == "") != (tt.want == "") || strings.Contains(log, "hidden") {
			t.Errorf("%s: log %q", name, log)
		}
	}
}

// A malformed secret signs nothing: the error names it and quotes nothing of it.
func TestMalformedKeys(t *testing.T) {
	t.Parallel()
	const text = "YmFzZTY0LW9mLWEtc2lnbmluZy1zZWNyZXQ"
	for name, secret := range map[string]string{"no padding": text, "quotes": `"whsec_` + text + `="`, "a text": "correct horse battery staple", "too short": "whsec_YmFzZTY0"} {
		w := newWorld(t)
		r := w.newReceiver(t, nil)
		w.store(t, "hook", secret)
		err := post(t, t.Context(), w.client(t, r, Auth{SigningKeys: []SigningKey{{"k1", "hook"}}}), r.URL+"/hook", "", "x")
		if err == nil || !strings.Contains(err.Error(), `secret hook: signing key "k1": the secret`) || strings.Contains(err.Error(), secret) || len(r.all()) > 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(r.all()))
		}
	}
}

// An instance has its own keys where a name has {instance}, and those for all; other callers have only the latter.
func TestInstanceKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	auth := Auth{SigningKeys: []SigningKey{{"all", "shared"}, {"own", "events-{instance}"}}}
	testenv.OK(t, auth.ValidateFor())
	if err := auth.Validate(); err == nil {
		t.Error("a destination that is no instance's takes keys of instances")
	}
	for _, name := range []string{"shared", "events-i1", secrets.Name("events", "/subscriptions/Größe")} {
		w.store(t, name, whsec(strings.Repeat(name, 4)))
	}
	keys := w.InstanceKeys(auth)
	for id, want := range map[string][]string{"": {"shared"}, "i1": {"shared", "events-i1"}, "/subscriptions/Größe": {"shared", secrets.Name("events", "/subscriptions/Größe")}} {
		for range 2 {
			found, err := keys.Of(t.Context(), id)
			var got []string
			for _, k := range found {
				got = append(got, string(k.Secret))
			}
			if err != nil || len(got) != len(want) || got[0] != strings.Repeat(want[0], 4) || got[len(got)-1] != strings.Repeat(want[len(want)-1], 4) {
				t.Errorf("%q: %v, %v", id, got, err)
			}
		}
	}
	if _, err := keys.Of(t.Context(), "i2"); err == nil {
		t.Error("an instance without a secret has keys")
	}
	if none, err := w.InstanceKeys(Auth{SigningKeys: auth.SigningKeys[1:]}).Of(t.Context(), ""); err != nil || none != nil {
		t.Errorf("no instance: %v, %v", none, err)
	}
}
