package year

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/engine/spn"
	enginetls "github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/graphfake"
	"github.com/vibedata/roundhouse/internal/ncrontab"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/entra"
)

// site is an app with its host.
type site struct {
	*handlertest.Host
	outages outages
	part    part
	timers  []timer
	change  func(*handler.Config)
}

// timer is a timer function of an app.
type timer struct {
	name  string
	when  ncrontab.Expression
	fired time.Time
}

func newSite(t testing.TB, o *outside, p part, engines func(*handler.Platform) ([]engine.Definition, error), settings map[string]string) *site {
	t.Helper()
	s := &site{outages: o.outages, part: p, change: func(c *handler.Config) { c.Queues = receivers{c.Queues, o.outages} }}
	s.Host = handlertest.NewWith(t, handler.App{Engines: engines}, settings, s.change)
	for name, f := range s.Manifest().Functions {
		if schedule := f.Bindings[0].Schedule; schedule != "" {
			when := testenv.Must(ncrontab.Parse(schedule))(t)
			s.timers = append(s.timers, timer{name, when, time.Now()})
		}
	}
	return s
}

// sparse are timers that fire less often than scheduled, because each run reads everything, and nothing here depends on
// their frequency.
var sparse = map[string]time.Duration{"orchestration-sweep-timer": 6 * time.Hour, "retention-timer": day}

// step does the host's work: it fires the due timers, each once, and delivers messages.
func (s *site) step() {
	if s.outages.down(s.part) {
		return
	}
	now := time.Now()
	for i, t := range s.timers {
		if due := t.when.Next(t.fired); !due.After(now) && now.Sub(t.fired) >= sparse[t.name] {
			s.timers[i].fired = now
			s.Tick(t.name, due)
		}
	}
	s.Deliver()
}

// publisherEngines returns those of cmd/handler, with the services of this test.
func (o *outside) publisherEngines(p *handler.Platform) ([]engine.Definition, error) {
	kept := secretStore{p.Secrets, o.outages}
	keys, known, err1 := o.keys(p, kept)
	passwords, err2 := o.passwords(p, kept)
	certificates, err3 := enginetls.New(enginetls.Config{Vault: certificateStore{p.Certificates, o.outages}, Authority: o.ca, Tables: p.Tables,
		Targets: enginetls.StaticTargets{{ID: "gateway", Address: o.target.address}}, Distributor: teller{o, p}, Roots: o.ca.signer.Pool()})
	releases, err4 := updatepublisher.ParseReleases(p.Settings.Text("TEST_RELEASES"))
	updates, err5 := updatepublisher.New(updatepublisher.Config{Registry: p.Registry, Releases: releases})
	bought, err6 := o.provisioning(p)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, err
	}
	all := []engine.Definition{hmac.Definition(keys), spn.Definition(passwords), enginetls.Definition(certificates), updatepublisher.Definition(updates), provisioning.Definition(bought)}
	all[0].Consumers = known
	all[0].Schedules = []engine.Schedule{each("0 11 2 * * *", keyMessage, quickKey, slowKey)}
	all[1].Schedules = []engine.Schedule{each("0 26 2 * * 0", passwordMessage, applications...)}
	all[2].Schedules = []engine.Schedule{each("0 41 2 * * *", certificateMessage, domains...)}
	all[3].Schedules = []engine.Schedule{updatepublisher.Every("0 23 * * * *")}
	return all, nil
}

const (
	tenant   = "contoso"
	quickKey = "key-a"
	// slowKey is a key whose delivery a consumer acknowledges.
	slowKey, slowConsumer = "key-b", "slow"
)

// applications and domains are rotated besides two keys.
var (
	applications = []string{"0b1f5a2e-7c55-4c2a-9d0f-3f0f6b1f7a11"}
	domains      = []string{"www.example.com"}
)

// each returns a schedule of targets: keys, applications or certificates.
func each(cron string, message func(target, slot string) engine.Message, targets ...string) engine.Schedule {
	var items []engine.Item
	for _, target := range targets {
		items = append(items, engine.Item{Name: target, Message: func(slot time.Time) (engine.Message, error) {
			m := message(target, slot.Format(time.DateOnly))
			m.TenantID = tenant
			return m, nil
		}})
	}
	return engine.Schedule{Name: "schedule", Cron: cron, Items: engine.FixedItems(items...)}
}

