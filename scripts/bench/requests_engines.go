package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/spn"
	enginetls "github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/internal/graphfake"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/marketplace"
	"github.com/vibedata/roundhouse/tables"
)

// Engines of the bench, in addition to those of Roundhouse. None publishes an event.
const (
	plainEngine   = "plain"
	failingEngine = "failing" // fails permanently, the first time for each correlation id
	waitingEngine = "waiting" // waits for the event "go"
	askingEngine  = "asking"  // waits for a human task
)

// neighbors are the other services of the engines: fakes that answer over HTTP, and an authority.
type neighbors struct {
	graph    *graphfake.Server
	market   *marketplacefake.Market
	updates  *updatetest.Server
	patients *healthtest.Server
	ca       *countedAuthority
	registry *registry.Registry // uncounted: it prepares the state for a message
}

func newNeighbors(store tables.Store) (*neighbors, error) {
	ca, err := newCountedAuthority()
	return &neighbors{graph: graphfake.New(), market: marketplacefake.New(), updates: updatetest.New(), patients: healthtest.New(), ca: ca,
		registry: registry.New(store, "")}, err
}

// register adds an instance to the registry, with some fields.
func (n *neighbors) register(ctx context.Context, id string, fields map[string]any) error {
	there, err := n.registry.Get(ctx, id)
	if err == nil {
		err = n.registry.Remove(ctx, id, "", there.Version)
	}
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	i := registry.Instance{InstanceID: id, TenantID: countedTenant}
	for name, value := range fields {
		if err := i.SetField(name, value); err != nil {
			return err
		}
	}
	_, err = n.registry.Create(ctx, i)
	return err
}

const countedTenant = "contoso"

