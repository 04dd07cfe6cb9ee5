package acme_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/tls/acme"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pebble.IgnoreLeak()) }

// world is an authority and the storage that processes share.
type world struct {
	ca     *pebble.Server
	tables *tables.Memory
	vault  *secrets.Development
	http01 acme.HTTP01
}

func newWorld(t *testing.T, o pebble.Options) *world {
	t.Helper()
	testenv.Long(t) // an authority on the loopback interface
	w := &world{ca: pebble.Start(t, o), tables: tables.NewMemory()}
	for _, table := range []string{secrets.DevelopmentTable, tls.ChallengesTable} {
		if err := w.tables.CreateTable(t.Context(), table); err != nil {
			t.Fatal(err)
		}
	}
	w.vault, w.http01 = secrets.NewDevelopment(w.tables), acme.HTTP01{Tables: w.tables}
	w.ca.Challenges = w.http01
	return w
}

// authority returns the Authority of a process.
func (w *world) authority(t *testing.T, solvers ...acme.Solver) *acme.Authority {
	t.Helper()
	if solvers == nil {
		solvers = []acme.Solver{w.http01}
	}
	a, err := acme.New(acme.Config{Directory: w.ca.Directory(), Contact: "ops@example.com", Vault: w.vault, Solvers: solvers, Client: w.ca.Client(), PollInterval: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// obtain orders and issues.
func obtain(t *testing.T, a *acme.Authority, replaces []byte, domains ...string) ([][]byte, error) {
	t.Helper()
	order, err := a.Order(t.Context(), domains, replaces)
	if err != nil {
		return nil, err
	}
	return a.Issue(t.Context(), order, request(t, domains))
}

func request(t *testing.T, domains []string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: domains}, key)
	if err != nil {
		t.Fatal(err)
	}
	return csr
}

func (w *world) checkChain(t *testing.T, chain [][]byte, domains ...string) *x509.Certificate {
	t.Helper()
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		t.Fatal(err)
	}
	between := x509.NewCertPool()
	for _, der := range chain[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		between.AddCert(c)
	}
	for _, d := range domains {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: strings.Replace(d, "*", "any", 1), Roots: w.ca.Roots(), Intermediates: between}); err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
	return leaf
}

func TestIssue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{RejectNonces: 20})
	domains := []string{"www.example.com", "example.com"}
	a := w.authority(t)
	chain, err := obtain(t, a, nil, domains...)
	if err != nil {
		t.Fatal(err)
	}
	leaf := w.checkChain(t, chain, domains...)
	page, err := w.tables.Query(t.Context(), tls.ChallengesTable, tables.Query{Partition: "http-01"})
	if err != nil || len(page.Entities) != 0 {
		t.Errorf("answers left behind: %v, %v", page.Entities, err)
	}
	// The next process uses the existing account, and the order names the certificate that it replaces.
	if chain, err = obtain(t, w.authority(t), leaf.Raw, domains...); err != nil {
		t.Fatal(err)
	}
	// An order for a replaced certificate, or one of another authority, succeeds anyway.
	w.ca.Refuse(pebble.Refusal{Path: pebble.NewOrder, Status: http.StatusConflict, Type: "alreadyReplaced"})
	if _, err := obtain(t, w.authority(t), chain[0], domains...); err != nil {
		t.Errorf("replacing what was replaced: %v", err)
	}
	w.ca.Refuse(slices.Repeat([]pebble.Refusal{{Path: pebble.NewOrder, Status: http.StatusInternalServerError, Type: "serverInternal"}}, 3)...)
	if _, err := obtain(t, w.authority(t), chain[0], domains...); err != nil {
		t.Errorf("replacing what the authority cannot look up: %v", err)
	}
	w.ca.Forgive()
	versions, err := w.vault.Versions(t.Context(), secrets.Name("acme", w.ca.Directory()))
	if err != nil || len(versions) != 1 {
		t.Errorf("account keys: %v, %v", versions, err)
	}
}

