package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Where the parties of a fleet listen.
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

// crashing is an app whose process dies by a plan, and is followed by another one.
type crashing struct {
	settings map[string]string
	plan     *faults.Plan
	armed    atomic.Bool
	again    bool
}

// Intercept is the plan's, once it is armed.
func (c *crashing) Intercept(ctx context.Context, call faults.Call, next func(context.Context) error) error {
	if !c.armed.Load() {
		return next(ctx)
	}
	return c.plan.Intercept(ctx, call, next)
}

// key24 is a key that a party signs with.
func key24(of string) string { return strings.Repeat(of, outbox.MinSecret) }

func newFleet(t *testing.T, releases string) *fleet {
	t.Helper()
	return newFleetUnder(t, releases, &faults.Plan{}, &faults.Plan{})
}

// newFleetUnder is a fleet whose apps die by plans, from when it is there.
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

// bury starts the process anew of an app that has died.
func (f *fleet) bury(h *handlertest.Host) {
	if c := f.crashing[h]; c.plan.Crashed() && !c.again {
		c.again = true
		h.Restart(c.settings, f.dial)
	}
}

// give puts keys into the vault of an app.
func (f *fleet) give(to *handlertest.Host, keys map[string]string) {
	f.t.Helper()
	for name, of := range keys {
		if _, err := secrets.NewDevelopment(to.Tables).Add(f.t.Context(), name, []byte(key24(of)), nil); err != nil {
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

// pass lets time pass in both apps.
func (f *fleet) pass(d time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(30 * time.Second) {
		for _, h := range []*handlertest.Host{f.publisher, f.managed} {
			f.bury(h)
			h.Tick("outbox-sweep-timer", time.Now())
			h.Tick("orchestration-sweep-timer", time.Now())
			h.Deliver()
		}
	}
}

// evaluate has the publisher look who needs a release.
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

// instance is what a registry says of the instance i1.
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

const stable = `[{"ring":"stable","version":"2.0","released":"2026-11-01T00:00:00Z","components":[{"name":"web","version":"1.1"}]}]`

// A release goes from the publisher to the instance, and what became of it comes back, under one id; then nobody is told again.
// Either side may be away meanwhile.
func TestAReleaseGoesOutAndItsEndComesBack(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]string{"all are there": "", "the managed application is away": managedAddress, "the publisher is away": publisherAddress} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, stable)
				f.network.Down(away, true)
				if r := f.evaluate("c1"); r.Notified != 1 {
					t.Fatalf("%+v", r)
				}
				f.pass(2 * time.Minute)
				if away != "" && f.instance(f.publisher).version != "1.0" {
					t.Error("the network was not down")
				}
				f.network.Down(away, false)
				f.pass(30 * time.Minute)
				there, here := f.instance(f.managed), f.instance(f.publisher)
				if there.version != "2.0" || here.version != "2.0" || here.last.Status != release.Updated || here.last.Ring != "stable" ||
					here.last.CorrelationID == "" || here.last.CorrelationID != there.desired.CorrelationID {
					t.Errorf("managed application %+v\npublisher %+v", there, here)
				}
				if r := f.evaluate("c2"); r.Notified != 0 || r.Evaluated == 0 {
					t.Errorf("evaluated again: %+v", r)
				}
				events := f.outbox(f.publisher, "update.available")
				if len(events) != 1 || events[0].Status != outbox.StatusProcessed || events[0].IdempotencyKey.String() != there.desired.CorrelationID {
					t.Errorf("%+v", events)
				}
				f.noDeadLetters()
			})
		})
	}
}

// Whichever process dies, at whichever of its calls, while a release goes out and its end comes back: both registries have the
// version at last, and nobody has anything to mend.
func TestKilledWhileAReleaseTravels(t *testing.T) {
	t.Parallel()
	travel := func(t *testing.T, publisher, managed *faults.Plan) {
		t.Helper()
		f := newFleetUnder(t, stable, publisher, managed)
		f.publisher.Send(updatepublisher.Queue, `{"correlationId":"c1"}`)
		f.pass(30 * time.Minute)
		there, here := f.instance(f.managed), f.instance(f.publisher)
		if there.version != "2.0" || here.version != "2.0" || here.last.Status != release.Updated || here.last.CorrelationID != there.desired.CorrelationID {
			t.Errorf("managed application %+v\npublisher %+v", there, here)
		}
		f.noDeadLetters()
	}
	var counts [2]faults.Plan
	synctest.Test(t, func(t *testing.T) { travel(t, &counts[0], &counts[1]) })
	for which := range counts {
		// What is behind the first calls are sweeps that find nothing.
		for at := 0; at < min(200, len(counts[which].Calls())); at += 4 {
			fault := []faults.Fault{faults.CrashBefore, faults.CrashAfter}[at/4%2]
			t.Run(fmt.Sprintf("%d-%s-%d", which, fault, at+1), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					plans := [2]*faults.Plan{{}, {}}
					plans[which] = &faults.Plan{At: at + 1, Fault: fault}
					travel(t, plans[0], plans[1])
					if !plans[which].Crashed() {
						t.Error("nobody died")
					}
				})
			})
		}
	}
}

