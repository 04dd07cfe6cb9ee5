package alerts

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
)

const (
	// certificate is the name of the expiring certificate of the engine work.
	certificate = "site"
	// receiverAddress is the address of the event receiver.
	receiverAddress = "127.0.0.1:7301"
	// outboxSetting sends events to the receiver and signs those of one kind.
	outboxSetting = `{"destinations":{
		"receiver":{"http":{"url":"http://` + receiverAddress + `/hook","allow":["127.0.0.0/8"],"allowPlaintext":true}},
		"signed":{"http":{"url":"http://` + receiverAddress + `/hook","allow":["127.0.0.0/8"],"allowPlaintext":true,"signingKeys":[{"id":"k1","secret":"hook"}]}}},
		"routes":[{"eventType":"signed","destination":"signed"},{"eventType":"*","destination":"receiver"}]}`
)

// app is the app under test: an engine whose messages name its steps, and an engine that rotates keys.
type app struct {
	platform *handler.Platform
	// ill makes activities fail, unwell the schedule; changed makes the code differ from the histories.
	ill, unwell, changed atomic.Bool
}

// order is the input of the engine work.
type order struct {
	// Do is the step of the run: "" for an activity alone, "wait" for two hours, "ask" a user, "lock" the instance,
	// "publish" Event.
	Do    string `json:"do,omitempty"`
	Event string `json:"event,omitempty"`
}

func (a *app) engines(p *handler.Platform) ([]engine.Definition, error) {
	a.platform = p
	keys, err := a.keys(p)
	return []engine.Definition{a.work(p), keys}, err
}

// work returns the engine whose messages name its steps.
func (a *app) work(p *handler.Platform) engine.Definition {
	do := orchestrator.NewActivity("do", func(context.Context, string) (string, error) {
		if a.ill.Load() {
			return "", errors.New("not now")
		}
		return "done", nil
	})
	other := orchestrator.NewActivity("other", func(context.Context, string) (string, error) { return "done", nil })
	locks := engine.NewLockSteps("work", p.Registry)
	run := func(ctx *orchestrator.Context, r engine.Request[order]) (string, error) {
		first := do
		if a.changed.Load() {
			first = other
		}
		if out, err := first.Call(ctx, "").Await(); err != nil {
			return out, err
		}
		return "done", follow(ctx, r, locks)
	}
	return engine.Definition{Name: "work", Queue: "work-queue", Orchestrator: engine.Orchestrate("work", run),
		Operations: []orchestrator.AnyActivity{do, other}, Activities: locks.Activities(),
		Schedules: []engine.Schedule{{Cron: "0 0 * * * *", Messages: func(context.Context, time.Time) ([]engine.Message, error) {
			if a.unwell.Load() {
				return nil, errors.New("the list of what is due cannot be read")
			}
			return []engine.Message{{}}, nil
		}}},
		Credentials: a.credentials}
}

// follow runs the step after the activity.
func follow(ctx *orchestrator.Context, r engine.Request[order], locks *engine.LockSteps) error {
	switch r.Input.Do {
	case "wait":
		return ctx.Sleep(2 * time.Hour)
	case "ask":
		_, err := orchestrator.AskPerson[bool](ctx, orchestrator.HumanTask{Name: "approve", Due: 10 * time.Minute}).Await()
		return err
	case "lock":
		return engine.Locked(ctx, locks, r.InstanceID, 10*time.Minute, func(ctx *orchestrator.Context) error {
			_, err := orchestrator.Event[bool](ctx, "go").Await()
			return err
		})
	case "publish":
		return ctx.Publish(orchestrator.Publication{TenantID: "contoso", Type: r.Input.Event, Payload: []byte(`{}`)})
	}
	return nil
}

// credentials returns the newest version of the certificate.
func (a *app) credentials(ctx context.Context) ([]engine.Credential, error) {
	versions, err := a.platform.Certificates.Versions(ctx, certificate)
	for _, v := range slices.Backward(versions) {
		return []engine.Credential{{Name: certificate, ExpiresAt: v.NotAfter}}, err
	}
	return nil, err
}

// keys returns the engine that rotates the keys of the instance i1, which a gateway acknowledges.
func (a *app) keys(p *handler.Platform) (engine.Definition, error) {
	var steps *hmac.Steps
	needed, err := consumers.New(consumers.Config{Engine: hmac.Engine, Tables: p.Tables, Outbox: p.Events, Targets: map[string]consumers.Target{"i1": {Names: []string{"gateway"}}},
		Knows: func(ctx context.Context, target, version string) (bool, error) {
			return steps.Knows(ctx, target, version)
		}})
	if err != nil {
		return engine.Definition{}, err
	}
	if steps, err = hmac.New(hmac.Config{Vault: p.Secrets, Tables: p.Tables, Publisher: publisher{p.Outbox}, Arrivals: needed}); err != nil {
		return engine.Definition{}, err
	}
	d := hmac.Definition(steps)
	d.Consumers = needed
	return d, nil
}

// publisher adds the events of the keys to the outbox.
type publisher struct{ writer *outbox.Writer }

// Publish implements hmac.Publisher.
func (p publisher) Publish(ctx context.Context, e hmac.Event) (string, error) {
	added, err := p.writer.Add(ctx, outbox.Message{TenantID: e.TenantID, EventType: e.Type, Payload: e.Payload, OrderKey: e.OrderKey, CorrelationID: e.CorrelationID, Key: p.key(e)})
	return added.ID, err
}

// ID implements hmac.Publisher.
func (p publisher) ID(e hmac.Event) string { return p.key(e).String() }

func (p publisher) key(e hmac.Event) uuid.UUID {
	return p.writer.Key(e.TenantID, e.Category, e.Entity, e.Kind, e.Version)
}

// receiver receives events, and answers as configured.
type receiver struct {
	status, retryAfter atomic.Int64
	// flaky makes it refuse each event once.
	flaky atomic.Bool
	seen  sync.Map
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if _, again := r.seen.LoadOrStore(req.Header.Get(outbox.HeaderIdempotencyKey), true); r.flaky.Load() && !again {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if s := r.retryAfter.Load(); s > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(s, 10))
	}
	w.WriteHeader(int(max(r.status.Load(), http.StatusOK)))
}