// After a crash at any point of an order, the next process continues it.
func TestIssueGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{})
	domains := []string{"example.com"}
	csr := request(t, domains)
	order, err := w.authority(t).Order(t.Context(), domains, nil)
	if err != nil {
		t.Fatal(err)
	}
	const problem = 503
	stops := []pebble.Refusal{
		{Path: pebble.Answer, Status: problem, Type: "serverInternal"},
		{Path: pebble.Finalize, Status: problem, Type: "serverInternal"},
		{Path: "/certZ/", Status: problem, Type: "serverInternal"},
	}
	for _, stop := range stops {
		w.ca.Refuse(slices.Repeat([]pebble.Refusal{stop}, 50)...)
		if _, err := w.authority(t).Issue(t.Context(), order, csr); err == nil {
			t.Fatalf("%s: no error", stop.Path)
		}
		w.ca.Forgive()
	}
	chain, err := w.authority(t).Issue(t.Context(), order, csr)
	if err != nil {
		t.Fatal(err)
	}
	first := w.checkChain(t, chain, domains...)
	again, err := w.authority(t).Issue(t.Context(), order, csr)
	if err != nil || !first.Equal(w.checkChain(t, again, domains...)) {
		t.Errorf("again: %v", err)
	}
}

func TestAWildcardByHTTPAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{})
	_, err := obtain(t, w.authority(t), nil, "*.example.com", "example.com")
	if !errors.Is(err, tls.ErrRefused) || !strings.Contains(err.Error(), "dns-01") {
		t.Errorf("%v", err)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	limited := pebble.Refusal{Path: pebble.NewOrder, Status: 429, Type: "rateLimited", Detail: "too many certificates", RetryAfter: "7200"}
	cases := []struct {
		what    string
		refuse  []pebble.Refusal
		silent  bool // challenges are not answered
		domain  string
		want    error
		limited time.Duration
		invalid bool
	}{
		{what: "rate limit on the order", refuse: []pebble.Refusal{limited}, limited: 2 * time.Hour},
		{what: "rate limit without a time", refuse: []pebble.Refusal{{Path: pebble.NewOrder, Status: 429, Type: "rateLimited"}}, limited: time.Hour},
		{what: "rate limit on the account", refuse: []pebble.Refusal{{Path: pebble.Account, Status: 429, Type: "rateLimited", RetryAfter: "60"}}, limited: time.Minute},
		{what: "rate limit while finalizing", refuse: []pebble.Refusal{{Path: pebble.Finalize, Status: 429, Type: "rateLimited", RetryAfter: "60"}}, limited: time.Minute},
		{what: "blocked domain", domain: "blocked.test", want: tls.ErrRefused},
		{what: "no answer to the challenge", silent: true, invalid: true},
		{what: "unknown order", refuse: []pebble.Refusal{{Path: pebble.Order, Status: 404, Type: "malformed"}}, want: tls.ErrOrderGone},
		{what: "wrong request", refuse: []pebble.Refusal{{Path: pebble.Finalize, Status: 400, Type: "badCSR"}}, want: tls.ErrRefused},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pebble.Options{Blocked: []string{"blocked.test"}})
			if c.silent {
				w.ca.Challenges = nil
			}
			if c.domain == "" {
				c.domain = "example.com"
			}
			w.ca.Refuse(c.refuse...)
			before := time.Now()
			_, err := obtain(t, w.authority(t), nil, c.domain)
			var limit *tls.RateLimitedError
			var invalid *tls.ValidationError
			switch {
			case c.want != nil && !errors.Is(err, c.want),
				c.invalid && (!errors.As(err, &invalid) || invalid.Domain != c.domain || invalid.Detail == ""),
				c.limited > 0 && (!errors.As(err, &limit) || limit.Until.Before(before.Add(c.limited-time.Second)) || limit.Until.After(time.Now().Add(c.limited+time.Second))):
				t.Fatalf("got %v", err)
			}
			if c.want != nil {
				return
			}
			// Without the fault, the next attempt succeeds.
			w.ca.Challenges = w.http01
			if _, err := obtain(t, w.authority(t), nil, c.domain); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// A failed order is gone: its next read reports that.
func TestInvalidOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{})
	w.ca.Challenges = nil
	a := w.authority(t)
	order, err := a.Order(t.Context(), []string{"example.com"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	csr := request(t, []string{"example.com"})
	if _, err := a.Issue(t.Context(), order, csr); err == nil {
		t.Fatal("issued without an answer to the challenge")
	}
	if _, err := a.Issue(t.Context(), order, csr); !errors.Is(err, tls.ErrOrderGone) {
		t.Errorf("the second look: %v", err)
	}
}

func TestRenewal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{})
	a := w.authority(t)
	chain, err := obtain(t, a, nil, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	want := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	w.ca.SuggestRenewal(t, chain[0], want, want.Add(time.Hour), "https://example.com/why")
	got, err := a.Renewal(t.Context(), chain[0])
	if err != nil || !got.From.Equal(want) || !got.To.Equal(want.Add(time.Hour)) || got.Explanation != "https://example.com/why" || got.Again.Before(time.Now().Add(time.Hour)) {
		t.Errorf("Renewal = %+v, %v", got, err)
	}
	old := newWorld(t, pebble.Options{WithoutRenewalInfo: true}).authority(t)
	if got, err := old.Renewal(t.Context(), chain[0]); got != (tls.Window{}) || err != nil {
		t.Errorf("without renewal information: %+v, %v", got, err)
	}
}

