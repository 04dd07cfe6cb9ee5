package tls_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/services/certificates"
)

func TestRenew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 0)
	at := time.Now()
	w.vault.Now = func() time.Time { at = at.Add(time.Second); return at }
	first := w.renew(t, input("j1"))
	c := first.Certificate
	if !first.Renewed || c.Name != tls.CertificateName([]string{domain}) || len(c.Fingerprint) != 64 || c.Serial == "" || c.NotAfterUtc.Before(time.Now()) ||
		!cmp.Equal(c.Domains, []string{domain}) || first.Note != "" {
		t.Errorf("%+v", first)
	}
	if again := w.renew(t, input("j1")); !cmp.Equal(first, again) {
		t.Errorf("the same job again: %s", cmp.Diff(first, again))
	}
	later := w.renew(t, input("j2"))
	if later.Renewed || !strings.HasPrefix(later.Note, "not due before 20") || later.Certificate.Version != c.Version || !later.RenewAtUtc.After(time.Now()) {
		t.Errorf("not due: %+v", later)
	}
	force := input("j3")
	force.Force = true
	forced := w.renew(t, force)
	if !forced.Renewed || forced.Certificate.Version == c.Version || forced.Certificate.Fingerprint == c.Fingerprint {
		t.Errorf("forced: %+v", forced)
	}
	if again := w.renew(t, force); !cmp.Equal(forced, again) {
		t.Errorf("the same forced job again: %s", cmp.Diff(forced, again))
	}
	// A job that is retried late makes nothing, and undoes nothing.
	if late := w.renew(t, input("j1")); late.Certificate.Version != forced.Certificate.Version || len(w.versions(t)) != 2 {
		t.Errorf("the first job again: %+v", late)
	}
	w.checkSecret(t, first, later, forced)
}

func TestRenewWhenDue(t *testing.T) {
	t.Parallel()
	const life = 90 * 24 * time.Hour
	cases := []struct {
		what    string
		options pebble.Options
		prepare func(t *testing.T, w *world, leaf []byte)
		after   time.Duration
		domains []string
		renewed bool
	}{
		{what: "before two thirds of its life", options: pebble.Options{WithoutRenewalInfo: true}, after: life*2/3 - time.Hour},
		{what: "after two thirds of its life", options: pebble.Options{WithoutRenewalInfo: true}, after: life*2/3 + time.Hour, renewed: true},
		{what: "the authority wants it now", prepare: window(-2*time.Hour, -time.Hour), renewed: true},
		{what: "the authority wants it late", prepare: window(life-2*time.Hour, life-time.Hour), after: life * 3 / 4},
		{what: "the authority does not answer, and it is not due", prepare: silence, after: life / 2},
		{what: "another domain", domains: []string{domain, "example.com"}, renewed: true},
		{what: "fewer domains", domains: []string{domain}},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.options, 0)
			first := w.renew(t, input("j1"))
			pair, err := w.vault.KeyPair(first.Certificate.Name, "")
			if err != nil {
				t.Fatal(err)
			}
			if c.prepare != nil {
				c.prepare(t, w, pair.Certificate[0])
			}
			w.now = func() time.Time { return time.Now().Add(c.after) }
			out := w.renew(t, input("j2", c.domains...))
			if out.Renewed != c.renewed || (out.Certificate.Version == first.Certificate.Version) == c.renewed || (out.Note == "") != c.renewed {
				t.Errorf("%+v", out)
			}
		})
	}
}

func window(from, to time.Duration) func(*testing.T, *world, []byte) {
	return func(t *testing.T, w *world, leaf []byte) {
		w.ca.SuggestRenewal(t, leaf, time.Now().Add(from), time.Now().Add(to), "https://example.com/incident")
	}
}

// silence makes the authority fail to return a window.
func silence(_ *testing.T, w *world, _ []byte) {
	w.ca.Refuse(slices.Repeat([]pebble.Refusal{{Path: pebble.RenewalInfo, Status: 503, Type: "serverInternal"}}, 50)...)
}

// An abandoned request for other domains does not block a renewal.
func TestRenewDropsAnAbandonedRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 0)
	store, err := certificates.NewKeyVault(w.vault.URL(), w.vault.Credential(), w.vault.Options())
	if err != nil {
		t.Fatal(err)
	}
	name := tls.CertificateName([]string{domain})
	if _, err := store.Request(t.Context(), name, []string{domain, "old.example.com"}, certificates.DefaultKeyType); err != nil {
		t.Fatal(err)
	}
	if out := w.renew(t, input("j1")); !cmp.Equal(out.Certificate.Domains, []string{domain}) || w.vault.Pending(name) {
		t.Errorf("%+v", out)
	}
}

// After a failed order, another one is created.
func TestRenewAfterAFailedOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 0)
	responder := w.ca.Challenges
	w.ca.Challenges = nil
	_, err := w.steps(t).Renew(t.Context(), input("j1"))
	var invalid *tls.ValidationError
	if !errors.As(err, &invalid) || invalid.Domain != domain || !strings.Contains(err.Error(), domain) {
		t.Fatalf("Renew = %v", err)
	}
	w.ca.Challenges = responder
	if out := w.renew(t, input("j1")); !out.Renewed || len(w.versions(t)) != 1 {
		t.Errorf("%+v", out)
	}
}

