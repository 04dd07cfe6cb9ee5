package tls_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/tls/acme"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/internal/tlstarget"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/certificates/certificatestest"
	"github.com/vibedata/roundhouse/services/dns"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pebble.IgnoreLeak()) }

const domain = "www.example.com"

// world is shared by processes: storage, the authority, and the targets.
type world struct {
	ca      *pebble.Server
	vault   *certificatestest.Vault
	tables  *tables.Memory
	secrets *secrets.Development
	targets []*tlstarget.Target
	now     func() time.Time
	// client returns the client that notifies a target; nil means the target's own.
	client func(*tlstarget.Target) (*http.Client, error)
	// zones answer challenges in DNS; nil means over HTTP.
	zones *dns.Zones
	// assigned are the certificates of the targets; targets without an entry serve all.
	assigned [][]string
}

func newWorld(t testing.TB, o pebble.Options, targets int) *world {
	t.Helper()
	testenv.Long(t) // an authority and targets on the loopback interface
	w := &world{ca: pebble.Start(t, o), vault: certificatestest.NewVault(t), tables: tables.NewMemory(), now: time.Now}
	for _, table := range []string{secrets.DevelopmentTable, tls.OrdersTable, tls.ChallengesTable} {
		if err := w.tables.CreateTable(t.Context(), table); err != nil {
			t.Fatal(err)
		}
	}
	w.secrets = secrets.NewDevelopment(w.tables)
	w.ca.Challenges = acme.HTTP01{Tables: w.tables}
	for range targets {
		w.targets = append(w.targets, tlstarget.Start(t, w.vault.KeyPair))
	}
	return w
}

// list returns the targets as the engine knows them.
func (w *world) list() tls.StaticTargets {
	var list tls.StaticTargets
	for i, target := range w.targets {
		one := tls.Target{ID: fmt.Sprintf("i%d", i), NotifyURL: target.NotifyURL(), Address: target.Address()}
		if i < len(w.assigned) {
			one.Certificates = w.assigned[i]
		}
		list = append(list, one)
	}
	return list
}

// steps returns a process over this world.
func (w *world) steps(t testing.TB) *tls.Steps {
	t.Helper()
	return w.stepsOver(t, func(next http.RoundTripper) http.RoundTripper { return next }, w.tables)
}

// stepsOver returns a process whose requests and table calls pass through decorators.
func (w *world) stepsOver(t testing.TB, around func(http.RoundTripper) http.RoundTripper, store tables.Store) *tls.Steps {
	t.Helper()
	wrap := func(c *http.Client) *http.Client {
		wrapped := *c
		wrapped.Transport = around(c.Transport)
		return &wrapped
	}
	options := w.vault.Options()
	options.Transport = wrap(w.vault.Client())
	vault, err := certificates.NewKeyVault(w.vault.URL(), w.vault.Credential(), options)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := acme.New(acme.Config{Directory: w.ca.Directory(), Vault: w.secrets, Solvers: w.solvers(store),
		Client: wrap(w.ca.Client()), PollInterval: 5 * time.Millisecond, Now: w.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	config := tls.Config{Vault: vault, Authority: authority, Tables: store, Targets: w.list(), Distributor: trusting{w.targets, w.client}, Roots: w.ca.Roots(), Now: w.now}
	steps, err := tls.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// solvers returns the solvers of a process.
func (w *world) solvers(store tables.Store) []acme.Solver {
	if w.zones != nil {
		return []acme.Solver{acme.DNS01{Tables: store, Zones: w.zones, Now: w.now}}
	}
	return []acme.Solver{acme.HTTP01{Tables: store}}
}

// trusting trusts the certificates of the test targets: each has an address and a client of its own.
type trusting struct {
	targets []*tlstarget.Target
	client  func(*tlstarget.Target) (*http.Client, error)
}

func (d trusting) Distribute(ctx context.Context, to tls.Target, c tls.Certificate) error {
	for _, target := range d.targets {
		if target.Address() == to.Address {
			return tls.HTTPDistributor{Client: func(tls.Target) (*http.Client, error) {
				if d.client != nil {
					return d.client(target)
				}
				return target.Client(), nil
			}}.Distribute(ctx, to, c)
		}
	}
	return tls.HTTPDistributor{}.Distribute(ctx, to, c)
}

func input(job string, domains ...string) tls.RenewInput {
	if domains == nil {
		domains = []string{domain}
	}
	return tls.RenewInput{Domains: domains, JobID: job}
}

func (w *world) renew(t testing.TB, in tls.RenewInput) tls.RenewOutput {
	t.Helper()
	out, err := w.steps(t).Renew(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// versions lists the enabled versions of the certificate.
func (w *world) versions(t testing.TB) []certificates.Version {
	t.Helper()
	store, err := certificates.NewKeyVault(w.vault.URL(), w.vault.Credential(), w.vault.Options())
	if err != nil {
		t.Fatal(err)
	}
	all, err := store.Versions(t.Context(), tls.CertificateName([]string{domain}))
	if err != nil {
		t.Fatal(err)
	}
	var enabled []certificates.Version
	for _, v := range all {
		if v.Enabled {
			enabled = append(enabled, v)
		}
	}
	return enabled
}

// checkSecret searches for every private key in all visible data: the given values and the engine's rows.
func (w *world) checkSecret(t testing.TB, seen ...any) {
	t.Helper()
	for table, partition := range map[string]string{tls.OrdersTable: tls.CertificateName([]string{domain}), tls.ChallengesTable: "http-01"} {
		page, err := w.tables.Query(t.Context(), table, tables.Query{Partition: partition})
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, page.Entities)
	}
	var text strings.Builder
	for _, s := range seen {
		document, err := json.Marshal(s)
		fmt.Fprintf(&text, "%+v %s %v\n", s, document, err)
	}
	keys := w.vault.Keys()
	if len(keys) == 0 {
		t.Error("the vault has made no key")
	}
	for _, key := range keys {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		forms := []string{base64.StdEncoding.EncodeToString(der)}
		if ec, ok := key.(*ecdsa.PrivateKey); ok {
			scalar, err := ec.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			forms = append(forms, hex.EncodeToString(scalar), base64.StdEncoding.EncodeToString(scalar))
		}
		for _, form := range forms {
			if strings.Contains(text.String(), form) {
				t.Error("a private key shows")
			}
		}
	}
}