// outbox are the events of an app, of one type.
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

// Who has to approve updates of a ring, the managed application's setting says; that nobody did is known to the publisher.
func TestARingThatNeedsAnApproval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, strings.Replace(stable, "stable", "canary", 1))
		_, err := registry.New(f.publisher.Tables, "").Update(t.Context(), "i1", "", func(i *registry.Instance) error { return i.SetField("ring", "canary") })
		if err != nil {
			t.Fatal(err)
		}
		f.evaluate("c1")
		f.pass(10 * time.Minute)
		if status, answer := f.managed.Do(http.MethodGet, "/api/tasks", ""); status != http.StatusOK || !strings.Contains(answer, update.TaskApproval) || !strings.Contains(answer, "approver") {
			t.Errorf("%d %s", status, answer)
		}
		f.pass(2 * time.Hour)
		if here := f.instance(f.publisher); here.version != "1.0" || here.last.Status != release.Failed || !strings.Contains(here.last.Reason, "nobody has approved") {
			t.Errorf("%+v", here)
		}
	})
}

// An instance that is not well is known to the publisher, and one that is well again.
func TestHealthIsKnownToThePublisher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "[]")
		var since time.Time
		for n, ill := range []bool{false, false, true, false} {
			f.ill.Store(ill)
			f.managed.Send(health.Queue, fmt.Sprintf(`{"correlationId":"h%d","instanceId":"i1"}`, n))
			f.pass(5 * time.Minute)
			got := f.instance(f.publisher).health
			if want := map[bool]string{false: "Healthy", true: "Unhealthy"}[ill]; got.Status != want || (n == 1) != got.SinceUtc.Equal(since) {
				t.Errorf("check %d: %+v, want %s", n, got, want)
			}
			since = got.SinceUtc
		}
		f.noDeadLetters()
	})
}

// A ring that no release is for is said. An instance without an address is for a person; once it has one, it is told.
func TestInstancesThatCannotBeTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, stable)
		f.register(f.publisher, "i2", map[string]any{"ring": "sable"})
		f.register(f.publisher, "i3", nil)
		if r := f.evaluate("c1"); r.Notified != 2 || r.UnknownRings["sable"] != 1 {
			t.Errorf("%+v", r)
		}
		f.pass(10 * time.Minute)
		dead := f.publisher.DeadLetters("outbox")
		if len(dead) != 1 || dead[0].Status != engine.StatusPending || !strings.Contains(dead[0].ErrorMessage, "instance i3 has no address for its events: set endpoints.events") {
			t.Errorf("%+v", dead)
		}
		f.give(f.publisher, map[string]string{secrets.Name("notices", "i3"): "a", secrets.Name("events", "i3"): "b"})
		f.register(f.managed, "i3", nil)
		_, err := registry.New(f.publisher.Tables, "").Update(t.Context(), "i3", "", func(i *registry.Instance) error {
			return i.SetField("endpoints", registry.Endpoints{Events: "http://" + managedAddress + "/api/updates"})
		})
		if err != nil {
			t.Fatal(err)
		}
		f.pass(2 * time.Hour)
		i, err := registry.New(f.publisher.Tables, "").Get(t.Context(), "i3")
		if err != nil {
			t.Fatal(err)
		}
		if version, err := update.VersionOf(i); err != nil || version != "2.0" {
			t.Errorf("version %q, %v", version, err)
		}
		if dead := f.publisher.DeadLetters("outbox"); len(dead) != 1 || dead[0].Status != engine.StatusResolved {
			t.Errorf("%+v", dead)
		}
	})
}

// signedEvent is a request with an event, as an outbox sends it.
func signedEvent(t *testing.T, kind, data, key string, at time.Time) *http.Request {
	t.Helper()
	body := []byte(fmt.Sprintf(`{"specversion":"1.0","id":"7e0c9c9e-1111-4222-8333-000000000001","source":"/s","type":%q,"data":%s}`, kind, data))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/cloudevents+json")
	if err := outbox.Sign(r.Header, "7e0c9c9e", at, body, []outbox.SigningKey{{ID: "k", Secret: []byte(key24(key))}}); err != nil {
		t.Fatal(err)
	}
	return r
}