func keyMessage(instance, slot string) engine.Message {
	return engine.Message{InstanceID: instance, Input: fmt.Appendf(nil, `{"slot":%q}`, slot)}
}

func passwordMessage(application, slot string) engine.Message {
	return engine.Message{Input: fmt.Appendf(nil, `{"applicationId":%q,"slot":%q}`, application, slot)}
}

func certificateMessage(domain, _ string) engine.Message {
	return engine.Message{Input: fmt.Appendf(nil, `{"domain":%q}`, domain)}
}

// keys returns the hmac engine. One of its keys has a consumer that acknowledges.
func (o *outside) keys(p *handler.Platform, kept secretStore) (steps *hmac.Steps, known *consumers.Consumers, err error) {
	known, err = consumers.New(consumers.Config{Engine: hmac.Engine, Tables: p.Tables, Outbox: p.Events, Targets: map[string]consumers.Target{
		slowKey: {TenantID: tenant, Names: []string{slowConsumer}},
	}, Knows: func(ctx context.Context, target, version string) (bool, error) {
		return steps.Knows(ctx, target, version)
	}})
	if err == nil {
		steps, err = hmac.New(hmac.Config{Vault: kept, Tables: p.Tables, Publisher: events{p.Outbox}, Arrivals: known})
	}
	return steps, known, err
}

// passwords returns the spn engine.
func (o *outside) passwords(p *handler.Platform, kept secretStore) (*spn.Steps, error) {
	options := &policy.ClientOptions{Transport: directoryTransport{o}}
	graph, err1 := entra.NewGraph(graphfake.Address, o.graph.Credential(), options)
	login, err2 := entra.NewLogin(graphfake.Address, graphfake.Tenant, graphfake.Address, options)
	known, err3 := consumers.New(consumers.Config{Engine: spn.Engine, Tables: p.Tables, Outbox: p.Events})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return spn.New(spn.Config{Directory: graph, Login: login, Vault: kept, Values: kept, Owner: "year", Arrivals: known, EventID: p.Events.ID})
}

// managedEngines returns those of a managed application.
func (o *outside) managedEngines(p *handler.Platform) ([]engine.Definition, error) {
	changed, err1 := update.NewHTTP(o.updates.URL, o.failing(o.updates.Client()))
	looked, err2 := health.NewHTTP(o.patients.URL, o.failing(o.patients.Client()))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	updates, err1 := update.New(update.Config{Components: changed, Registry: p.Registry})
	checks, err2 := health.New(health.Config{Checker: looked, Registry: p.Registry})
	notices, err3 := alerts.New(alerts.Config{})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	all := []engine.Definition{update.Definition(updates), health.Definition(checks), alerts.Definition(notices)}
	all[1].Schedules = []engine.Schedule{health.Every("0 0 */6 * * *", p.Registry)}
	return all, nil
}

// events publishes through the outbox, as cmd/handler does.
type events struct{ writer *outbox.Writer }

func (p events) Publish(ctx context.Context, e hmac.Event) (string, error) {
	added, err := p.writer.Add(ctx, outbox.Message{TenantID: e.TenantID, EventType: e.Type, Payload: e.Payload, OrderKey: e.OrderKey, CorrelationID: e.CorrelationID,
		Key: p.key(e)})
	return added.ID, err
}

// ID implements hmac.Publisher.
func (p events) ID(e hmac.Event) string { return p.key(e).String() }

func (p events) key(e hmac.Event) uuid.UUID {
	return p.writer.Key(e.TenantID, e.Category, e.Entity, e.Kind, e.Version)
}

// teller notifies the target, while that works.
type teller struct {
	o *outside
	p *handler.Platform
}

// Distribute implements tls.Distributor.
func (d teller) Distribute(ctx context.Context, _ enginetls.Target, c enginetls.Certificate) error {
	if d.o.outages.down(tlsTarget) {
		return errors.New("the target does not answer")
	}
	return d.o.target.take(ctx, d.p.Tables, c)
}

// decode reads JSON that an app has written.
func decode[T any](t testing.TB, text []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %.500s", err, text)
	}
	return v
}
