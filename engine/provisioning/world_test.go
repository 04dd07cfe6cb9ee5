package provisioning_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
	"github.com/vibedata/roundhouse/services/marketplace"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	subscription = "37f9dea2-4345-438f-b0bd-03d40d28c7e0"
	operation    = "74dfb4db-c193-4891-827d-eb05fbdc64b0"
	tenant       = "2fea5f31-2ddc-4d6f-97f4-7a51a1c5a1bb"
	application  = "/subscriptions/1c2f6d3e-9e3f-4a44-8a2e-6f1d1d4a6f11/resourcegroups/größe_1/providers/microsoft.solutions/applications/app.1"
)

// began is the time of the marketplace, and the start of runs.
var began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// world is the marketplace and a registry.
type world struct {
	market   *marketplacefake.Market
	registry registry
	plans    []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store := tables.NewMemory()
	if err := store.CreateTable(t.Context(), "instances"); err != nil {
		t.Fatal(err)
	}
	market := marketplacefake.New()
	market.Now = func() time.Time { return began }
	return &world{market: market, registry: registry{tables: store}}
}

// steps returns a process over this world.
func (w *world) steps(t *testing.T) *provisioning.Steps {
	t.Helper()
	client, err := marketplace.New(marketplace.Config{Endpoint: "https://market.test/api", Management: "https://arm.test",
		Credential: w.market.Credential(), Options: w.market.Options()})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := provisioning.New(provisioning.Config{Marketplace: client, Registry: w.registry, Plans: w.plans})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// sells adds a subscription and an operation on it to the marketplace.
func (w *world) sells(status, action, operationStatus string) {
	w.market.PutSubscription(marketplacefake.Subscription{ID: subscription, PlanID: "silver", Quantity: 5, Status: status, TenantID: tenant})
	w.market.PutOperation(marketplacefake.Operation{ID: operation, SubscriptionID: subscription, Action: action, PlanID: "gold", Quantity: "7", Status: operationStatus})
}

// has adds an instance to the registry.
func (w *world) has(t *testing.T, id string, state provisioning.State, at time.Time) {
	t.Helper()
	i := provisioning.Instance{ID: id, TenantID: tenant, PlanID: "silver", State: state, StateAtUtc: at, PlanAtUtc: at, JobID: "before"}
	if err := w.registry.Create(context.Background(), i); err != nil {
		t.Fatal(err)
	}
}

// scenario returns a run for a body in its sender's form.
func (w *world) scenario(t *testing.T, body string, steps ...orchestratortest.Step) orchestratortest.Scenario[engine.Message, provisioning.Result] {
	t.Helper()
	d := provisioning.Definition(w.steps(t))
	m, ok, err := d.Adapt([]byte(body))
	if err != nil || !ok {
		t.Fatalf("adapt: %t, %v", ok, err)
	}
	return orchestratortest.Scenario[engine.Message, provisioning.Result]{Orchestrator: d.Orchestrator, Input: m, Steps: steps,
		Activities: append(append([]orchestrator.AnyActivity{}, d.Operations...), d.Activities...)}
}

func webhook(action string) string {
	return fmt.Sprintf(`{"id":%q,"activityId":%q,"operationRequestSource":"Azure","subscriptionId":%q,"timeStamp":"1999-12-31T23:59:50.1234567Z",
		"action":%q,"status":"InProgress","quantity":null,"purchaseToken":null,"subscription":{"beneficiary":{"emailId":"a@b.test"}}}`,
		operation, operation, subscription, action)
}

func notification(event, state string) string {
	return fmt.Sprintf(`{"eventType":%q,"applicationId":%q,"eventTime":"2000-01-01T00:00:00.5Z","provisioningState":%q,"plan":{"name":"p"}}`,
		event, application[1:], state)
}

var up = orchestratortest.Step{Event: "Bootstrap-Complete", Data: provisioning.Bootstrap{Status: "Succeeded", Version: "1.2.3"}}

// registry is a registry over a table, with the table's compare-and-set.
type registry struct {
	tables tables.Store
	// locked, if it is set, returns the lock of an instance.
	locked func() *provisioning.LockedError
}

func key(id string) tables.Key { return tables.Key{Partition: "p", Row: tables.EscapeKey(id)} }

func (r registry) entity(i provisioning.Instance, etag string) tables.Entity {
	document, err := json.Marshal(i)
	if err != nil {
		panic(err)
	}
	return tables.Entity{Key: key(i.ID), ETag: etag, Properties: map[string]any{"Document": string(document)}}
}

// Create implements provisioning.Registry.
func (r registry) Create(ctx context.Context, i provisioning.Instance) error {
	err := r.tables.Apply(ctx, "instances", tables.Insert(r.entity(i, "")))
	if errors.Is(err, tables.ErrExists) {
		return provisioning.ErrRegistered
	}
	return err
}

// Update implements provisioning.Registry.
func (r registry) Update(ctx context.Context, id string, change func(*provisioning.Instance) error) error {
	for {
		if r.locked != nil {
			if l := r.locked(); l != nil {
				return l
			}
		}
		i, etag, err := r.get(ctx, id)
		if err != nil {
			return err
		}
		if err := change(&i); err != nil {
			return err
		}
		if err := r.tables.Apply(ctx, "instances", tables.Replace(r.entity(i, etag))); !errors.Is(err, tables.ErrPrecondition) {
			return err
		}
	}
}

func (r registry) get(ctx context.Context, id string) (i provisioning.Instance, etag string, err error) {
	e, err := r.tables.Get(ctx, "instances", key(id))
	if errors.Is(err, tables.ErrNotFound) {
		return i, "", provisioning.ErrNotRegistered
	}
	if err != nil {
		return i, "", err
	}
	return i, e.ETag, json.Unmarshal([]byte(e.String("Document")), &i)
}

// instance returns the registry's instance, the zero value for none.
func (w *world) instance(t *testing.T, id string) provisioning.Instance {
	t.Helper()
	i, _, err := w.registry.get(context.Background(), id)
	if err != nil && !errors.Is(err, provisioning.ErrNotRegistered) {
		t.Fatal(err)
	}
	return i
}
