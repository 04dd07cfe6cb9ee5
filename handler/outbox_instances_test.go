package handler

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/outbound"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// An event goes to the address that the registry has at the time; what has none waits, and is no failure of the destination.
func TestEventsToInstances(t *testing.T) {
	t.Parallel()
	store := tables.NewMemory()
	reg := registry.New(store, "")
	testenv.Check(t, reg.CreateTable(t.Context()))
	var got [2]atomic.Int32
	var urls [2]string
	for n := range urls {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got[n].Add(1) }))
		t.Cleanup(server.Close)
		urls[n] = server.URL
	}
	clients, err := outbound.New(outbound.Config{Vault: secrets.NewDevelopment(store), Development: true,
		Identity: func() (azcore.TokenCredential, error) { return nil, errors.New("no identity") }})
	testenv.Check(t, err)
	to := newInstances("instances", settings.HTTPDestination{Allow: []string{"127.0.0.0/8"}, AllowPlaintext: true}, Platform{Registry: reg, Outbound: clients})
	t.Cleanup(func() { _ = to.Close() })
	deliver := func(payload string) error {
		return to.Deliver(t.Context(), outbox.Event{ID: "1", TenantID: "t", Type: "update.available", Key: uuid.New(), Payload: []byte(payload)})
	}
	move := func(address string) {
		_, err := reg.Update(t.Context(), "i1", "", func(i *registry.Instance) error {
			return i.SetField(registry.FieldEndpoints, registry.Endpoints{Events: address})
		})
		testenv.Check(t, err)
	}
	const about = `{"instanceId":"i1"}`
	if err := deliver(about); !errors.Is(err, outbox.ErrMisconfigured) || !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("an instance that is not registered: %v", err)
	}
	testenv.Done(t)(reg.Create(t.Context(), registry.Instance{InstanceID: "i1"}))
	if err := deliver(about); !errors.Is(err, outbox.ErrMisconfigured) {
		t.Errorf("an instance without an address: %v", err)
	}
	move("http://169.254.169.254/")
	if err := deliver(about); !errors.Is(err, outbox.ErrMisconfigured) || !errors.Is(err, outbox.ErrDestination) {
		t.Errorf("an address that may not be called: %v", err)
	}
	for _, n := range []int{0, 0, 1, 0} {
		move(urls[n])
		if err := deliver(about); err != nil {
			t.Error(err)
		}
	}
	if got[0].Load() != 3 || got[1].Load() != 1 {
		t.Errorf("%d and %d events", got[0].Load(), got[1].Load())
	}
	for _, payload := range []string{`{}`, `[]`} {
		if e, ok := errors.AsType[*outbox.DeliveryError](deliver(payload)); !ok || !e.Permanent {
			t.Errorf("%s: %v", payload, e)
		}
	}
}
