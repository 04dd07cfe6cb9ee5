package marketplace_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/services/marketplace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	sub = "37f9dea2-4345-438f-b0bd-03d40d28c7e0"
	op  = "74dfb4db-c193-4891-827d-eb05fbdc64b0"
	app = "/subscriptions/s/resourceGroups/größe 1/providers/Microsoft.Solutions/applications/a"
)

// serve returns a market on a socket and a client of it.
func serve(t *testing.T) (*marketplacefake.Market, *marketplace.Client) {
	t.Helper()
	m := marketplacefake.New()
	server := m.Serve(t)
	c, err := marketplace.New(marketplace.Config{Endpoint: server.URL + "/api", Management: server.URL, Credential: m.Credential(),
		Options: azcore.ClientOptions{Transport: server.Client(), Retry: policy.RetryOptions{RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	return m, c
}

func TestClient(t *testing.T) {
	t.Parallel()
	m, c := serve(t)
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	m.Now = func() time.Time { return at }
	m.PutSubscription(marketplacefake.Subscription{ID: sub, PlanID: "silver", Quantity: 5, Status: "PendingFulfillmentStart", TenantID: "t"})
	m.PutOperation(marketplacefake.Operation{ID: op, SubscriptionID: sub, Action: "Reinstate", PlanID: "gold", Quantity: "7", Status: "InProgress"})
	m.PutApplication(app, "Succeeded")

	gotSub, err := c.Subscription(t.Context(), sub)
	wantSub := marketplace.Subscription{ID: sub, OfferID: "platform", PlanID: "silver", Quantity: "5", Status: "PendingFulfillmentStart", Beneficiary: marketplace.Party{TenantID: "t"}}
	if diff := cmp.Diff(wantSub, gotSub); diff != "" || err != nil {
		t.Errorf("subscription: %v (-want +got):\n%s", err, diff)
	}
	wantOp := marketplace.Operation{ID: op, SubscriptionID: sub, OfferID: "platform", PlanID: "gold", Quantity: "7", Action: "Reinstate", TimeStamp: at, Status: "InProgress"}
	gotOp, err := c.Operation(t.Context(), sub, op)
	if diff := cmp.Diff(wantOp, gotOp); diff != "" || err != nil {
		t.Errorf("operation: %v (-want +got):\n%s", err, diff)
	}
	pending, err := c.Pending(t.Context(), sub)
	if diff := cmp.Diff([]marketplace.Operation{wantOp}, pending); diff != "" || err != nil {
		t.Errorf("pending: %v (-want +got):\n%s", err, diff)
	}
	a, err := c.Application(t.Context(), app)
	if err != nil || a.Properties.ProvisioningState != "Succeeded" {
		t.Errorf("application: %+v, %v", a, err)
	}
	if err := c.Activate(t.Context(), sub, "silver", "5"); err != nil || m.SubscriptionStatus(sub) != "Subscribed" {
		t.Errorf("activate: %v, %s", err, m.SubscriptionStatus(sub))
	}
	m.PutSubscription(marketplacefake.Subscription{ID: sub, Status: "Suspended"})
	success := marketplace.Acknowledgement{PlanID: "gold", Quantity: "7", Status: marketplace.Success}
	if err := c.Acknowledge(t.Context(), sub, op, success); err != nil || m.OperationStatus(op) != "Succeeded" || m.SubscriptionStatus(sub) != "Subscribed" {
		t.Errorf("acknowledge: %v, %s", err, m.OperationStatus(op))
	}
	if err := c.Acknowledge(t.Context(), sub, op, success); err != nil {
		t.Errorf("acknowledge again: %v", err)
	}
	failure := marketplace.Acknowledgement{Status: marketplace.Failure}
	if err := c.Acknowledge(t.Context(), sub, op, failure); !errors.Is(err, marketplace.ErrConflict) || !strings.Contains(err.Error(), "concluded") {
		t.Errorf("acknowledge otherwise: %v", err)
	}
}

// A change of plan is accepted after ten seconds, and not before.
func TestAutoAccept(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]error{marketplacefake.AutoAccept - time.Millisecond: nil, marketplacefake.AutoAccept: marketplace.ErrConflict} {
		m, c := serve(t)
		now := time.Now()
		m.Now = func() time.Time { return now }
		m.PutSubscription(marketplacefake.Subscription{ID: sub, PlanID: "silver", Status: "Subscribed"})
		m.PutOperation(marketplacefake.Operation{ID: op, SubscriptionID: sub, Action: "ChangePlan", PlanID: "gold", Status: "InProgress", At: now.Add(-wait)})
		if err := c.Acknowledge(t.Context(), sub, op, marketplace.Acknowledgement{Status: marketplace.Failure}); !errors.Is(err, want) {
			t.Errorf("after %v: %v", wait, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{400: marketplace.ErrInvalid, 401: marketplace.ErrDenied, 403: marketplace.ErrDenied, 404: marketplace.ErrNotFound,
		409: marketplace.ErrConflict, 422: marketplace.ErrInvalid, 429: marketplace.ErrUnavailable, 500: marketplace.ErrUnavailable, 503: marketplace.ErrUnavailable, 0: marketplace.ErrUnavailable} {
		m, c := serve(t)
		m.PutSubscription(marketplacefake.Subscription{ID: sub})
		for range 4 { // the first try and its repetitions
			m.Inject(marketplacefake.Fault{Method: http.MethodGet, Status: status})
		}
		if _, err := c.Subscription(t.Context(), sub); !errors.Is(err, want) || !strings.Contains(err.Error(), sub) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// A request without an answer is sent again, whether or not it was applied.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{false, true} {
		m, c := serve(t)
		m.PutSubscription(marketplacefake.Subscription{ID: sub, Status: "Suspended"})
		m.PutOperation(marketplacefake.Operation{ID: op, SubscriptionID: sub, Action: "Reinstate", Status: "InProgress"})
		m.Inject(marketplacefake.Fault{Method: http.MethodPatch, Applied: applied})
		if err := c.Acknowledge(t.Context(), sub, op, marketplace.Acknowledgement{Status: marketplace.Success}); err != nil || m.OperationStatus(op) != "Succeeded" || len(m.Requests()) != 2 {
			t.Errorf("applied %t: %v, %s, %v", applied, err, m.OperationStatus(op), m.Requests())
		}
	}
}

// Ids from outside stay within their segment of the path.
func TestHostileIDs(t *testing.T) {
	t.Parallel()
	m, c := serve(t)
	m.PutSubscription(marketplacefake.Subscription{ID: sub})
	for _, id := range []string{"", ".", "..", sub + "/operations", sub + "?x=", "%2e%2e/" + sub, "#"} {
		if _, err := c.Subscription(t.Context(), id); err == nil {
			t.Errorf("%q was found", id)
		}
	}
	if _, err := c.Application(t.Context(), "/subscriptions/../x"); !errors.Is(err, marketplace.ErrInvalid) {
		t.Errorf("application with dots: %v", err)
	}
}

func TestQuantity(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ q, out string }{`5`: {"5", "5"}, `"5"`: {"5", "5"}, `null`: {"", "null"}, `""`: {"", "null"}, `"five"`: {"five", `"five"`}} {
		var q marketplace.Quantity
		err := json.Unmarshal([]byte(text), &q)
		out, outErr := json.Marshal(q)
		if err != nil || outErr != nil || string(q) != want.q || string(out) != want.out {
			t.Errorf("%s: %q, %v; %s, %v", text, q, err, out, outErr)
		}
	}
	var q marketplace.Quantity
	if err := json.Unmarshal([]byte(`{}`), &q); err == nil {
		t.Error("an object was read")
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []marketplace.Config{{}, {Endpoint: "http://x", Credential: marketplacefake.New().Credential()}, {Management: "https://u:p@x", Credential: marketplacefake.New().Credential()}} {
		if _, err := marketplace.New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// The sender repeats rejected requests, appends /resource for managed applications, and finally gives up.
func TestSender(t *testing.T) {
	t.Parallel()
	statuses := []int{500, 429, 200}
	var paths []string
	server := marketplacefake.Answering(t, func(r *http.Request) int {
		paths = append(paths, r.URL.String())
		return statuses[len(paths)-1]
	})
	s := marketplacefake.Sender{Client: server.Client(), Pause: func(ctx context.Context) error { return ctx.Err() }, Attempts: 3}
	got, err := s.Notify(t.Context(), server.URL+"/api/managed-app?sig=a%20b", map[string]any{"eventType": "PUT"})
	if diff := cmp.Diff(statuses, got); diff != "" || err != nil || paths[2] != "/api/managed-app/resource?sig=a%20b" {
		t.Errorf("%v, %v, %v", got, err, paths)
	}
	paths, statuses = nil, []int{400, 401, 500}
	if got, err := s.Webhook(t.Context(), server.URL, marketplacefake.Operation{}); !errors.Is(err, marketplacefake.ErrGaveUp) || len(got) != 3 {
		t.Errorf("%v, %v", got, err)
	}
}
