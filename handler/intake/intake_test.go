package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/handler/intake"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	tenant            = "2fea5f31-2ddc-4d6f-97f4-7a51a1c5a1bb"
	audience          = "a4d0f0a6-5d5c-4b54-9bd8-3f1f2f0c6b8e"
	webhookPath       = "/api/marketplace/webhook"
	notificationsPath = "/api/managed-app/resource"
	alertsPath        = "/api/alerts"
	// orders is an engine without an adapter, and its queue.
	orders = "orders"

	signature    = "a-signature-of-24-bytes!"
	alertsKey    = "a-key-of-the-alerts-intake"
	subscription = "37f9dea2-4345-438f-b0bd-03d40d28c7e0"
	operation    = "74dfb4db-c193-4891-827d-eb05fbdc64b0"
	application  = "/subscriptions/1c2f6d3e-9e3f-4a44-8a2e-6f1d1d4a6f11/resourceGroups/rg/providers/Microsoft.Solutions/applications/app"
)

// door is a server with all intakes, and their storage.
type door struct {
	issuer *marketplacefake.Issuer
	server *httptest.Server
	queues *queues.Memory
	blobs  *blobs.Memory
	log    *strings.Builder
	later  atomic.Int64 // how far the clock is ahead
}

func newDoor(t *testing.T, intercept faults.Interceptor) *door {
	t.Helper()
	d := &door{issuer: marketplacefake.NewIssuer(t, tenant), queues: queues.NewMemory(), blobs: blobs.NewMemory(), log: &strings.Builder{}}
	testenv.OK(t, errors.Join(d.queues.CreateQueue(t.Context(), provisioning.Queue), d.queues.CreateQueue(t.Context(), alerts.Queue), d.queues.CreateQueue(t.Context(), orders),
		d.blobs.CreateContainer(t.Context(), "engine-messages")))
	entra := func(caller string) *intake.Entra {
		transport := &http.Transport{DisableKeepAlives: true}
		e, err := intake.NewEntra(intake.EntraConfig{Tenant: tenant, Audiences: []string{audience}, Callers: []string{caller}, Authority: d.issuer.Authority(),
			Client: &http.Client{Transport: transport}, Now: func() time.Time { return time.Now().Add(time.Duration(d.later.Load())) }})
		testenv.OK(t, err)
		return e
	}
	e := echo.New()
	err := intake.Register(e, intake.Config{Queues: faults.Queues(d.queues, intercept), Claims: engine.NewClaims(faults.Blobs(d.blobs, intercept), ""),
		Log: slog.New(slog.NewTextHandler(d.log, nil)), Engines: []engine.Definition{
			{Name: provisioning.Engine, Queue: provisioning.Queue, Adapt: provisioning.Adapt, Intakes: []engine.Intake{
				{Route: "marketplace/webhook", Status: http.StatusOK, Authorize: intake.KeyOrToken("", entra(intake.MarketplaceCaller)),
					Adapt: provisioning.AdaptWebhook, Declines: func(body []byte) bool { return provisioning.Declines(body, []string{"silver"}) }},
				{Route: "managed-app/resource", Status: http.StatusOK, Authorize: intake.Signature("sig", signature), Adapt: provisioning.AdaptNotification},
			}},
			{Name: alerts.Engine, Queue: alerts.Queue, Adapt: alerts.Adapt, Intakes: []engine.Intake{
				{Route: "alerts", Authorize: intake.KeyOrToken(alertsKey, entra(intake.AlertsCaller))},
			}},
			{Name: orders, Queue: orders, Intakes: []engine.Intake{{Route: "orders"}, {Route: "closed-orders", Closed: true}}},
		}})
	testenv.OK(t, err)
	// Other APIs on the same server, with wider routes.
	store := tables.NewMemory()
	testenv.OK(t, errors.Join(trigger.Mount(e, trigger.Config{}),
		api.Register(e, api.Config{History: engine.NewHistory(store, ""), DeadLetters: engine.NewDeadLetters(store, ""), Engines: []string{"alerts"},
			Door: access.Door{Name: "api", Audit: &audit.Log{Tables: store}}})))
	d.server = httptest.NewServer(e)
	t.Cleanup(d.server.Close)
	return d
}

