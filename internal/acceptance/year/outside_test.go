package year

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/health/healthtest"
	enginetls "github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/internal/graphfake"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/certificates/certificatestest"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// lifetime is that of the certificates.
const lifetime = 90 * 24 * time.Hour

// outside is all services of the engines.
type outside struct {
	outages  outages
	graph    *graphfake.Server
	ca       *ca
	target   *target
	updates  *updatetest.Server
	patients *healthtest.Server
	market   *marketplacefake.Market
}

// newOutside makes all services except the listeners: a bubble waits for network connections that its own goroutines
// have open.
func newOutside(t testing.TB, all outages, target *target) *outside {
	o := &outside{outages: all, graph: graphfake.New(), ca: &ca{t: t, signer: certificatestest.NewAuthority(t), orders: map[string][][]byte{}}, target: target,
		updates: updatetest.New(), patients: healthtest.New(), market: marketplacefake.New()}
	o.ca.down = func() bool { return all.down(authority) }
	o.graph.ListedAfter, o.graph.AcceptedAfter = 4*time.Second, 18*time.Second
	return o
}

// secretStore is the vault's secrets with its outages.
type secretStore struct {
	handler.Secrets
	outages outages
}

func (s secretStore) Versions(ctx context.Context, name string) ([]secrets.Version, error) {
	if s.outages.down(vault) {
		return nil, secrets.ErrThrottled
	}
	return s.Secrets.Versions(ctx, name)
}

func (s secretStore) Add(ctx context.Context, name string, value []byte, tags map[string]string) (secrets.Version, error) {
	if s.outages.down(vault) {
		return secrets.Version{}, secrets.ErrThrottled
	}
	return s.Secrets.Add(ctx, name, value, tags)
}

func (s secretStore) Disable(ctx context.Context, name, version string) error {
	if s.outages.down(vault) {
		return secrets.ErrThrottled
	}
	return s.Secrets.Disable(ctx, name, version)
}

func (s secretStore) Value(ctx context.Context, name, version string) ([]byte, error) {
	if s.outages.down(vault) {
		return nil, secrets.ErrThrottled
	}
	return s.Secrets.Value(ctx, name, version)
}

// certificateStore is the vault's certificates with its outages. Calls that only read the state of a request pass.
type certificateStore struct {
	certificates.Store
	outages outages
}

func (s certificateStore) Versions(ctx context.Context, name string) ([]certificates.Version, error) {
	if s.outages.down(vault) {
		return nil, secrets.ErrThrottled
	}
	return s.Store.Versions(ctx, name)
}

// directory is Entra ID with its outages.
type directoryTransport struct{ o *outside }

// Do implements policy.Transporter.
func (d directoryTransport) Do(r *http.Request) (*http.Response, error) {
	if d.o.outages.down(directory) {
		return nil, errors.New("Entra ID does not answer")
	}
	return d.o.graph.Do(r)
}

// failing returns a client of components with their outages.
func (o *outside) failing(c *http.Client) *http.Client {
	return &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if o.outages.down(components) {
			return nil, errors.New("components do not answer")
		}
		return c.Transport.RoundTrip(r)
	})}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// receivers sends messages to the queues of receivers, except during their outages.
type receivers struct {
	queues.Store
	outages outages
}

func (r receivers) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	if r.outages.down(receiverOf(queue)) {
		return "", errors.New("the receiver does not answer")
	}
	return r.Store.Send(ctx, queue, body, delay)
}

// ca is a certificate authority that accepts every order.
type ca struct {
	t      testing.TB
	signer *certificatestest.Authority
	down   func() bool

	mu     sync.Mutex
	orders map[string][][]byte // chains by order
}

var errAuthority = errors.New("the authority does not answer")

func (c *ca) Order(context.Context, []string, []byte) (string, error) {
	if c.down() {
		return "", errAuthority
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	order := fmt.Sprintf("https://authority.test/order/%d", len(c.orders))
	c.orders[order] = nil
	return order, nil
}

func (c *ca) Issue(_ context.Context, order string, request []byte) ([][]byte, error) {
	if c.down() {
		return nil, errAuthority
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.orders[order] == nil {
		now := time.Now()
		c.orders[order] = c.signer.Sign(c.t, request, now, now.Add(lifetime))
	}
	return c.orders[order], nil
}

func (c *ca) Renewal(context.Context, []byte) (enginetls.Window, error) {
	if c.down() {
		return enginetls.Window{}, errAuthority
	}
	return enginetls.Window{}, nil
}

func (c *ca) Revoke(context.Context, []byte, enginetls.Reason) error {
	return errors.New("nobody asks for it here")
}

// Tidy implements tls.Authority: nothing is left to remove.
func (c *ca) Tidy(context.Context) {}

// target serves a certificate on a port. Callers notify it synchronously.
type target struct {
	address string

	mu      sync.Mutex
	serving *tls.Certificate
	told    enginetls.Certificate
}

// listen makes a target outside of any bubble.
func listen(t testing.TB) *target {
	t.Helper()
	g := &target{}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.serving == nil {
			return nil, errors.New("it serves nothing yet")
		}
		return g.serving, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	g.address = listener.Addr().String()
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { shake(t.Context(), conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		conns.Wait()
	})
	return g
}

func shake(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	if secure, ok := conn.(*tls.Conn); ok {
		_ = secure.HandshakeContext(ctx) // the client reports failures
	}
}

// take is the target's reaction to a new version: it fetches that from the vault, which is a table here.
func (g *target) take(ctx context.Context, store tables.Store, c enginetls.Certificate) error {
	row, err := store.Get(ctx, certificates.DevelopmentTable, tables.Key{Partition: tables.EscapeKey(c.Name), Row: c.Version})
	if err != nil {
		return err
	}
	chain, err := x509.ParseCertificates(row.Bytes("Chain"))
	if err != nil {
		return err
	}
	key, err := x509.ParsePKCS8PrivateKey(row.Bytes("Key"))
	if err != nil {
		return err
	}
	pair := tls.Certificate{PrivateKey: key}
	for _, one := range chain {
		pair.Certificate = append(pair.Certificate, one.Raw)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serving, g.told = &pair, c
	return nil
}

// now returns the served certificate.
func (g *target) now() enginetls.Certificate {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.told
}
