package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

// The addresses of a fleet's parties.
const (
	publisherAddress  = "127.0.0.1:7201"
	managedAddress    = "127.0.0.1:7202"
	componentsAddress = "127.0.0.1:7203"
)

// fleet is a publisher, and a managed application with the instance i1, which has one component, each with stores of its own.
type fleet struct {
	t                  *testing.T
	network            *handlertest.Network
	publisher, managed *handlertest.Host
	components         *components
	ill                atomic.Bool
	crashing           map[*handlertest.Host]*crashing
}

// crashing is an app whose process dies by a plan, and is replaced by another one.
type crashing struct {
	settings map[string]string
	plan     *faults.Plan
	armed    atomic.Bool
	again    bool
}

// Intercept calls the plan's Intercept, once it is armed.
func (c *crashing) Intercept(ctx context.Context, call faults.Call, next func(context.Context) error) error {
	if !c.armed.Load() {
		return next(ctx)
	}
	return c.plan.Intercept(ctx, call, next)
}

// whsec returns a key in the form of the vault.
func whsec(key string) []byte {
	return []byte("whsec_" + base64.StdEncoding.EncodeToString([]byte(key)))
}

// key24 returns a signing key.
func key24(of string) string { return strings.Repeat(of, outbox.MinSecret) }

func newFleet(t *testing.T, releases string) *fleet {
	t.Helper()
	return newFleetUnder(t, releases, &faults.Plan{}, &faults.Plan{})
}

// newFleetUnder returns a fleet whose apps die by plans, after it is complete.
func newFleetUnder(t *testing.T, releases string, publisher, managed *faults.Plan) *fleet {
	t.Helper()
	f := &fleet{t: t, network: handlertest.NewNetwork(t), components: &components{versions: map[string]string{}}, crashing: map[*handlertest.Host]*crashing{}}
	f.publisher = f.app(publisher, map[string]string{
		"ROUNDHOUSE_UPDATE_RELEASES": releases,
		reportKeysSetting:            `[{"id":"i","secret":"events-{instance}"}]`,
		"ROUNDHOUSE_OUTBOX": `{"destinations":{"instances":{"instance":{"signingKeys":[{"id":"p","secret":"notices-{instance}"}],"allow":["127.0.0.0/8"],"allowPlaintext":true}},"log":{"log":{}}},
			"routes":[{"eventType":"update.available","destination":"instances"},{"eventType":"*","destination":"log"}]}`})
	f.managed = f.app(managed, map[string]string{
		contextSetting: "managed-app", endpointSetting: "http://" + componentsAddress,
		updateKeysSetting:            `[{"id":"p","secret":"publisher"}]`,
		"ROUNDHOUSE_UPDATE_APPROVAL": `{"canary":{"deadlineSeconds":3600,"roles":["approver"]}}`,
		"ROUNDHOUSE_OUTBOX": `{"destinations":{"publisher":{"http":{"url":"http://` + publisherAddress + `/api/reports","structured":true,"signingKeys":[{"id":"i","secret":"own"}],
			"allow":["127.0.0.0/8"],"allowPlaintext":true}}},"routes":[{"eventType":"*","destination":"publisher"}]}`})
	f.network.Serve(publisherAddress, f.publisher)
	f.network.Serve(managedAddress, f.managed)
	f.network.Serve(componentsAddress, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.ill.Load() && strings.HasSuffix(r.URL.Path, "/health") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		f.components.ServeHTTP(w, r)
	}))
	f.give(f.publisher, map[string]string{secrets.Name("notices", "i1"): "a", secrets.Name("events", "i1"): "b", secrets.Name("events", "i2"): "c"})
	f.give(f.managed, map[string]string{"publisher": "a", "own": "b"})
	f.register(f.publisher, "i1", map[string]any{"ring": "stable", "version": "1.0", "endpoints": registry.Endpoints{Events: "http://" + managedAddress + "/api/updates"}})
	f.register(f.managed, "i1", map[string]any{"version": "1.0"})
	for h, c := range f.crashing {
		h.Restart(c.settings, func(config *handler.Config) {
			f.dial(config)
			config.Tables, config.Queues, config.Blobs = faults.Tables(h.Tables, c.Intercept), faults.Queues(h.Queues, c.Intercept), faults.Blobs(h.Blobs, c.Intercept)
		})
		c.armed.Store(true)
	}
	return f
}