func through(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	return next(ctx)
}

// request is one request and its answer.
type request struct {
	method, path, body string
	header             map[string]string
}

func (d *door) send(t *testing.T, r request) (int, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), r.method, d.server.URL+r.path, strings.NewReader(r.body))
	testenv.OK(t, err)
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	resp, err := d.server.Client().Do(req)
	testenv.OK(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !json.Valid(body) {
		t.Errorf("%s %s: the answer is no JSON: %s, %v", r.method, r.path, body, err)
	}
	return resp.StatusCode, resp.Header
}

// messages returns the messages of a queue.
func (d *door) messages(t *testing.T, queue string) []engine.Message {
	t.Helper()
	received, err := d.queues.Receive(t.Context(), queue, queues.MaxReceive, time.Minute)
	testenv.OK(t, err)
	var all []engine.Message
	for _, r := range received {
		var m engine.Message
		testenv.OK(t, json.Unmarshal(queues.Decode(r.Text), &m))
		all = append(all, m)
	}
	return all
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

func (d *door) good(t *testing.T, caller string) map[string]string {
	t.Helper()
	return bearer(d.issuer.Token(t, d.issuer.Claims(audience, caller)))
}

var webhook = fmt.Sprintf(`{"id":%q,"subscriptionId":%q,"action":"Renew","status":"Succeeded","timeStamp":"2026-11-21T10:00:00Z"}`, operation, subscription)

func alert(extra string) string {
	return `{"schemaId":"azureMonitorCommonAlertSchema","data":{"essentials":{"alertId":"/a/1","monitorCondition":"Fired"},"alertContext":{"x":"` + extra + `"}}}`
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	d := newDoor(t, through)
	s := marketplacefake.Sender{Client: d.server.Client(), Token: func() string { return d.issuer.Token(t, d.issuer.Claims(audience, intake.MarketplaceCaller)) }}
	for range 2 {
		statuses, err := s.Webhook(t.Context(), d.server.URL+webhookPath, marketplacefake.Operation{ID: operation, SubscriptionID: subscription, Action: "ChangePlan", Status: "InProgress", Quantity: 7})
		if err != nil || len(statuses) != 1 || statuses[0] != http.StatusOK {
			t.Fatalf("%v, %v", statuses, err)
		}
	}
	got := d.messages(t, provisioning.Queue)
	if len(got) != 2 || got[0].CorrelationID != got[1].CorrelationID || got[0].InstanceID != subscription || got[0].Engine != provisioning.Engine {
		t.Errorf("%+v", got)
	}
	if n, err := provisioning.ParseNotice(got[0].Input); err != nil || n.OperationID != operation {
		t.Errorf("%+v, %v", n, err)
	}
}

// The marketplace waits ten seconds for an answer to a change of plan: a refusal is one, and is recorded as well.
func TestDeclinedPlan(t *testing.T) {
	t.Parallel()
	d := newDoor(t, through)
	body := strings.Replace(strings.Replace(webhook, "Renew", "ChangePlan", 1), "{", `{"planId":"gold",`, 1)
	if status, header := d.send(t, request{"POST", webhookPath, body, d.good(t, intake.MarketplaceCaller)}); status != 400 || header.Get("x-ms-error-code") != "Declined" {
		t.Errorf("%d, %v", status, header)
	}
	if got := d.messages(t, provisioning.Queue); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestNotification(t *testing.T) {
	t.Parallel()
	d := newDoor(t, through)
	s := marketplacefake.Sender{Client: d.server.Client()}
	document := map[string]any{"eventType": "PUT", "applicationId": application, "eventTime": "2026-11-21T10:00:00Z", "provisioningState": "Succeeded"}
	statuses, err := s.Notify(t.Context(), d.server.URL+"/API/Managed-App?sig="+signature, document)
	if err != nil || len(statuses) != 1 || statuses[0] != http.StatusOK {
		t.Fatalf("%v, %v", statuses, err)
	}
	if got := d.messages(t, provisioning.Queue); len(got) != 1 || got[0].InstanceID != strings.ToLower(application) {
		t.Errorf("%+v", got)
	}
}

func TestAlert(t *testing.T) {
	t.Parallel()
	d := newDoor(t, through)
	large := alert(strings.Repeat("b", 250<<10))
	for _, r := range []request{
		{"POST", "/api/alerts", alert(""), map[string]string{"x-functions-key": alertsKey}},
		{"POST", "/api/Alerts/?code=" + alertsKey, large, nil},
		{"POST", "/api/alerts", alert(""), d.good(t, intake.AlertsCaller)},
	} {
		if status, header := d.send(t, r); status != http.StatusAccepted || len(header.Get("x-correlation-id")) != 36 {
			t.Errorf("%s: %d", r.path, status)
		}
	}
	got := d.messages(t, alerts.Queue)
	if len(got) != 3 || got[0].CorrelationID != got[1].CorrelationID || got[1].Blob == "" || got[0].Blob != "" {
		t.Fatalf("%d messages", len(got))
	}
	if content, err := d.blobs.Get(t.Context(), "engine-messages", got[1].Blob); err != nil || string(content) != large {
		t.Errorf("the blob has %d bytes, %v", len(content), err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	d := newDoor(t, through)
	good := d.good(t, intake.MarketplaceCaller)
	const sig = "/api/managed-app/resource?sig="
	tests := map[string]struct {
		request
		status int
	}{
		"another method":          {request{"GET", webhookPath, "", good}, 405},
		"no token":                {request{"POST", webhookPath, webhook, nil}, 401},
		"another scheme":          {request{"POST", webhookPath, webhook, map[string]string{"Authorization": "Basic YTpi"}}, 401},
		"no webhook":              {request{"POST", webhookPath, `{"hello":"world"}`, good}, 400},
		"no JSON":                 {request{"POST", webhookPath, `{`, good}, 400},
		"unknown action":          {request{"POST", webhookPath, strings.Replace(webhook, "Renew", "Transfer", 1), good}, 400},
		"compressed":              {request{"POST", webhookPath, webhook, map[string]string{"Authorization": good["Authorization"], "Content-Encoding": "gzip"}}, 415},
		"too large":               {request{"POST", webhookPath, strings.Repeat(" ", 600<<10), good}, 413},
		"no signature":            {request{"POST", "/api/managed-app/resource", "{}", nil}, 401},
		"another signature":       {request{"POST", sig + signature + "x", "{}", nil}, 401},
		"signature, no body":      {request{"POST", sig + signature, "", nil}, 400},
		"webhook as notification": {request{"POST", sig + signature, webhook, nil}, 400},
		"notification as webhook": {request{"POST", webhookPath, fmt.Sprintf(`{"eventType":"PUT","provisioningState":"Succeeded","eventTime":"2026-11-21T10:00:00Z","applicationId":%q}`, application), good}, 400},
		"no key":                  {request{"POST", "/api/alerts", alert(""), nil}, 401},
		"another key":             {request{"POST", "/api/alerts", alert(""), map[string]string{"x-functions-key": "x"}}, 401},
		"another's token":         {request{"POST", "/api/alerts", alert(""), good}, 401},
		"another key and a token": {request{"POST", "/api/alerts?code=x", alert(""), d.good(t, intake.AlertsCaller)}, 401},
	}
	for name, tt := range tests {
		if status, header := d.send(t, tt.request); status != tt.status || header.Get("x-ms-error-code") == "" {
			t.Errorf("%s: %d", name, status)
		}
	}
	for _, queue := range []string{provisioning.Queue, alerts.Queue} {
		if n, err := d.queues.Length(t.Context(), queue); n != 0 || err != nil {
			t.Errorf("%d messages in %s, %v", n, queue, err)
		}
	}
	d.server.Close()
	for _, secret := range []string{signature, alertsKey, "hello", strings.TrimPrefix(good["Authorization"], "Bearer ")} {
		if strings.Contains(d.log.String(), secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}

// The sender has to retry a message that could not be stored.
func TestStorageFails(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{"Send", "Put"} {
		d := newDoor(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			if c.Operation == broken {
				return queues.ErrThrottled
			}
			return next(ctx)
		})
		r := request{"POST", "/api/alerts?code=" + alertsKey, alert(strings.Repeat("b", 100<<10)), nil}
		if status, header := d.send(t, r); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
			t.Errorf("%s: %d", broken, status)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	err := intake.Register(echo.New(), intake.Config{Timeout: time.Minute})
	for _, part := range []string{"queues", "timeout"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}

// An engine without an adapter accepts the envelope, but no blob and nothing for another engine.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	d := newDoor(t, through)
	for body, want := range map[string]int{
		`{"correlationId":"c1","input":{"n":1}}`: 202,
		`{"instanceId":"i"}`:                     202,
		`{"engine":"orders"}`:                    202,
		`{"engine":"hmac"}`:                      400,
		`{"blob":"hmac/c1/secret"}`:              400,
		`{"correlationId":"a\u0000b"}`:           400,
		`[]`:                                     400,
	} {
		if status, header := d.send(t, request{"POST", "/api/orders", body, nil}); status != want || header.Get("x-correlation-id") == "" {
			t.Errorf("%s: %d, want %d", body, status, want)
		}
	}
	if got := d.messages(t, orders); len(got) != 3 {
		t.Errorf("%d messages", len(got))
	}
	if status, _ := d.send(t, request{"POST", "/api/closed-orders", `{}`, nil}); status != 404 {
		t.Errorf("a closed intake answers %d", status)
	}
}

// A store that does not answer delays the sender no longer than the timeout: the sender is asked to retry before it
// times out itself.
func TestSlowStorage(t *testing.T) {
	t.Parallel()
	slow := func(ctx context.Context, _ faults.Call, _ func(context.Context) error) error {
		<-ctx.Done()
		return ctx.Err()
	}
	e := echo.New()
	err := intake.Register(e, intake.Config{Queues: faults.Queues(queues.NewMemory(), slow), Claims: engine.NewClaims(blobs.NewMemory(), ""), Timeout: time.Millisecond,
		Engines: []engine.Definition{{Name: provisioning.Engine, Queue: provisioning.Queue, Adapt: provisioning.Adapt,
			Intakes: []engine.Intake{{Route: "managed-app/resource", Authorize: intake.Signature("sig", signature)}}}}})
	testenv.OK(t, err)
	answer := httptest.NewRecorder()
	e.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, notificationsPath+"?sig="+signature, strings.NewReader(webhook)))
	testenv.Equal(t, "status", http.StatusServiceUnavailable, answer.Code)
}

// deepen adds so many levels to a body, by a member that is not read.
func deepen(body string, levels int) string {
	return strings.TrimSuffix(body, "}") + `,"more":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + "}"
}

// An alert is stored in a message, which adds a level; a webhook's unused members are dropped.
func TestDeepBodies(t *testing.T) {
	t.Parallel()
	d := newDoor(t, through)
	const sig = "/api/managed-app/resource?sig=" + signature
	notification := `{"eventType":"PUT","applicationId":"` + application + `","eventTime":"2026-11-21T10:00:00Z","provisioningState":"Succeeded"}`
	for name, tt := range map[string]struct {
		request
		deepest int
		queue   string
	}{
		"alert":        {request{"POST", "/api/alerts?code=" + alertsKey, alert(""), nil}, payload.MaxDepth - 1, alerts.Queue},
		"webhook":      {request{"POST", webhookPath, webhook, d.good(t, intake.MarketplaceCaller)}, payload.MaxDepth, provisioning.Queue},
		"notification": {request{"POST", sig, notification, nil}, payload.MaxDepth, provisioning.Queue},
	} {
		for levels, taken := range map[int]bool{tt.deepest: true, tt.deepest + 1: false, 9_998: false} {
			r := tt.request
			r.body = deepen(tt.body, levels)
			status, header := d.send(t, r)
			if taken && status >= 300 || !taken && (status != http.StatusBadRequest || header.Get("x-ms-error-code") != "BodyTooDeep") {
				t.Errorf("%s, %d levels: %d %s", name, levels, status, header.Get("x-ms-error-code"))
			}
			want := 0
			if taken {
				want = 1
			}
			if got := d.messages(t, tt.queue); len(got) != want {
				t.Errorf("%s, %d levels: %d messages", name, levels, len(got))
			}
		}
	}
}
