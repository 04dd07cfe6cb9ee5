package year

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/marketplace"
)

// customers buy instances in the marketplace. The first of the instances is the managed application of this test; the
// others only carry out their commands.
type customers struct {
	*outside
	random *rand.Rand
	buys   time.Time
	bought []string
	notify func(release.Notice, string)
}

// step lets customers buy, and instances process their messages.
func (c *customers) step(t testing.TB, publisher *site) {
	t.Helper()
	if now := time.Now(); !now.Before(c.buys) {
		c.buys = now.Add(time.Duration(c.random.ExpFloat64() * float64(20*day)))
		op := marketplacefake.Operation{ID: uuid.NewString(), SubscriptionID: uuid.NewString(), Action: "Subscribe", PlanID: "gold", Status: "InProgress", At: now}
		c.market.PutSubscription(marketplacefake.Subscription{ID: op.SubscriptionID, PlanID: op.PlanID, Status: "PendingFulfillmentStart", TenantID: tenant})
		c.market.PutOperation(op)
		publisher.Send(provisioning.Queue, fmt.Sprintf(`{"id":%q,"activityId":%[1]q,"subscriptionId":%q,"publisherId":"contoso","offerId":"platform","planId":"gold","action":"Subscribe","timeStamp":%q,"status":"InProgress"}`,
			op.ID, op.SubscriptionID, now.UTC().Format(time.RFC3339)))
		c.bought = append(c.bought, op.SubscriptionID)
	}
	for _, body := range take(t, publisher, "receiver-instances") {
		switch e := decode[cloudEvent[any]](t, body); e.Type {
		case provisioning.CommandBootstrap:
			command := decode[cloudEvent[provisioning.Command]](t, body).Data
			path := "/api/orchestrations/" + url.PathEscape(command.Orchestration) + "/events/" + url.PathEscape(command.Event)
			if status, answer := publisher.Do(http.MethodPost, path, `{"status":"Succeeded","version":"1.0"}`); status/100 != 2 && status != http.StatusConflict {
				t.Errorf("the answer of an instance: %d %s", status, answer)
			}
		case release.EventAvailable:
			c.notify(decode[cloudEvent[release.Notice]](t, body).Data, e.ID)
		}
	}
}

// take receives all messages of a receiver's queue.
func take(t testing.TB, s *site, queue string) (bodies [][]byte) {
	t.Helper()
	for {
		received, err := s.Queues.Receive(t.Context(), queue, queues.MaxReceive, time.Minute)
		if err != nil && !errors.Is(err, queues.ErrNotFound) {
			t.Fatal(err)
		}
		for _, m := range received {
			bodies = append(bodies, queues.Decode(m.Text))
			testenv.OK(t, s.Queues.Delete(t.Context(), queue, m.ID, m.PopReceipt))
		}
		if len(received) == 0 {
			return bodies
		}
	}
}

// provisioning returns the engine of provisioning, as cmd/handler makes it.
func (o *outside) provisioning(p *handler.Platform) (*provisioning.Steps, error) {
	options := o.market.Options()
	options.Transport = market{o}
	client, err := marketplace.New(marketplace.Config{Credential: o.market.Credential(), Options: options})
	if err != nil {
		return nil, err
	}
	return provisioning.New(provisioning.Config{Marketplace: client, Registry: instances{p.Registry}})
}

// market is the marketplace with its outages.
type market struct{ o *outside }

// Do implements policy.Transporter.
func (m market) Do(r *http.Request) (*http.Response, error) {
	if m.o.outages.down(authority) {
		return nil, errors.New("the marketplace does not answer")
	}
	return m.o.market.Transport().Do(r)
}

const provisioned = "provisioning"

// instances is the registry for the provisioning engine.
type instances struct{ documents *registry.Registry }

// Create implements provisioning.Registry.
func (r instances) Create(ctx context.Context, i provisioning.Instance) error {
	document := registry.Instance{InstanceID: i.ID, TenantID: i.TenantID}
	err := document.SetField(provisioned, i)
	if err == nil {
		_, err = r.documents.Create(ctx, document)
	}
	if errors.Is(err, registry.ErrExists) {
		return provisioning.ErrRegistered
	}
	return err
}

// Update implements provisioning.Registry.
func (r instances) Update(ctx context.Context, id string, change func(*provisioning.Instance) error) error {
	_, err := r.documents.Update(ctx, id, "", func(document *registry.Instance) error {
		i := provisioning.Instance{ID: document.InstanceID, TenantID: document.TenantID}
		if _, err := document.Field(provisioned, &i); err != nil {
			return err
		}
		if err := change(&i); err != nil {
			return err
		}
		return document.SetField(provisioned, i)
	})
	if errors.Is(err, registry.ErrNotFound) {
		return provisioning.ErrNotRegistered
	}
	return err
}

// check makes sure that every purchase was provisioned.
func (c *customers) check(t testing.TB, publisher *site) {
	t.Helper()
	documents := registry.New(publisher.Tables, "")
	for _, id := range c.bought {
		var i provisioning.Instance
		document, err := documents.Get(t.Context(), id)
		if err == nil {
			_, err = document.Field(provisioned, &i)
		}
		if err != nil || i.State != provisioning.StateActive || c.market.SubscriptionStatus(id) != "Subscribed" {
			t.Errorf("instance %s is %s, its subscription %s, %v", id, i.State, c.market.SubscriptionStatus(id), err)
		}
	}
}
