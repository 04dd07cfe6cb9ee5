package receiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/outbox/receiver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errVault = errors.New("the vault is away")

func key(id string) outbox.SigningKey {
	return outbox.SigningKey{ID: id, Secret: []byte(strings.Repeat(id, outbox.MinSecret))}
}

// keys returns the receiver's keys: one for each tenant.
func keys(_ context.Context, e receiver.Event) ([]outbox.SigningKey, error) {
	if e.TenantID == "away" {
		return nil, errVault
	}
	return []outbox.SigningKey{key(e.TenantID)}, nil
}

func event(tenant string) outbox.Event {
	return outbox.Event{ID: "row-1", TenantID: tenant, Type: "order.shipped", Key: uuid.MustParse("3e1c0f3a-8d5b-8f00-9a11-2b7c5d9e0f42"),
		Payload: json.RawMessage(`{"order":12345678901234567890,"html":"<a&b>"}`), CreatedAt: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC), CorrelationID: "c-1"}
}

// sent returns the request of an outbox, captured from the wire.
func sent(t *testing.T, structured bool, signer string, e outbox.Event, at time.Time) *http.Request {
	t.Helper()
	var out *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		out = httptest.NewRequest(http.MethodPost, "/events", bytes.NewReader(body))
		out.Header = r.Header
	}))
	defer server.Close()
	sender, err := outbox.NewHTTP(outbox.HTTPConfig{URL: server.URL, Source: "/test/{tenant}", Structured: structured, AllowPlaintext: true, Allow: []string{"127.0.0.0/8"},
		Keys: func(context.Context) ([]outbox.SigningKey, error) { return []outbox.SigningKey{key(signer)}, nil }, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	testenv.OK(t, errors.Join(sender.Deliver(t.Context(), e), sender.Close()))
	return out
}

// An outbox's request is received unchanged; a changed or late one is refused.
func TestReceive(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	change := func(from, to string) func(*testing.T, *http.Request) {
		return func(t *testing.T, r *http.Request) {
			t.Helper()
			body, err := io.ReadAll(r.Body)
			changed := strings.Replace(string(body), from, to, 1)
			if err != nil || changed == string(body) {
				t.Fatalf("nothing to change in %s, %v", body, err)
			}
			r.Body = io.NopCloser(strings.NewReader(changed))
		}
	}
	header := func(name, value string) func(*testing.T, *http.Request) {
		return func(_ *testing.T, r *http.Request) { r.Header.Set(name, value) }
	}
	whole := func(text string) func(*testing.T, *http.Request) {
		return func(_ *testing.T, r *http.Request) { r.Body = io.NopCloser(strings.NewReader(text)) }
	}
	for name, c := range map[string]struct {
		binary         bool
		tenant, signer string
		at             time.Duration
		change         func(*testing.T, *http.Request)
		want           error
	}{
		"as it was sent":        {},
		"a little late":         {at: -4 * time.Minute},
		"too late":              {at: -6 * time.Minute, want: outbox.ErrSignature},
		"too early":             {at: 6 * time.Minute, want: outbox.ErrSignature},
		"another's key":         {signer: "u", want: outbox.ErrSignature},
		"for another's tenant":  {signer: "t", tenant: "u", want: outbox.ErrSignature},
		"the type changed":      {change: change("order.shipped", "order.payed"), want: outbox.ErrSignature},
		"the data changed":      {change: change(`<a`, `<b`), want: outbox.ErrSignature},
		"a blank more":          {change: change(`{`, `{ `), want: outbox.ErrSignature},
		"another id":            {change: header(outbox.HeaderWebhookID, "x"), want: outbox.ErrSignature},
		"another time":          {change: header(outbox.HeaderTimestamp, "1"), want: outbox.ErrSignature},
		"not signed":            {change: func(_ *testing.T, r *http.Request) { r.Header.Del(outbox.HeaderSignature) }, want: outbox.ErrSignature},
		"in binary mode":        {binary: true, want: receiver.ErrEvent},
		"as another type":       {change: header("Content-Type", "application/json"), want: receiver.ErrEvent},
		"no JSON":               {change: whole("{"), want: receiver.ErrEvent},
		"no event":              {change: whole(`{"specversion":"1.0","id":"1"}`), want: receiver.ErrEvent},
		"data elsewhere":        {change: change(`"specversion"`, `"dataref":"/x","specversion"`), want: receiver.ErrEvent},
		"too large":             {change: whole(strings.Repeat(" ", receiver.MaxBody+1)), want: receiver.ErrTooLarge},
		"keys that are unknown": {tenant: "away", want: errVault},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tenant, signer := c.tenant, c.signer
			if tenant == "" {
				tenant = "t"
			}
			if signer == "" {
				signer = "t"
			}
			r := sent(t, !c.binary, signer, event(tenant), now.Add(c.at))
			if c.change != nil {
				c.change(t, r)
			}
			got, err := receiver.Receiver{Keys: keys, Now: func() time.Time { return now }}.Receive(r)
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			want := receiver.Event{}
			if c.want == nil {
				e := event(tenant)
				want = receiver.Event{ID: e.Key.String(), Source: "/test/t", Type: e.Type, Subject: tenant, TenantID: tenant, CorrelationID: "c-1", Time: e.CreatedAt, Data: e.Payload}
			}
			testenv.Equal(t, "", want, got)
		})
	}
}

// Any body is an event or an ErrEvent.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"2026-11-21T10:00:00Z","data":{"a":1}}`))
	f.Add([]byte(`{"specversion":"1.0","data":[[[]]]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := receiver.Parse(body)
		if err != nil && !errors.Is(err, receiver.ErrEvent) || err == nil && (e.ID == "" || e.Source == "" || e.Type == "" || e.Data != nil && !json.Valid(e.Data)) {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// A custom HTTP handler that receives events.
func Example() {
	secret := outbox.SigningKey{ID: "2026-11", Secret: []byte("a secret of 24 bytes and more")}
	r := receiver.Receiver{Keys: func(context.Context, receiver.Event) ([]outbox.SigningKey, error) {
		return []outbox.SigningKey{secret}, nil
	}}
	take := func(e receiver.Event) error { // remembers the id, so that the event counts once
		fmt.Println(e.Type, e.ID, string(e.Data))
		return nil
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		e, err := r.Receive(req)
		switch {
		case errors.Is(err, outbox.ErrSignature):
			http.Error(w, "not signed with a key of ours", http.StatusUnauthorized)
		case errors.Is(err, receiver.ErrEvent), errors.Is(err, receiver.ErrTooLarge):
			http.Error(w, err.Error(), http.StatusBadRequest)
		case err != nil:
			http.Error(w, "send it again", http.StatusServiceUnavailable)
		case take(e) != nil:
			http.Error(w, "send it again", http.StatusServiceUnavailable)
		}
	})

	body := []byte(`{"specversion":"1.0","id":"7","source":"/shop","type":"order.shipped","data":{"order":7}}`)
	request := httptest.NewRequest(http.MethodPost, "/events", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/cloudevents+json")
	if err := outbox.Sign(request.Header, "7", time.Now(), body, []outbox.SigningKey{secret}); err != nil {
		fmt.Println(err)
	}
	handler.ServeHTTP(httptest.NewRecorder(), request)
	// Output:
	// order.shipped 7 {"order":7}
}
