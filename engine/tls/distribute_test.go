package tls_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/tls/acme"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/internal/tlstarget"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/outbound"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

func TestDistribute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 1)
	made := w.renew(t, input("j1")).Certificate
	in := tls.DistributeInput{Target: w.list()[0], Certificate: made}
	first, err := w.steps(t).Distribute(t.Context(), in)
	if err != nil || !first.Told || first.Fingerprint != made.Fingerprint || first.Serial != made.Serial || first.TargetID != "i0" || first.VerifiedAtUtc.IsZero() {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := w.steps(t).Distribute(t.Context(), in)
	if err != nil || again.Told || len(w.targets[0].Told()) != 1 {
		t.Errorf("again: %+v, %v", again, err)
	}
	want := map[string]any{"name": made.Name, "version": made.Version, "fingerprint": made.Fingerprint, "serial": made.Serial, "domains": []any{domain},
		"notBeforeUtc": made.NotBeforeUtc.Format("2006-01-02T15:04:05Z"), "notAfterUtc": made.NotAfterUtc.Format("2006-01-02T15:04:05Z")}
	if diff := cmp.Diff(want, w.targets[0].Told()[0]); diff != "" {
		t.Errorf("what the target is told (-want +got):\n%s", diff)
	}
	// The next version: the target serves the old one until it is notified.
	force := input("j2")
	force.Force = true
	in.Certificate = w.renew(t, force).Certificate
	if out, err := w.steps(t).Distribute(t.Context(), in); err != nil || !out.Told {
		t.Errorf("the next version: %+v, %v", out, err)
	}
	if keys := w.targets[0].Keys(); len(keys) != 2 || keys[0] == keys[1] {
		t.Errorf("idempotency keys: %v", keys)
	}
	w.checkSecret(t, first, w.targets[0].Told())
}

// appIdentity returns a token that names its audience.
type appIdentity struct{}

func (appIdentity) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "for " + o.Scopes[0], ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// sends makes notices authenticate their sender.
func (w *world) sends(t *testing.T) {
	t.Helper()
	if _, err := w.secrets.Add(t.Context(), "notices", []byte(strings.Repeat("k", 32)), nil); err != nil {
		t.Fatal(err)
	}
	w.client = func(to *tlstarget.Target) (*http.Client, error) {
		clients, err := outbound.New(outbound.Config{Vault: w.secrets, Identity: func() (azcore.TokenCredential, error) { return appIdentity{}, nil },
			Roots: to.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
		if err != nil {
			return nil, err
		}
		client, err := clients.Client("TEST", to.NotifyURL(), outbound.Auth{Audience: "api://gateway", SigningKeys: []outbound.SigningKey{{ID: "k1", Secret: "notices"}}})
		if err == nil {
			t.Cleanup(client.CloseIdleConnections)
		}
		return client, err
	}
}

// The result, and the error of an attempt that does not see the target serve, contain the sender's claims of a notice
// word for word; neither contains the token.
func TestNoticesSayWhoSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 1)
	w.sends(t)
	in := tls.DistributeInput{Target: w.list()[0], Certificate: w.renew(t, input("j1")).Certificate}
	out, err := w.steps(t).Distribute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	got := w.targets[0].Headers()[0]
	want := &outbound.Sent{Target: strings.TrimSuffix(in.Target.NotifyURL, "/certificate"), Audience: "api://gateway", SignedBy: []string{got.Get("Webhook-Key-Id")},
		WebhookID: got.Get("Webhook-Id"), Idempotency: got.Get("Idempotency-Key")}
	if diff := cmp.Diff(want, out.Sent); diff != "" || got.Get("Authorization") != "Bearer for api://gateway/.default" || want.WebhookID == "" {
		t.Errorf("%v (-sent +result):\n%s", got, diff)
	}
	if again, err := w.steps(t).Distribute(t.Context(), in); err != nil || again.Sent != nil {
		t.Errorf("nothing was sent again: %+v, %v", again, err)
	}
	w.targets[0].LeafOnly(true)
	if _, err := w.steps(t).Distribute(t.Context(), in); err == nil || !strings.Contains(err.Error(), "with a token for api://gateway, signed by k1, webhook-id "+want.WebhookID) ||
		strings.Contains(err.Error(), ".default") {
		t.Errorf("told in vain: %v", err)
	}
}

func TestDistributeFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 1)
	made := w.renew(t, input("j1")).Certificate
	gone := fmt.Sprint("127.0.0.1:", testenv.Port(t))
	// A key in an address is a secret. Neither a serial number nor a port can spell it.
	const key = "never-told"
	target := w.targets[0]
	cases := []struct {
		what    string
		prepare func(in *tls.DistributeInput)
		want    error // nil for any other error
		says    string
	}{
		{"it is told, and does not serve it", func(*tls.DistributeInput) { target.Answer(200) }, tls.ErrNotServed, "i0"},
		{"it refuses", func(*tls.DistributeInput) { target.Answer(400) }, tls.ErrTarget, "400"},
		{"it redirects", func(*tls.DistributeInput) { target.Answer(304) }, tls.ErrTarget, "304"},
		{"it has trouble", func(*tls.DistributeInput) { target.Answer(503) }, nil, "503"},
		{"it does not know us yet", func(*tls.DistributeInput) { target.Answer(401) }, nil, "401"},
		{"it hangs up", func(*tls.DistributeInput) { target.Answer(0, 0, 0) }, nil, "EOF"},
		{"it is gone", func(in *tls.DistributeInput) { in.Target.Address = gone; target.Answer(200) }, nil, "i0"},
		{"told over plain HTTP", func(in *tls.DistributeInput) { in.Target.NotifyURL = "http://example.com/?key=" + key }, tls.ErrTarget, "https"},
		{"told nowhere", func(in *tls.DistributeInput) { in.Target.NotifyURL = "" }, tls.ErrTarget, "no URL"},
		{"another certificate", func(in *tls.DistributeInput) { in.Certificate.Fingerprint = strings.Repeat("0", 64) }, tls.ErrNotServed, "presents serial " + made.Serial},
		{"the leaf alone", func(*tls.DistributeInput) { target.LeafOnly(true) }, tls.ErrNotServed, "whole chain"},
		{"no target", func(in *tls.DistributeInput) { in.Target = tls.Target{} }, tls.ErrInput, "required"},
	}
	for _, c := range cases {
		in := tls.DistributeInput{Target: w.list()[0], Certificate: made}
		target.Answer()
		c.prepare(&in)
		out, err := w.steps(t).Distribute(t.Context(), in)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %+v, %v", c.what, out, err)
		}
		if c.want == nil && (errors.Is(err, tls.ErrTarget) || errors.Is(err, tls.ErrInput)) {
			t.Errorf("%s can be mended: %v", c.what, err)
		}
	}
	target.LeafOnly(false)
	target.Answer()
	if _, err := w.steps(t).Distribute(t.Context(), tls.DistributeInput{Target: w.list()[0], Certificate: made}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestListTargets(t *testing.T) {
	t.Parallel()
	good := tls.Target{ID: "i0", Address: "a.example.com:443", NotifyURL: "https://a.example.com/certificate"}
	with := func(change func(*tls.Target)) []tls.Target {
		changed := good
		change(&changed)
		return []tls.Target{changed}
	}
	cases := []struct {
		what    string
		targets []tls.Target
		ok      bool
	}{
		{"none", nil, true},
		{"two", append(with(func(c *tls.Target) { c.ID = "i1" }), good), true},
		{"one that its distributor tells otherwise", with(func(c *tls.Target) { c.NotifyURL = "" }), true},
		{"twice the same", []tls.Target{good, good}, false},
		{"no id", with(func(c *tls.Target) { c.ID = "" }), false},
		{"no port", with(func(c *tls.Target) { c.Address = "a.example.com" }), false},
		{"a key in the query", with(func(c *tls.Target) { c.NotifyURL += "?code=s3cr3t" }), false},
		{"a password", with(func(c *tls.Target) { c.NotifyURL = "https://me:s3cr3t@a.example.com" }), false},
		{"no URL", with(func(c *tls.Target) { c.NotifyURL = "https://s3cr3t\x7f" }), false},
		{"too many", make([]tls.Target, 1001), false},
	}
	for _, c := range cases {
		steps := targetsAlone(t, c.targets)
		got, err := steps.ListTargets(t.Context(), tls.TargetsInput{Domains: []string{domain}})
		if c.ok && (err != nil || !cmp.Equal(got, c.targets)) || !c.ok && (!errors.Is(err, tls.ErrInput) || strings.Contains(err.Error(), "s3cr3t")) {
			t.Errorf("%s: %v, %v", c.what, got, err)
		}
	}
}

// targetsAlone returns a process that only lists targets.
func targetsAlone(t *testing.T, targets tls.StaticTargets) *tls.Steps {
	t.Helper()
	store := tables.NewMemory()
	authority, err := acme.New(acme.Config{Directory: "https://127.0.0.1:1", Vault: secrets.NewDevelopment(store), Solvers: []acme.Solver{acme.HTTP01{Tables: store}}})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := tls.New(tls.Config{Vault: certificates.NewDevelopment(store), Authority: authority, Targets: targets, Distributor: tls.HTTPDistributor{}, Tables: store})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}
