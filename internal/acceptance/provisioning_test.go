package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/intake"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

var provisions = at(provisioning.Engine, provisioning.Queue)

// order adds a purchased subscription to the marketplace, and the operation that announces it.
func (w *world) order(t *testing.T) marketplacefake.Operation {
	t.Helper()
	op := marketplacefake.Operation{ID: uuid.NewString(), SubscriptionID: uuid.NewString(), Action: "Subscribe", PlanID: "gold", Status: "InProgress", At: time.Now()}
	w.market.PutSubscription(marketplacefake.Subscription{ID: op.SubscriptionID, PlanID: op.PlanID, Status: "PendingFulfillmentStart", TenantID: "contoso"})
	w.market.PutOperation(op)
	return op
}

// sender returns the sender of the marketplace, or of managed applications. A rejected request is an error immediately.
func (w *world) sender(t *testing.T) marketplacefake.Sender {
	return marketplacefake.Sender{Pause: func(context.Context) error { return errors.New("it was not taken at once") }, Token: func() string {
		token := w.issuer.Token(t, w.issuer.Claims(ourApplication, intake.MarketplaceCaller))
		w.bearerTokens = append(w.bearerTokens, token)
		return token
	}}
}

// webhook notifies the platform of an operation.
func (w *world) webhook(t *testing.T, op marketplacefake.Operation) {
	t.Helper()
	if statuses, err := w.sender(t).Webhook(t.Context(), w.host.URL()+"/api/marketplace/webhook", op); err != nil || len(statuses) != 1 {
		t.Fatalf("webhook: %v %v", statuses, err)
	}
}

// notify notifies the platform of a new managed application.
func (w *world) notify(t *testing.T, application string, at time.Time) {
	t.Helper()
	address := w.host.URL() + strings.TrimSuffix("/api/managed-app/resource", "/resource") + "?sig=" + w.signature
	statuses, err := w.sender(t).Notify(t.Context(), address, map[string]any{"eventType": "PUT", "applicationId": application,
		"eventTime": at.UTC().Format(time.RFC3339Nano), "provisioningState": "Succeeded", "plan": map[string]string{"name": "gold"}})
	if err != nil || len(statuses) != 1 || statuses[0] != http.StatusOK {
		t.Fatalf("notification: %v %v", statuses, err)
	}
}

// made adds a managed application to the resource manager.
func (w *world) made(name string) (application string) {
	application = "/subscriptions/" + uuid.NewString() + "/resourceGroups/Customers/providers/Microsoft.Solutions/applications/" + name
	w.market.PutApplication(application, "Succeeded")
	return application
}

// bootstrap acts as the instance that carries the command out and reports it.
func (w *world) bootstrap(t *testing.T, correlationID string, b provisioning.Bootstrap) told {
	t.Helper()
	events := w.sink.told(t, provisioning.CommandBootstrap, correlationID)
	command := decode[provisioning.Command](t, events[0].Body)
	data := testenv.Must(json.Marshal(b))(t)
	body, err := json.Marshal(orchestrator.Signal{SignalID: uuid.NewString(), InstanceID: command.Orchestration, RuntimeProvider: "roundhouse",
		Type: orchestrator.ExternalSignal, OccurredAtUtc: time.Now().UTC(), Payload: orchestrator.Payload{Event: command.Event, Data: data}})
	if err != nil {
		t.Fatal(err)
	}
	w.send(t, signalQueue, string(body))
	return events[0]
}

// provisioned returns the history of a run that provisioned an instance.
func provisioned(instance string) []string {
	return []string{"webhook-received of " + instance + " Succeeded", "instance-registered of " + instance + " Succeeded",
		"bootstrap-complete of " + instance + " Succeeded Succeeded"}
}

// checkState checks the state of an instance in the registry.
func (w *world) checkState(t *testing.T, instance, tenant string, want provisioning.State) {
	t.Helper()
	document := testenv.Must(registry.New(w.tables, "").Get(t.Context(), instance))(t)
	var i provisioning.Instance
	if _, err := document.Field("provisioning", &i); err != nil || i.State != want || document.TenantID != tenant || document.Lock.JobID != "" {
		t.Errorf("instance %+v of %s, lock %+v, %v; want it %s", i, document.TenantID, document.Lock, err, want)
	}
}

