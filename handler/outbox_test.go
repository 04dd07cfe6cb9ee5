package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/settings/settingstest"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/outbound"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// memoryPlatform returns a platform in memory whose secrets can be made to fail.
func memoryPlatform(t *testing.T, plan *faults.Plan) Platform {
	t.Helper()
	st, _, _ := developmentPlatform(tables.NewMemory(), queues.NewMemory(), blobs.NewMemory(), "")
	st.Secrets = secrets.NewDevelopment(faults.Tables(st.Tables, plan.Intercept))
	testenv.OK(t, st.Tables.CreateTable(t.Context(), secrets.DevelopmentTable))
	var err error
	st.Outbound, err = outbound.New(outbound.Config{Identity: func() (azcore.TokenCredential, error) { return nil, errors.New("no identity") }, Vault: st.Secrets})
	testenv.OK(t, err)
	return st
}

// load reads the settings of an environment, also for a platform.
func load(t *testing.T, env settingstest.Environment, st *Platform) settings.Settings {
	t.Helper()
	st.Settings = settings.NewReader(env.Lookup)
	s, err := settings.Load(st.Settings)
	testenv.OK(t, err)
	return s
}

// newEvents returns an outbox with the destinations of a document, and its dead letters.
func newEvents(t *testing.T, st Platform, document string) (*events, *engine.DeadLetters) {
	t.Helper()
	return newEventsOn(t, st, nil, document)
}

// newEventsOn is newEvents of a node.
func newEventsOn(t *testing.T, st Platform, node eventNode, document string) (*events, *engine.DeadLetters) {
	t.Helper()
	s := load(t, emulator.With("ROUNDHOUSE_OUTBOX", document), &st)
	letters := engine.NewDeadLetters(st.Tables, "")
	e, err := wireOutbox(s, st, node, letters, outbox.Observer{}, nil, slog.New(slog.DiscardHandler))
	testenv.OK(t, err)
	t.Cleanup(e.transports.close)
	testenv.OK(t, errors.Join(e.prepare(t.Context()), letters.CreateTable(t.Context())))
	return e, letters
}

// add adds an event like a process that delivers none.
func add(t *testing.T, e *events, payload string) outbox.Added {
	t.Helper()
	added, err := outbox.NewWriter(e.outbox).Add(t.Context(), outbox.Message{TenantID: "contoso", EventType: "test.done", Payload: json.RawMessage(payload), CorrelationID: "c1"})
	testenv.OK(t, err)
	return added
}

func status(t *testing.T, e *events, id string) outbox.Status {
	t.Helper()
	r, err := e.admin.Get(t.Context(), "contoso", id)
	testenv.OK(t, err)
	return r.Status
}

const toQueue = `{"destinations":{"q":{"queue":{"queue":"events"}}},"routes":[{"eventType":"*","destination":"q"}]}`

func TestAWakeUpDelivers(t *testing.T) {
	t.Parallel()
	st := memoryPlatform(t, &faults.Plan{})
	e, _ := newEvents(t, st, toQueue)
	added := add(t, e, `{"n":1}`)
	wakes, err := st.Queues.Receive(t.Context(), outbox.DefaultQueue, 32, time.Minute)
	if err != nil || len(wakes) != 1 {
		t.Fatalf("%d wake-ups, %v", len(wakes), err)
	}
	testenv.OK(t, e.wake(t.Context(), engine.Delivery{ID: wakes[0].ID, Body: queues.Decode(wakes[0].Text), DequeueCount: 1}))
	sent, err := st.Queues.Receive(t.Context(), "events", 32, time.Minute)
	if err != nil || len(sent) != 1 || !strings.Contains(string(queues.Decode(sent[0].Text)), `"source":"/roundhouse/contoso"`) {
		t.Errorf("sent %v, %v", sent, err)
	}
	testenv.Equal(t, "its status", outbox.StatusProcessed, status(t, e, added.ID))
}