// Of several processes that renew at the same time, with one job or with several, each returns an existing
// certificate, and none makes an unnecessary one.
func TestRenewConcurrently(t *testing.T) {
	t.Parallel()
	for what, jobs := range map[string][]string{"one job": {"j", "j", "j", "j"}, "several jobs": {"a", "b", "c", "d"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pebble.Options{}, 0)
			outs, errs := make([]tls.RenewOutput, len(jobs)), make([]error, len(jobs))
			var done sync.WaitGroup
			for i, job := range jobs {
				steps := w.steps(t)
				done.Go(func() { outs[i], errs[i] = steps.Renew(t.Context(), input(job)) })
			}
			done.Wait()
			for i := range jobs {
				if errs[i] != nil || outs[i].Certificate.Fingerprint != outs[0].Certificate.Fingerprint {
					t.Errorf("%s: %+v, %v", jobs[i], outs[i], errs[i])
				}
			}
			if versions := w.versions(t); len(versions) != 1 || w.vault.Pending(versions[0].Name) {
				t.Errorf("versions: %+v", versions)
			}
		})
	}
}

func TestRenewErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{Blocked: []string{"blocked.test"}}, 0)
	cases := map[string]struct {
		in   tls.RenewInput
		want error
	}{
		"no domains":     {tls.RenewInput{JobID: "j"}, tls.ErrInput},
		"no job":         {tls.RenewInput{Domains: []string{domain}}, tls.ErrInput},
		"a path":         {input("j", "../x"), tls.ErrInput},
		"blocked domain": {input("j", "blocked.test"), tls.ErrRefused},
	}
	for what, c := range cases {
		if _, err := w.steps(t).Renew(t.Context(), c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := w.steps(t).Current(t.Context(), input("j")); !errors.Is(err, tls.ErrNoCertificate) {
		t.Errorf("Current without a certificate = %v", err)
	}
	_, err := tls.New(tls.Config{RenewAfter: 2, Overlap: -1})
	for _, field := range []string{"Vault", "Authority", "Targets", "Distributor", "Tables", "RenewAfter", "Overlap"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}

// A version is disabled when all targets have served its successor for an overlap, regardless of the successor's age.
func TestRetire(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 0)
	at := time.Now()
	w.vault.Now = func() time.Time { return at }
	w.now = func() time.Time { return at }
	var made []tls.RenewOutput
	for _, job := range []string{"a", "b", "c"} {
		in := input(job)
		in.Force = true
		made = append(made, w.renew(t, in))
		at = at.Add(time.Minute)
	}
	retire := func(version string, after time.Duration) []string {
		t.Helper()
		at = at.Add(after)
		out, err := w.steps(t).Retire(t.Context(), tls.RetireInput{Name: made[0].Certificate.Name, Version: version})
		if err != nil {
			t.Fatal(err)
		}
		return out.Disabled
	}
	second := made[1].Certificate.Version
	for what, c := range []struct {
		version string
		after   time.Duration
		want    []string
	}{
		{second, 40 * 24 * time.Hour, nil}, // it arrived late: it was not seen served before
		{second, 23 * time.Hour, nil},
		{second, 2 * time.Hour, []string{made[0].Certificate.Version}},
		{second, time.Hour, nil},
		{"gone", time.Hour, nil},
		{made[2].Certificate.Version, time.Hour, nil}, // the overlap counts from its own arrival
		{made[2].Certificate.Version, 25 * time.Hour, []string{second}},
	} {
		if got := retire(c.version, c.after); !cmp.Equal(got, c.want) {
			t.Errorf("%d, %s: %v", what, c.version, got)
		}
	}
	if got := w.versions(t); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// Another key type is a reason to renew, and is kept until a message requests another one.
func TestRenewWithAnotherKeyType(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 0)
	at := time.Now()
	w.vault.Now = func() time.Time { at = at.Add(time.Second); return at }
	for i, c := range []struct {
		wanted, got certificates.KeyType
		renewed     bool
	}{
		{"", certificates.ECP256, true}, {certificates.ECP256, certificates.ECP256, false}, {certificates.RSA2048, certificates.RSA2048, true},
		{"", certificates.RSA2048, false}, {certificates.ECP384, certificates.ECP384, true},
	} {
		in := input(fmt.Sprint("j", i))
		in.KeyType = c.wanted
		out := w.renew(t, in)
		pair, err := w.vault.KeyPair(out.Certificate.Name, out.Certificate.Version)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil || out.Renewed != c.renewed || certificates.KeyTypeOf(leaf.PublicKey) != c.got {
			t.Errorf("%d: %+v, a key of type %s, %v", i, out, certificates.KeyTypeOf(leaf.PublicKey), err)
		}
	}
	forced := input("forced")
	forced.Force = true
	forced.KeyType = ""
	out := w.renew(t, forced)
	pair, err := w.vault.KeyPair(out.Certificate.Name, out.Certificate.Version)
	if err != nil {
		t.Fatal(err)
	}
	if key, ok := pair.PrivateKey.(*ecdsa.PrivateKey); !ok || key.Curve != elliptic.P384() {
		t.Errorf("a renewal that does not name the key type changed it: %T", pair.PrivateKey)
	}
	w.checkSecret(t, out)
}