// testWebhook: a customer buys. The marketplace sends the webhook twice concurrently, and again after the end.
func (w *world) testWebhook(t *testing.T) {
	op := w.order(t)
	id := engine.DeriveCorrelationID("marketplace-operation", op.ID)
	w.webhook(t, op)
	w.webhook(t, op)
	command := w.bootstrap(t, id, provisioning.Bootstrap{Status: "Succeeded", Version: "2.0"})
	w.ran(t, provisions, id, provisioned(op.SubscriptionID)...)
	before := len(w.market.Requests())
	w.webhook(t, op)
	w.ran(t, provisions, id, provisioned(op.SubscriptionID)...)
	w.allWell(t, id, 4) // of three messages: the first has two

	w.checkState(t, op.SubscriptionID, "contoso", provisioning.StateActive)
	if o, s := w.market.OperationStatus(op.ID), w.market.SubscriptionStatus(op.SubscriptionID); o != "Succeeded" || s != "Subscribed" {
		t.Errorf("in the marketplace the operation is %s, and the subscription %s", o, s)
	}
	path := "/api/saas/subscriptions/" + op.SubscriptionID
	var changes []string
	for _, r := range w.market.Requests() {
		if strings.Contains(r, path) && !strings.HasPrefix(r, "GET ") {
			changes = append(changes, r)
		}
	}
	if diff := cmp.Diff([]string{"POST " + path + "/activate", "PATCH " + path + "/operations/" + op.ID}, changes); diff != "" || len(w.market.Requests()) != before {
		t.Errorf("changes in the marketplace (-want +got):\n%s%d requests after the end", diff, len(w.market.Requests())-before)
	}
	if events := w.sink.told(t, provisioning.CommandBootstrap, id); len(events) != 1 || command.Tenant != "contoso" {
		t.Errorf("%d commands, for %s", len(events), command.Tenant)
	}
}

// testWebhookDead: a webhook contradicts the marketplace's operation.
func (w *world) testWebhookDead(t *testing.T) {
	op := w.order(t)
	id := engine.DeriveCorrelationID("marketplace-operation", op.ID)
	forged := op
	forged.Action = "Unsubscribe"
	w.webhook(t, forged)
	d := w.buried(t, grave{entrance: provisions, correlationID: id, reason: provisioning.ErrForged.Error(), count: 1})
	message := decode[engine.Message](t, []byte(d["originalMessage"].(string)))
	if message.InstanceID != op.SubscriptionID || !bytes.Contains(message.Input, []byte(`"action":"Unsubscribe"`)) || !bytes.Contains(message.Input, []byte(op.ID)) {
		t.Errorf("original message %s", d["originalMessage"])
	}
	w.checkHistory(t, provisions, id, w.rests(t, provisions, id), []string{"webhook-received of " + op.SubscriptionID + " Failed Failed"})
	if _, err := registry.New(w.tables, "").Get(t.Context(), op.SubscriptionID); !errors.Is(err, registry.ErrNotFound) || w.market.OperationStatus(op.ID) != "InProgress" {
		t.Errorf("the instance: %v; the operation is %s", err, w.market.OperationStatus(op.ID))
	}
	status, _ := w.ask(t, http.MethodPost, "/api/marketplace/webhook", http.Header{"Authorization": {"Bearer nobody"}}, []byte(`{}`))
	if status != http.StatusUnauthorized {
		t.Errorf("a sender without a token is answered with %d", status)
	}
}

// testNotification: a managed application was created.
func (w *world) testNotification(t *testing.T) {
	application, when := w.made("One"), time.Now()
	instance := strings.ToLower(application)
	w.notify(t, application, when)
	id := w.correlation(t, instance)
	w.notify(t, application, when)
	w.bootstrap(t, id, provisioning.Bootstrap{Status: "Succeeded"})
	w.ran(t, provisions, id, provisioned(instance)...)
	w.notify(t, application, when)
	w.ran(t, provisions, id, provisioned(instance)...)
	w.allWell(t, id, 4) // of three messages: the first has two
	w.checkState(t, instance, engine.PublisherInstance, provisioning.StateActive)
	if events := w.sink.told(t, provisioning.CommandBootstrap, id); len(events) != 1 {
		t.Errorf("%d commands", len(events))
	}
}

// testNotificationDead: the instance of a managed application fails to start.
func (w *world) testNotificationDead(t *testing.T) {
	application := w.made("Two")
	instance := strings.ToLower(application)
	w.notify(t, application, time.Now())
	id := w.correlation(t, instance)
	w.bootstrap(t, id, provisioning.Bootstrap{Status: "Failed", Error: "there is no quota left"})
	d := w.buried(t, grave{entrance: provisions, correlationID: id, reason: "bootstrap failed: instance " + instance + ": there is no quota left", count: 1})
	if message := decode[engine.Message](t, []byte(d["originalMessage"].(string))); message.InstanceID != instance {
		t.Errorf("original message %s", d["originalMessage"])
	}
	want := provisioned(instance)
	want[2] = "bootstrap-complete of " + instance + " Failed Failed"
	w.checkHistory(t, provisions, id, w.rests(t, provisions, id), want)
	w.checkState(t, instance, engine.PublisherInstance, provisioning.StateFailed)
}

// correlation finds the correlation id of the command to an instance.
func (w *world) correlation(t *testing.T, instance string) (id string) {
	t.Helper()
	testenv.Until(t, "the command to "+instance, func() bool {
		for _, e := range w.sink.all() {
			if e.Type == provisioning.CommandBootstrap && decode[provisioning.Command](t, e.Body).InstanceID == instance {
				id = e.CorrelationID
			}
		}
		return id != ""
	})
	return id
}