// The program delivers its own events without a wake-up, and waits for them when it stops.
func TestTheProgramDeliversWhatItAdds(t *testing.T) {
	t.Parallel()
	st := memoryPlatform(t, &faults.Plan{})
	e, _ := newEvents(t, st, toQueue)
	added, err := e.writer.Add(t.Context(), outbox.Message{TenantID: "contoso", EventType: "test.done", Payload: json.RawMessage(`{"n":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "the message is processed", func() bool { return status(t, e, added.ID) == outbox.StatusProcessed })
	if err := e.close(t.Context()); err != nil {
		t.Error(err)
	}
	sent, sentErr := st.Queues.Length(t.Context(), "events")
	wakes, err := st.Queues.Length(t.Context(), outbox.DefaultQueue)
	if sent != 1 || wakes != 0 || errors.Join(sentErr, err) != nil {
		t.Errorf("%d sent, %d wake-ups, %v", sent, wakes, errors.Join(sentErr, err))
	}
}

// A stopping program passes a wake-up on: its undelivered events are due immediately, and another process delivers
// them.
func TestAWakeUpIsHandedOn(t *testing.T) {
	t.Parallel()
	e, _ := newEvents(t, memoryPlatform(t, &faults.Plan{}), toQueue)
	added := add(t, e, `{}`)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(trigger.ErrStopping)
	wake := engine.Delivery{Body: []byte(`{"tenant":"contoso"}`)}
	if err := e.wake(ctx, wake); !errors.Is(err, trigger.ErrStopping) || status(t, e, added.ID) == outbox.StatusProcessed {
		t.Errorf("%v, %s", err, status(t, e, added.ID))
	}
	if err := e.wake(t.Context(), wake); err != nil || status(t, e, added.ID) != outbox.StatusProcessed {
		t.Errorf("handed on: %v, %s", err, status(t, e, added.ID))
	}
}

// Unreadable wake-ups, and those that the host has abandoned, are dropped: no event depends on a wake-up.
func TestBadWakeUpsAreDropped(t *testing.T) {
	t.Parallel()
	e, _ := newEvents(t, memoryPlatform(t, &faults.Plan{}), toQueue)
	for _, body := range []string{"", "nonsense", `{}`, `{"tenant":5}`, `{"tenant":"` + strings.Repeat("x", 200) + `"}`} {
		if err := e.wake(t.Context(), engine.Delivery{ID: "1", Body: []byte(body)}); err != nil {
			t.Errorf("%.20q: %v", body, err)
		}
	}
	for i := range 3 {
		if err := e.wakePoison(t.Context(), engine.Delivery{ID: fmt.Sprint(i)}); err != nil {
			t.Error(err)
		}
	}
	testenv.Equal(t, "lost wake-ups that are counted", 3, e.wakesLost.Load())
}

func TestSweepKeepsToThePollInterval(t *testing.T) {
	t.Parallel()
	e, _ := newEvents(t, memoryPlatform(t, &faults.Plan{}), toQueue)
	start := time.Now()
	e.interval = 30 * time.Second
	for _, tt := range []struct {
		after time.Duration
		want  outbox.Status
	}{{0, outbox.StatusProcessed}, {15 * time.Second, outbox.StatusPending}, {29500 * time.Millisecond, outbox.StatusProcessed}, {45 * time.Second, outbox.StatusPending}} {
		added := add(t, e, `{}`)
		e.now = func() time.Time { return start.Add(tt.after) }
		// An idle sweep returns ErrIdle, and is not logged.
		if err := e.sweep(t.Context(), trigger.TimerDelivery{}); err != nil && !errors.Is(err, trigger.ErrIdle) || (err == nil) != (tt.want == outbox.StatusProcessed) {
			t.Fatal(err)
		}
		testenv.Equal(t, fmt.Sprintf("its status after %v", tt.after), tt.want, status(t, e, added.ID))
	}
}

func TestRetentionRemovesWhatIsOld(t *testing.T) {
	t.Parallel()
	e, _ := newEvents(t, memoryPlatform(t, &faults.Plan{}), toQueue)
	const many = outbox.MaxLimit + 1
	for range many {
		add(t, e, `{}`)
	}
	testenv.OK(t, e.sweep(t.Context(), trigger.TimerDelivery{}))
	left := func() (n int) {
		f := outbox.Filter{Limit: outbox.MaxLimit}
		for more := true; more; more = f.Continuation != "" {
			page, err := e.admin.List(t.Context(), f)
			testenv.OK(t, err)
			n, f.Continuation = n+len(page.Records), page.Continuation
		}
		return n
	}
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{29 * 24 * time.Hour, many}, {31 * 24 * time.Hour, 0}} {
		e.now = func() time.Time { return time.Now().Add(tt.after) }
		testenv.OK(t, e.retain(t.Context(), trigger.TimerDelivery{}))
		testenv.Equal(t, fmt.Sprintf("what is left after %v", tt.after), tt.want, left())
	}
}

// receiver answers with a status and records the requests.
type receiver struct {
	url    string
	status atomic.Int64
	mu     sync.Mutex
	got    []received
}

type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, received{req.Header, body})
		r.mu.Unlock()
		w.WriteHeader(int(r.status.Load()))
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) last(t *testing.T) received {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) == 0 {
		t.Fatal("nothing came")
	}
	return r.got[len(r.got)-1]
}

func (r *receiver) document(more string) string {
	return `{"destinations":{"r":{"http":{"url":"` + r.url + `/hook","allow":["127.0.0.0/8"],"allowPlaintext":true` + more + `}}},"routes":[{"eventType":"*","destination":"r"}]}`
}

func dispatch(t *testing.T, e *events) {
	t.Helper()
	testenv.Must(e.dispatcher.Dispatch(t.Context(), "contoso"))(t)
}

// A refused event becomes a dead letter, is retried from there, and becomes another one when it is refused again.
func TestDeadEventsAndBack(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	e, letters := newEvents(t, memoryPlatform(t, &faults.Plan{}), r.document(""))
	r.status.Store(http.StatusBadRequest)
	added := add(t, e, `{"n":1}`)
	var letter engine.DeadLetter
	for deaths := 1; deaths <= 2; deaths++ {
		dispatch(t, e)
		page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"outbox"}})
		if s := status(t, e, added.ID); err != nil || s != outbox.StatusDead || len(page.DeadLetters) != deaths {
			t.Fatalf("after %d deaths it is %s, with %d dead letters, %v", deaths, s, len(page.DeadLetters), err)
		}
		letter, err = letters.Get(t.Context(), "outbox", page.DeadLetters[0].RowKey)
		testenv.OK(t, err)
		checkLetter(t, letter, added)
		if deaths == 2 {
			r.status.Store(http.StatusAccepted)
		}
		testenv.Must(e.owner.Retry(t.Context(), letter))(t)
	}
	dispatch(t, e)
	testenv.Equal(t, "its status", outbox.StatusProcessed, status(t, e, added.ID))
	if _, err := e.owner.Retry(t.Context(), letter); err != nil || status(t, e, added.ID) != outbox.StatusProcessed {
		t.Errorf("retry of what was delivered: %v", err)
	}
}

func checkLetter(t *testing.T, got engine.DeadLetter, added outbox.Added) {
	t.Helper()
	want := engine.DeadLetter{Engine: "outbox", MessageID: added.ID, InstanceID: "contoso", TenantID: "contoso", OriginalQueue: "N/A", DetectedReason: engine.ReasonPermanent,
		DequeueCount: 1, Status: engine.StatusPending, CorrelationID: "c1"}
	seen := engine.DeadLetter{Engine: got.Engine, MessageID: got.MessageID, InstanceID: got.InstanceID, TenantID: got.TenantID, OriginalQueue: got.OriginalQueue,
		DetectedReason: got.DetectedReason, DequeueCount: got.DequeueCount, Status: got.Status, CorrelationID: got.CorrelationID}
	if diff := cmp.Diff(want, seen); diff != "" || !strings.Contains(got.ErrorMessage, "400") {
		t.Errorf("dead letter, error %q (-want +got):\n%s", got.ErrorMessage, diff)
	}
	var event struct {
		SpecVersion, ID, Type, TenantID string
		Data                            json.RawMessage
	}
	if err := json.Unmarshal(got.OriginalMessage, &event); err != nil || event.SpecVersion != "1.0" || event.ID != added.Key.String() ||
		event.Type != "test.done" || event.TenantID != "contoso" || string(event.Data) != `{"n":1}` {
		t.Errorf("original message %s, %v", got.OriginalMessage, err)
	}
}

// appIdentity returns a token that names its audience.
type appIdentity struct{}

func (appIdentity) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "for " + o.Scopes[0], ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// A receiver gets the token and the signature that the destinations document requires. Without the token or the key,
// nothing is sent, the row has the reason, and no retry is used up: the receiver has refused nothing.
func TestAuthOnTheWire(t *testing.T) {
	t.Parallel()
	secret := []byte(strings.Repeat("s", outbox.MinSecret) + "\x00")
	for name, tt := range map[string]struct {
		auth             string
		identity, vault  bool
		token, key, says string // says is the reason why nothing is sent
	}{
		"a token beside a signature": {auth: `,"audience":"api://crm","signingKeys":[{"id":"k1","secret":"hook"}]`, identity: true, vault: true,
			token: "Bearer for api://crm/.default", key: "k1"},
		"a signature": {auth: `,"structured":true,"signingKeys":[{"id":"k1","secret":"hook"}]`, vault: true, key: "k1"},
		"neither":     {},
		"no token":    {auth: `,"audience":"api://crm"`, says: "no token for api://crm"},
		"no key":      {auth: `,"signingKeys":[{"id":"k1","secret":"hook"}]`, says: "not configured: signing keys: signing key k1"},
	} {
		r, st := newReceiver(t), memoryPlatform(t, &faults.Plan{})
		if tt.identity {
			var err error
			st.Outbound, err = outbound.New(outbound.Config{Identity: func() (azcore.TokenCredential, error) { return appIdentity{}, nil }, Vault: st.Secrets})
			testenv.OK(t, err)
		}
		if tt.vault {
			testenv.Must(st.Secrets.Add(t.Context(), "hook", secret, nil))(t)
		}
		e, _ := newEvents(t, st, r.document(tt.auth))
		added := add(t, e, `{"n":1}`)
		dispatch(t, e)
		if tt.says != "" {
			record, err := e.admin.Get(t.Context(), "contoso", added.ID)
			r.mu.Lock()
			if err != nil || !strings.Contains(record.Error, tt.says) || record.RetryCount != 0 || record.WaitsSince.IsZero() || len(r.got) > 0 {
				t.Errorf("%s: %+v, %v; sent %v", name, record, err, r.got)
			}
			r.mu.Unlock()
			continue
		}
		got := r.last(t)
		sent := "to " + r.url // as in the log of the event's attempts
		if tt.token != "" {
			sent += ", with a token for api://crm"
		}
		if tt.key != "" {
			id, err := outbox.VerifySignature(got.header, got.body, []outbox.SigningKey{{ID: "k1", Secret: secret}}, time.Now(), 0)
			testenv.OK(t, err)
			testenv.Equal(t, fmt.Sprintf("%s: signed with", name), tt.key, id)
			sent += ", signed by " + id + ", webhook-id " + got.header.Get(outbox.HeaderWebhookID)
		}
		testenv.Equal(t, fmt.Sprintf("%s: the headers", name), [...]string{tt.key, tt.token, added.Key.String()}, [...]string{got.header.Get(outbox.HeaderKeyID), got.header.Get("Authorization"),
			got.header.Get(outbox.HeaderIdempotencyKey)})
		record, err := e.admin.Get(t.Context(), "contoso", added.ID)
		if err != nil || len(record.Attempts) != 1 || record.Attempts[0].SentAs != sent+", idempotency key "+added.Key.String() {
			t.Errorf("%s: %+v, %v, want %s", name, record, err, sent)
		}
	}
}

// shut is a closed gate that counts entries.
type shut int

func (s *shut) Enter(context.Context) (context.Context, func(), error) {
	*s++
	return nil, nil, trigger.ErrClosed
}

// While the app is drained, a sweep delivers nothing; it enters the gate only when it has work.
func TestSweepAsksTheGate(t *testing.T) {
	t.Parallel()
	e, _ := newEvents(t, memoryPlatform(t, &faults.Plan{}), toQueue)
	e.interval = 0
	var gate shut
	e.gate = &gate
	if err := e.sweep(t.Context(), trigger.TimerDelivery{}); !errors.Is(err, trigger.ErrIdle) || gate != 0 {
		t.Errorf("without tenants: %v, asked %d times", err, gate)
	}
	added := add(t, e, `{}`)
	if err := e.sweep(t.Context(), trigger.TimerDelivery{}); !errors.Is(err, trigger.ErrIdle) || gate != 1 || status(t, e, added.ID) != outbox.StatusPending {
		t.Errorf("drained: %v, asked %d times, it is %s", err, gate, status(t, e, added.ID))
	}
	e.gate = nil
	if err := e.sweep(t.Context(), trigger.TimerDelivery{}); err != nil || status(t, e, added.ID) != outbox.StatusProcessed {
		t.Errorf("afterwards: %v, it is %s", err, status(t, e, added.ID))
	}
}

// sayer is a node that records its reports.
type sayer struct {
	namedNode
	mu   sync.Mutex
	said []string
}

func (s *sayer) Say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, text)
}

// The process reports its open circuits to the others.
func TestCircuitsAreSaid(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.status.Store(http.StatusServiceUnavailable)
	node := &sayer{namedNode: "node-1"}
	st := memoryPlatform(t, &faults.Plan{})
	testenv.Must(st.Secrets.Add(t.Context(), "hook", bytes.Repeat([]byte{0xff, 0}, outbox.MinSecret/2), nil))(t)
	e, _ := newEventsOn(t, st, node, r.document(`,"signingKeys":[{"id":"k1","secret":"hook"}]`))
	for i := range outbox.DefaultOptions().CircuitFailures {
		add(t, e, fmt.Sprintf(`{"n":%d}`, i))
	}
	testenv.Must(e.dispatcher.Sweep(t.Context()))(t)
	node.mu.Lock()
	defer node.mu.Unlock()
	if len(node.said) != 1 {
		t.Fatalf("said %q", node.said)
	}
	open, err := outbox.DecodeCircuits(node.said[0])
	if err != nil || len(open) != 1 || open[0].Destination != "r" || open[0].Reason != "status 503" || !open[0].Until.After(open[0].Since) {
		t.Errorf("said %q: %v", node.said, err)
	}
}

// An event goes to the registry's current address; without an address it waits, and does not count as a failure of
// the destination.
func TestEventsToInstances(t *testing.T) {
	t.Parallel()
	store := tables.NewMemory()
	reg := registry.New(store, "")
	testenv.OK(t, reg.CreateTable(t.Context()))
	var got [2]atomic.Int32
	var urls [2]string
	for n := range urls {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got[n].Add(1) }))
		t.Cleanup(server.Close)
		urls[n] = server.URL
	}
	clients, err := outbound.New(outbound.Config{Vault: secrets.NewDevelopment(store), Development: true,
		Identity: func() (azcore.TokenCredential, error) { return nil, errors.New("no identity") }})
	testenv.OK(t, err)
	to := newInstances("instances", settings.HTTPDestination{Allow: []string{"127.0.0.0/8"}, AllowPlaintext: true}, Platform{Registry: reg, Outbound: clients})
	t.Cleanup(func() { _ = to.Close() })
	deliver := func(payload string) error {
		return to.Deliver(t.Context(), outbox.Event{ID: "1", TenantID: "t", Type: "update.available", Key: uuid.New(), Payload: []byte(payload)})
	}
	move := func(address string) {
		_, err := reg.Update(t.Context(), "i1", "", func(i *registry.Instance) error {
			return i.SetField(registry.FieldEndpoints, registry.Endpoints{Events: address})
		})
		testenv.OK(t, err)
	}
	const about = `{"instanceId":"i1"}`
	if err := deliver(about); !errors.Is(err, outbox.ErrMisconfigured) || !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("an instance that is not registered: %v", err)
	}
	testenv.Must(reg.Create(t.Context(), registry.Instance{InstanceID: "i1"}))(t)
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
