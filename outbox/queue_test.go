package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

type queueKit struct {
	queues *queues.Memory
	blobs  *blobs.Memory
	*Queue
}

func newQueueKit(t *testing.T) queueKit {
	t.Helper()
	k := queueKit{queues: queues.NewMemory(), blobs: blobs.NewMemory()}
	q, err := NewQueue(QueueConfig{Queue: "events", Queues: k.queues, Blobs: k.blobs, Source: "urn:roundhouse"})
	if err != nil {
		t.Fatal(err)
	}
	k.Queue = q
	testenv.OK(t, q.Prepare(t.Context()))
	return k
}

// receive receives one message and reads it as a receiver does.
func (k queueKit) receive(t *testing.T) (map[string]any, int) {
	t.Helper()
	messages, err := k.queues.Receive(t.Context(), "events", 1, time.Minute)
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	body := queues.Decode(messages[0].Text)
	out := map[string]any{}
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return out, len(body)
}

// sized returns an event whose message has this length.
func sized(t *testing.T, bytes int) Event {
	t.Helper()
	e := exampleEvent()
	e.Payload = json.RawMessage(`""`)
	from := testenv.Must(newOrigin("urn:roundhouse", ""))(t)
	c := testenv.Must(from.toCloudEvent(e))(t)
	body := testenv.Must(c.encode())(t)
	e.Payload = json.RawMessage(`"` + strings.Repeat("x", bytes-len(body)) + `"`)
	return e
}

func TestQueueDelivers(t *testing.T) {
	t.Parallel()
	k := newQueueKit(t)
	e := exampleEvent()
	e.Payload = json.RawMessage(`{"a": [1, "ü"]}`)
	// A second attempt of an event that did arrive.
	for e.Attempt = 1; e.Attempt <= 2; e.Attempt++ {
		testenv.OK(t, k.Deliver(t.Context(), e))
	}
	for range 2 {
		got, _ := k.receive(t)
		want := map[string]any{
			"specversion": "1.0", "id": eventKey, "source": "urn:roundhouse", "type": "instance.rotated", "subject": "tenant-1",
			"time": "2026-11-21T09:30:00.12Z", "datacontenttype": "application/json", "tenantid": "tenant-1",
			"correlationid": "c-1", "traceparent": trace, "data": map[string]any{"a": []any{1.0, "ü"}},
		}
		testenv.Equal(t, "message", want, got)
	}
}

func TestQueueSpillsLargePayloads(t *testing.T) {
	t.Parallel()
	k := newQueueKit(t)
	testenv.OK(t, k.Deliver(t.Context(), sized(t, queues.MaxBody)))
	if got, size := k.receive(t); got["dataref"] != nil || size != queues.MaxBody {
		t.Errorf("a message of %d bytes that just fits was spilled to %v", size, got["dataref"])
	}
	e := sized(t, queues.MaxBody+1)
	var refs []any
	for range 2 {
		testenv.OK(t, k.Deliver(t.Context(), e))
		got, _ := k.receive(t)
		if got["data"] != nil || got["id"] != eventKey || got["datacontenttype"] != "application/json" {
			t.Errorf("message is %v", got)
		}
		refs = append(refs, got["dataref"])
	}
	ref, _ := refs[0].(string)
	if refs[0] != refs[1] || !strings.HasPrefix(ref, "outbox-claims/") {
		t.Errorf("datarefs are %v", refs)
	}
	data, err := ReadData(t.Context(), k.blobs, ref)
	if err != nil || string(data) != string(e.Payload) {
		t.Errorf("payload of %d bytes, %v", len(data), err)
	}
	other := e
	other.TenantID = "../tenant-2."
	testenv.OK(t, k.Deliver(t.Context(), other))
	got, _ := k.receive(t)
	if got["dataref"] == ref {
		t.Error("two tenants share a blob")
	}
}

func TestQueueMakesTheContainerThatIsMissing(t *testing.T) {
	t.Parallel()
	q := queues.NewMemory()
	testenv.OK(t, q.CreateQueue(t.Context(), "events"))
	transport, err := NewQueue(QueueConfig{Queue: "events", Queues: q, Blobs: blobs.NewMemory(), Source: "urn:roundhouse"})
	if err != nil {
		t.Fatal(err)
	}
	if err := transport.Deliver(t.Context(), sized(t, queues.MaxBody+1)); err != nil {
		t.Error(err)
	}
}