// engines returns those of Roundhouse, wired as in cmd/handler, and those of the bench. Their publisher is the app's
// outbox.
func (n *neighbors) engines(p *handler.Platform) ([]engine.Definition, error) {
	all := simpleEngines()
	for _, make := range []func(*handler.Platform) (engine.Definition, error){
		countedHMAC, n.spn, n.tls, n.provisioning, n.update, countedPublisher, n.health, countedAlerts,
	} {
		d, err := make(p)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// simpleEngines returns engines that wait, and then run their one operation.
func simpleEngines() []engine.Definition {
	var failed sync.Map
	simple := func(name string, wait func(ctx *orchestrator.Context) error, do func(correlation string) error) engine.Definition {
		step := orchestrator.NewActivity(name+"/step", func(_ context.Context, correlation string) (int, error) { return 0, do(correlation) })
		return engine.Definition{Name: name, Queue: name + "-queue", Operations: []orchestrator.AnyActivity{step},
			Orchestrator: engine.Orchestrate(name, func(ctx *orchestrator.Context, r engine.Request[json.RawMessage]) (int, error) {
				if err := wait(ctx); err != nil {
					return 0, err
				}
				return step.Call(ctx, r.CorrelationID).Await()
			})}
	}
	nothing, succeeds := func(*orchestrator.Context) error { return nil }, func(string) error { return nil }
	return []engine.Definition{
		simple(plainEngine, nothing, succeeds),
		simple(failingEngine, nothing, func(correlation string) error {
			if _, again := failed.LoadOrStore(correlation, true); again {
				return nil
			}
			return orchestrator.Permanent(errors.New("it fails the first time"))
		}),
		simple(waitingEngine, func(ctx *orchestrator.Context) error { return second(orchestrator.Event[any](ctx, "go").Await()) }, succeeds),
		simple(askingEngine, func(ctx *orchestrator.Context) error { return second(askClerk(ctx)) }, succeeds),
	}
}

func second[T any](_ T, err error) error { return err }

func countedHMAC(p *handler.Platform) (engine.Definition, error) {
	var steps *hmac.Steps
	arrivals, err := consumers.New(consumers.Config{Engine: hmac.Engine, Tables: p.Tables, Outbox: p.Events, Targets: map[string]consumers.Target{},
		Knows: func(ctx context.Context, target, version string) (bool, error) {
			return steps.Knows(ctx, target, version)
		}})
	if err != nil {
		return engine.Definition{}, err
	}
	steps, err = hmac.New(hmac.Config{Vault: p.Secrets, Tables: p.Tables, Publisher: hmacEvents{p.Outbox}, Arrivals: arrivals})
	if err != nil {
		return engine.Definition{}, err
	}
	keys := hmac.Definition(steps)
	keys.Consumers = arrivals
	return keys, nil
}

// hmacEvents publishes the events of the hmac engine.
type hmacEvents struct{ *outbox.Writer }

// Publish adds an event.
func (w hmacEvents) Publish(ctx context.Context, e hmac.Event) (string, error) {
	added, err := w.Add(ctx, outbox.Message{TenantID: e.TenantID, EventType: e.Type, Payload: e.Payload, OrderKey: e.OrderKey, CorrelationID: e.CorrelationID,
		Key: w.Key(e.TenantID, e.Category, e.Entity, e.Kind, e.Version)})
	return added.ID, err
}

// ID returns the id of an event.
func (w hmacEvents) ID(e hmac.Event) string {
	return w.Key(e.TenantID, e.Category, e.Entity, e.Kind, e.Version).String()
}

// spn returns the spn engine with overlaps that end immediately.
func (n *neighbors) spn(p *handler.Platform) (engine.Definition, error) {
	options := &policy.ClientOptions{Transport: n.graph}
	graph, err1 := entra.NewGraph(graphfake.Address, n.graph.Credential(), options)
	login, err2 := entra.NewLogin(graphfake.Address, graphfake.Tenant, graphfake.Address, options)
	known, err3 := consumers.New(consumers.Config{Engine: spn.Engine, Tables: p.Tables, Outbox: p.Events})
	if err := errors.Join(err1, err2, err3); err != nil {
		return engine.Definition{}, err
	}
	steps, err := spn.New(spn.Config{Directory: graph, Login: login, Vault: p.Secrets, Values: p.Secrets, Owner: "bench", Arrivals: known, EventID: p.Events.ID,
		Overlap: time.Nanosecond, RemoveAfter: time.Nanosecond})
	if err != nil {
		return engine.Definition{}, err
	}
	return spn.Definition(steps), nil
}

// tls returns the tls engine without targets.
func (n *neighbors) tls(p *handler.Platform) (engine.Definition, error) {
	steps, err := enginetls.New(enginetls.Config{Vault: p.Certificates, Authority: n.ca, Tables: p.Tables, Targets: enginetls.StaticTargets{},
		Distributor: &enginetls.HTTPDistributor{}})
	if err != nil {
		return engine.Definition{}, err
	}
	return enginetls.Definition(steps), nil
}

func (n *neighbors) provisioning(p *handler.Platform) (engine.Definition, error) {
	client, err := marketplace.New(marketplace.Config{Credential: n.market.Credential(), Options: n.market.Options()})
	if err != nil {
		return engine.Definition{}, err
	}
	steps, err := provisioning.New(provisioning.Config{Marketplace: client, Registry: provisionedIn{p.Registry}})
	if err != nil {
		return engine.Definition{}, err
	}
	return provisioning.Definition(steps), nil
}

// provisionedIn is the registry for the provisioning engine.
type provisionedIn struct{ *registry.Registry }

// Create implements provisioning.Registry.
func (r provisionedIn) Create(ctx context.Context, i provisioning.Instance) error {
	document := registry.Instance{InstanceID: i.ID, TenantID: i.TenantID}
	if err := document.SetField(provisioning.Engine, i); err != nil {
		return err
	}
	_, err := r.Registry.Create(ctx, document)
	if errors.Is(err, registry.ErrExists) {
		return provisioning.ErrRegistered
	}
	return err
}

// Update implements provisioning.Registry.
func (r provisionedIn) Update(ctx context.Context, id string, change func(*provisioning.Instance) error) error {
	_, err := r.Registry.Update(ctx, id, "", func(document *registry.Instance) error {
		i := provisioning.Instance{ID: document.InstanceID, TenantID: document.TenantID}
		if _, err := document.Field(provisioning.Engine, &i); err != nil {
			return err
		}
		if err := change(&i); err != nil {
			return err
		}
		return document.SetField(provisioning.Engine, i)
	})
	if errors.Is(err, registry.ErrNotFound) {
		return provisioning.ErrNotRegistered
	}
	return err
}

func (n *neighbors) update(p *handler.Platform) (engine.Definition, error) {
	client, err := update.NewHTTP(n.updates.URL, n.updates.Client())
	if err != nil {
		return engine.Definition{}, err
	}
	steps, err := update.New(update.Config{Components: client, Registry: p.Registry})
	if err != nil {
		return engine.Definition{}, err
	}
	return update.Definition(steps), nil
}

func countedPublisher(p *handler.Platform) (engine.Definition, error) {
	releases, err := updatepublisher.ParseReleases(`[{"ring":"stable","version":"2.0","components":[{"name":"web","version":"2.0"}]}]`)
	if err != nil {
		return engine.Definition{}, err
	}
	steps, err := updatepublisher.New(updatepublisher.Config{Registry: p.Registry, Releases: releases})
	if err != nil {
		return engine.Definition{}, err
	}
	return updatepublisher.Definition(steps), nil
}

func (n *neighbors) health(p *handler.Platform) (engine.Definition, error) {
	client, err := health.NewHTTP(n.patients.URL, n.patients.Client())
	if err != nil {
		return engine.Definition{}, err
	}
	steps, err := health.New(health.Config{Checker: client, Registry: p.Registry})
	if err != nil {
		return engine.Definition{}, err
	}
	return health.Definition(steps), nil
}

func countedAlerts(*handler.Platform) (engine.Definition, error) {
	steps, err := alerts.New(alerts.Config{})
	if err != nil {
		return engine.Definition{}, err
	}
	return alerts.Definition(steps), nil
}

// countedAuthority replaces an ACME server: it issues each requested certificate, in one step.
type countedAuthority struct {
	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

func newCountedAuthority() (*countedAuthority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().AddDate(1, 0, 0), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		return nil, err
	}
	root, err = x509.ParseCertificate(der)
	return &countedAuthority{key, root}, err
}

// Order implements tls.Authority.
func (c *countedAuthority) Order(_ context.Context, domains []string, _ []byte) (string, error) {
	return "https://authority.test/" + domains[0], nil
}

// Issue implements tls.Authority.
func (c *countedAuthority) Issue(_ context.Context, _ string, request []byte) ([][]byte, error) {
	asked, err := x509.ParseCertificateRequest(request)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	leaf, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: serial, DNSNames: asked.DNSNames, NotBefore: time.Now(),
		NotAfter: time.Now().AddDate(0, 0, 90), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		c.root, asked.PublicKey, c.key)
	return [][]byte{leaf, c.root.Raw}, err
}

// Renewal implements tls.Authority.
func (c *countedAuthority) Renewal(context.Context, []byte) (enginetls.Window, error) {
	return enginetls.Window{}, nil
}

// Revoke implements tls.Authority.
func (c *countedAuthority) Revoke(context.Context, []byte, enginetls.Reason) error {
	return fmt.Errorf("%w: nobody asks for it here", enginetls.ErrRefused)
}

// Tidy implements tls.Authority: it has nothing to remove.
func (c *countedAuthority) Tidy(context.Context) {}