// What is not signed, was changed, is old, or is for somebody else, is refused, and nothing comes of it; what comes twice is one
// message.
func TestEventsThatAreRefused(t *testing.T) {
	t.Parallel()
	const notice = `{"instanceId":"i1","ring":"stable","version":"2.0","components":[{"name":"web","version":"1.1"}]}`
	const report = `{"instanceId":"i1","status":"Unhealthy","sinceUtc":"1999-11-01T00:00:00Z"}`
	change := func(from, to string) func(*http.Request) {
		return func(r *http.Request) {
			body, _ := io.ReadAll(r.Body) // of memory
			r.Body = io.NopCloser(strings.NewReader(strings.Replace(string(body), from, to, 1)))
		}
	}
	for name, c := range map[string]struct {
		report     bool
		kind, data string
		key        string
		late       time.Duration
		change     func(*http.Request)
		status     int
		code       string
	}{
		"a notice":                      {data: notice, key: "a", status: http.StatusAccepted},
		"a report":                      {report: true, data: report, key: "b", status: http.StatusAccepted},
		"another key":                   {data: notice, key: "b", status: http.StatusUnauthorized, code: "Unauthorized"},
		"another instance's key":        {report: true, data: report, key: "c", status: http.StatusUnauthorized, code: "Unauthorized"},
		"an instance without a key":     {report: true, data: strings.Replace(report, "i1", "i9", 1), key: "b", status: http.StatusUnauthorized, code: "Unauthorized"},
		"changed":                       {data: notice, key: "a", change: change("2.0", "3.0"), status: http.StatusUnauthorized, code: "Unauthorized"},
		"old":                           {data: notice, key: "a", late: 6 * time.Minute, status: http.StatusUnauthorized, code: "Unauthorized"},
		"not signed":                    {data: notice, key: "a", change: func(r *http.Request) { r.Header.Del(outbox.HeaderSignature) }, status: http.StatusUnauthorized, code: "Unauthorized"},
		"in binary mode":                {data: notice, key: "a", change: func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }, status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"too large":                     {data: `"` + strings.Repeat("x", 600<<10) + `"`, key: "a", status: http.StatusRequestEntityTooLarge, code: "BodyTooLarge"},
		"of another instance":           {data: strings.Replace(notice, "i1", "i2", 1), key: "a", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"of no instance":                {data: `{}`, key: "a", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"another event":                 {kind: "hmac.rotated", data: notice, key: "a", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"a notice without components":   {data: `{"instanceId":"i1","ring":"stable","version":"2.0"}`, key: "a", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"a report that makes no sense":  {report: true, data: `{"instanceId":"i1","status":"a b","sinceUtc":"1999-11-01T00:00:00Z"}`, key: "b", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"a notice among the reports":    {report: true, kind: release.EventAvailable, data: notice, key: "b", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"a notice with a hostile value": {data: strings.Replace(notice, "1.1", "../1", 1), key: "a", status: http.StatusUnprocessableEntity, code: "NotTaken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, "[]")
				to, path, queue, kind := f.managed, "/api/updates", update.Queue, release.EventAvailable
				if c.report {
					to, path, queue, kind = f.publisher, "/api/reports", updatepublisher.Queue, release.EventHealth
				}
				if c.kind != "" {
					kind = c.kind
				}
				for range 2 {
					r := signedEvent(t, kind, c.data, c.key, time.Now().Add(-c.late))
					r.URL.Path, r.RequestURI = path, path
					if c.change != nil {
						c.change(r)
					}
					rec := httptest.NewRecorder()
					to.ServeHTTP(rec, r)
					if rec.Code != c.status || rec.Header().Get("x-ms-error-code") != c.code {
						t.Fatalf("%d %s", rec.Code, rec.Body)
					}
				}
				n, err := to.Queues.Length(t.Context(), queue)
				if err != nil || (n > 0) != (c.status == http.StatusAccepted) {
					t.Errorf("%d messages, %v", n, err)
				}
				f.pass(5 * time.Minute)
				var runs []string
				for _, e := range slices.Concat(to.History(update.Engine), to.History(updatepublisher.Engine)) {
					if !slices.Contains(runs, e.CorrelationID) {
						runs = append(runs, e.CorrelationID)
					}
				}
				if c.status == http.StatusAccepted && !slices.Equal(runs, []string{"7e0c9c9e-1111-4222-8333-000000000001"}) || c.status != http.StatusAccepted && len(runs) > 0 {
					t.Errorf("runs %v", runs)
				}
				f.noDeadLetters()
			})
		})
	}
}

// A report of an instance that the publisher does not know is a dead letter there, if it is signed with a key that is for all.
func TestAReportOfAnInstanceThatIsNotRegistered(t *testing.T) {
	t.Parallel()
	h := handlertest.New(t, handler.App{Engines: engines}, map[string]string{reportKeysSetting: `[{"id":"i","secret":"reports"}]`})
	if _, err := secrets.NewDevelopment(h.Tables).Add(t.Context(), "reports", []byte(key24("r")), nil); err != nil {
		t.Fatal(err)
	}
	r := signedEvent(t, release.EventHealth, `{"instanceId":"i9","status":"Healthy","sinceUtc":"1999-11-01T00:00:00Z"}`, "r", time.Now())
	r.URL.Path, r.RequestURI = "/api/reports", "/api/reports"
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	h.Deliver()
	if dead := h.DeadLetters(updatepublisher.Engine); rec.Code != http.StatusAccepted || len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, registry.ErrNotFound.Error()) {
		t.Errorf("%d %s, dead letters %+v", rec.Code, rec.Body, dead)
	}
}

// A door without keys is closed.
func TestEventIntakesThatAreClosed(t *testing.T) {
	t.Parallel()
	for in, path := range map[deployment]string{publisher: "/api/reports", managedApp: "/api/updates"} {
		h := handlertest.New(t, handler.App{Engines: engines}, map[string]string{contextSetting: string(in)})
		if status, answer := h.Do(http.MethodPost, path, "{}"); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}