func TestQueueFailures(t *testing.T) {
	t.Parallel()
	full := newQueueKit(t)
	noBlobs := testenv.Must(NewQueue(QueueConfig{Queue: "events", Queues: full.queues, Source: "urn:roundhouse"}))(t)
	missing := testenv.Must(NewQueue(QueueConfig{Queue: "missing", Queues: full.queues, Source: "urn:roundhouse"}))(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	with := func(change func(e *Event)) Event {
		e := exampleEvent()
		change(&e)
		return e
	}
	for name, c := range map[string]struct {
		transport *Queue
		ctx       context.Context
		event     Event
		permanent bool
		is        error
		text      string
	}{
		"no blobs":        {noBlobs, t.Context(), sized(t, queues.MaxBody+1), true, queues.ErrTooLarge, "49153 bytes"},
		"huge attributes": {full.Queue, t.Context(), with(func(e *Event) { e.Type = strings.Repeat("t", queues.MaxBody) }), true, queues.ErrTooLarge, "without its payload"},
		"not JSON":        {full.Queue, t.Context(), with(func(e *Event) { e.Payload = json.RawMessage("x") }), true, nil, "not JSON"},
		"no type":         {full.Queue, t.Context(), with(func(e *Event) { e.Type = "" }), true, nil, "type"},
		"no queue":        {missing, t.Context(), exampleEvent(), false, queues.ErrNotFound, "missing"},
		"cancelled":       {full.Queue, cancelled, exampleEvent(), false, context.Canceled, "events"},
	} {
		got := failure(t, c.transport.Deliver(c.ctx, c.event))
		if got.Permanent != c.permanent || c.is != nil && !errors.Is(got, c.is) || !strings.Contains(got.Error(), c.text) {
			t.Errorf("%s: %v, permanent %v", name, got, got.Permanent)
		}
	}
	if n, err := full.queues.Length(t.Context(), "events"); n != 0 || err != nil {
		t.Errorf("%d messages were sent, %v", n, err)
	}
}

func TestQueueConfigIsValidated(t *testing.T) {
	t.Parallel()
	store := queues.NewMemory()
	for _, name := range []string{"", "ab", "Events", "a--b", "-ab", "ab-", "a_b", "a/b", strings.Repeat("a", 64), "abc\n"} {
		if err := (QueueConfig{Queue: name, Queues: store, Source: "/s"}).Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("queue %q: %v", name, err)
		}
	}
	for _, name := range []string{"abc", "a-b-c", "0-1", strings.Repeat("a", 63)} {
		if err := (QueueConfig{Queue: name, Queues: store, Source: "/s"}).Validate(); err != nil {
			t.Errorf("queue %q: %v", name, err)
		}
		// The rule is the store's.
		if err := store.CreateQueue(t.Context(), name); err != nil {
			t.Errorf("queue %q: %v", name, err)
		}
	}
	err := QueueConfig{}.Validate()
	for _, want := range []string{"queue name", "Queues is missing", "source"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestReadDataRefusesForeignReferences(t *testing.T) {
	t.Parallel()
	store := blobs.NewMemory()
	tenant := strings.Repeat("0", 64)
	for _, ref := range []string{
		"", "outbox-claims", "outbox-claims/", "outbox-claims/x", "other/" + tenant + "/" + eventKey, "outbox-claims/../other/x",
		"outbox-claims/" + tenant + "/../" + eventKey, "outbox-claims/" + tenant + "/" + strings.ToUpper(eventKey),
		"outbox-claims/" + tenant + "/urn:uuid:" + eventKey, "https://elsewhere.example/outbox-claims/" + tenant + "/" + eventKey,
	} {
		if _, err := ReadData(t.Context(), store, ref); !errors.Is(err, ErrDataRef) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if _, err := ReadData(t.Context(), store, "outbox-claims/"+tenant+"/"+uuid.NewString()); !errors.Is(err, blobs.ErrNotFound) {
		t.Errorf("a payload that is gone: %v", err)
	}
}