func TestHTTP01(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{})
	challenge := acme.Challenge{Domain: "example.com", Token: "tok_en-1", KeyAuthorization: "tok_en-1.print"}
	for range 2 {
		if err := w.http01.Present(t.Context(), challenge); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.http01.Present(t.Context(), acme.Challenge{Token: "a/b"}); !errors.Is(err, tls.ErrRefused) {
		t.Errorf("a token that is a path: %v", err)
	}
	cases := []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/.well-known/acme-challenge/tok_en-1", 200, "tok_en-1.print"},
		{"GET", "/api/acme-challenge/tok_en-1", 200, "tok_en-1.print"},
		{"HEAD", "/.well-known/acme-challenge/tok_en-1", 200, "tok_en-1.print"},
		{"GET", "/.well-known/acme-challenge/other", 404, ""},
		{"GET", "/.well-known/acme-challenge/", 404, ""},
		{"GET", "/.well-known/acme-challenge/tok%27 or 1 eq 1", 404, ""},
		{"GET", "/" + strings.Repeat("a", 200), 404, ""},
		{"POST", "/.well-known/acme-challenge/tok_en-1", 405, ""},
	}
	for _, c := range cases {
		r := httptest.NewRequest(c.method, "/", nil)
		r.URL.Path = c.path
		rec := httptest.NewRecorder()
		w.http01.ServeHTTP(rec, r)
		if rec.Code != c.status || c.status == 200 && rec.Body.String() != c.body {
			t.Errorf("%s %s: %d %q", c.method, c.path, rec.Code, rec.Body)
		}
	}
	for range 2 {
		if err := w.http01.CleanUp(t.Context(), challenge); err != nil {
			t.Fatal(err)
		}
	}
	rec := httptest.NewRecorder()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.http01.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, "/x", nil))
	if rec.Code != http.StatusServiceUnavailable {
		t.Errorf("without storage: %d", rec.Code)
	}
}

// An unusable account key is reported, and a disabled one is replaced.
func TestAccountKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{})
	name := secrets.Name("acme", w.ca.Directory())
	v, err := w.vault.Add(t.Context(), name, []byte("no key at all"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = obtain(t, w.authority(t), nil, "example.com")
	if err == nil || !strings.Contains(err.Error(), v.Version) || strings.Contains(err.Error(), "no key at all") {
		t.Fatalf("got %v", err)
	}
	if err := w.vault.Disable(t.Context(), name, v.Version); err != nil {
		t.Fatal(err)
	}
	if _, err := obtain(t, w.authority(t), nil, "example.com"); err != nil {
		t.Error(err)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	_, err := acme.New(acme.Config{Directory: "http://x", Contact: "nobody"})
	for _, field := range []string{"Directory", "Contact", "Vault", "Solvers"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}