// app starts an app.
func (f *fleet) app(plan *faults.Plan, settings map[string]string) *handlertest.Host {
	f.t.Helper()
	h := handlertest.NewWith(f.t, handler.App{Engines: engines}, settings, f.dial)
	f.crashing[h] = &crashing{settings: settings, plan: plan}
	return h
}

func (f *fleet) dial(c *handler.Config) { c.Dial = f.network.Dial }

// bury restarts the process of an app that has died.
func (f *fleet) bury(h *handlertest.Host) {
	if c := f.crashing[h]; c.plan.Crashed() && !c.again {
		c.again = true
		h.Restart(c.settings, f.dial)
	}
}

// give stores keys in the vault of an app.
func (f *fleet) give(to *handlertest.Host, keys map[string]string) {
	f.t.Helper()
	for name, of := range keys {
		if _, err := secrets.NewDevelopment(to.Tables).Add(f.t.Context(), name, whsec(key24(of)), nil); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fleet) register(with *handlertest.Host, id string, fields map[string]any) {
	f.t.Helper()
	i := registry.Instance{InstanceID: id}
	for name, v := range fields {
		if err := i.SetField(name, v); err != nil {
			f.t.Fatal(err)
		}
	}
	if _, err := registry.New(with.Tables, "").Create(f.t.Context(), i); err != nil {
		f.t.Fatal(err)
	}
}

// pass advances the time in both apps, whose timers fire 30 times meanwhile, and at least every 30 seconds.
func (f *fleet) pass(d time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(max(30*time.Second, d/30)) {
		for _, h := range []*handlertest.Host{f.publisher, f.managed} {
			f.bury(h)
			h.Tick("outbox-sweep-timer", time.Now())
			h.Tick("orchestration-sweep-timer", time.Now())
			h.Deliver()
		}
	}
}

// evaluate makes the publisher evaluate its instances.
func (f *fleet) evaluate(correlationID string) updatepublisher.Result {
	f.t.Helper()
	f.publisher.Send(updatepublisher.Queue, fmt.Sprintf(`{"correlationId":%q}`, correlationID))
	f.publisher.Deliver()
	var result updatepublisher.Result
	if err := json.Unmarshal(f.publisher.Outcome("update-publisher-"+correlationID).Output, &result); err != nil {
		f.t.Fatal(err)
	}
	return result
}

// instanceState is the registry's state of the instance i1.
type instanceState struct {
	version string
	last    updatepublisher.LastUpdate
	health  updatepublisher.Health
	desired update.Wanted
}

func (f *fleet) instance(of *handlertest.Host) instanceState {
	f.t.Helper()
	i, err := registry.New(of.Tables, "").Get(f.t.Context(), "i1")
	if err != nil {
		f.t.Fatal(err)
	}
	var s instanceState
	for name, v := range map[string]any{"version": &s.version, "lastUpdate": &s.last, "health": &s.health, "desired": &s.desired} {
		if _, err := i.Field(name, v); err != nil {
			f.t.Fatal(err)
		}
	}
	return s
}

// outbox returns the events of an app, of one type.
func (f *fleet) outbox(of *handlertest.Host, kind string) []outbox.Record {
	f.t.Helper()
	o, err := outbox.New(outbox.Config{Tables: of.Tables, Queues: of.Queues, Blobs: of.Blobs, Options: outbox.DefaultOptions()})
	if err != nil {
		f.t.Fatal(err)
	}
	var all []outbox.Record
	for _, status := range []outbox.Status{outbox.StatusPending, outbox.StatusProcessed, outbox.StatusDead} {
		page, err := outbox.NewAdmin(o).List(f.t.Context(), outbox.Filter{TenantID: engine.PublisherInstance, Status: status, EventType: kind})
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, page.Records...)
	}
	return all
}

func (f *fleet) noDeadLetters() {
	f.t.Helper()
	for _, name := range []string{update.Engine, health.Engine, updatepublisher.Engine, "outbox"} {
		if dead := append(f.publisher.DeadLetters(name), f.managed.DeadLetters(name)...); len(dead) > 0 {
			f.t.Errorf("%s: %+v", name, dead)
		}
	}
}
