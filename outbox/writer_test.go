package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

func TestInsert(t *testing.T) {
	t.Parallel()
	integration(t, "Insert_Duplicate_SameTenant_Idempotent", func(t *testing.T, w *world) {
		p := w.process(t, nil)
		first, second := p.add(t, message1(1)), w.process(t, nil).add(t, message1(1))
		testenv.Equal(t, "", Added{ID: key(1).String(), Key: key(1)}, first)
		testenv.Equal(t, "", Added{ID: key(1).String(), Key: key(1), AlreadyExisted: true}, second)
		testenv.Equal(t, "", map[string]int{"m": 1, "p": 1}, w.rows(t, "acme"))
		if want := "OUTBOX_WORKER_DUPLICATE tenant=acme key=" + key(1).String(); !strings.Contains(w.log(), want) {
			t.Errorf("no %q in %s", want, w.log())
		}
	})
	integration(t, "Insert_SameKey_DifferentTenant", func(t *testing.T, w *world) {
		p := w.process(t, nil)
		for _, tenant := range []string{"acme", "/subscriptions/1 #x", "~tenants"} {
			m := message1(1)
			m.TenantID = tenant
			if added := p.add(t, m); added.AlreadyExisted {
				t.Errorf("%s: %+v", tenant, added)
			}
			testenv.Equal(t, "", map[string]int{"m": 1, "p": 1}, w.rows(t, tenant))
		}
	})
	integration(t, "Outbox_Insert_DuplicateIdempotencyKey_SameTenant_ShouldFailDB", func(t *testing.T, w *world) {
		p := w.process(t, nil)
		p.add(t, message1(1))
		msg := testenv.Must(p.writer.prepare(message1(1)))(t)
		if err := w.tables.Apply(t.Context(), w.table, tables.Insert(msg.entity())); !errors.Is(err, tables.ErrExists) {
			t.Errorf("a second row of the key: %v", err)
		}
	})
	t.Run("a duplicate with another payload is reported and counted", func(t *testing.T) {
		w, p := start(t)
		var counted []bool
		p.o.observe.Duplicate = func(differs bool) { counted = append(counted, differs) }
		p.add(t, message1(1))
		same := message1(1)
		same.Payload = json.RawMessage(" {\n\"n\": 1 } ")
		other := message1(1)
		other.Payload = json.RawMessage(`{"n":2}`)
		if a, b := p.add(t, same), p.add(t, other); a.PayloadDiffers || !b.PayloadDiffers || !b.AlreadyExisted {
			t.Errorf("%+v and %+v", a, b)
		}
		testenv.Equal(t, "", []bool{false, true}, counted)
		if !strings.Contains(w.log(), "level=WARN msg=\"OUTBOX_WORKER_DUPLICATE tenant=acme") {
			t.Error(w.log())
		}
		if got := p.get(t, "acme", key(1).String()); string(got.Payload) != `{"n":1}` {
			t.Errorf("payload %s", got.Payload)
		}
	})
}

func TestMessage(t *testing.T) {
	t.Parallel()
	t.Run("OutboxMessage_DefaultValues", func(t *testing.T) {
		t.Parallel()
		p := newWorld(t).process(t, nil)
		added := p.add(t, Message{TenantID: "acme", EventType: "e", Payload: json.RawMessage(`1`)})
		got := p.get(t, "acme", added.ID)
		if got.IdempotencyKey == uuid.Nil || got.IdempotencyKey != added.Key || !got.ProcessedAt.IsZero() || got.IsProcessed || got.RetryCount != 0 || got.Error != "" {
			t.Errorf("%+v", got)
		}
		if other := p.add(t, Message{TenantID: "acme", EventType: "e", Payload: json.RawMessage(`1`)}); other.Key == added.Key {
			t.Error("two messages without a key have one")
		}
	})
	integration(t, "OutboxMessage_Roundtrip_Persists_Values", func(t *testing.T, w *world) {
		p := w.process(t, nil)
		m := Message{
			TenantID: "/a b#'", EventType: "ordre.créé", Payload: json.RawMessage(`{"text":"naïve 😀 <&> \u2028"}`), Key: key(1),
			OrderKey: "o/1", CorrelationID: "c?1", TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		}
		p.add(t, m)
		want := Record{
			ID: key(1).String(), TenantID: m.TenantID, EventType: m.EventType, IdempotencyKey: key(1), Status: StatusPending,
			CreatedAt: noon(), NextAttemptAt: noon(), OrderKey: m.OrderKey, CorrelationID: m.CorrelationID, TraceParent: m.TraceParent,
			PayloadHash: payloadHash(m.Payload), PayloadSize: int64(len(m.Payload)), SchemaVersion: 1, Payload: m.Payload,
		}
		testenv.Equal(t, "", want, p.get(t, m.TenantID, key(1).String()))
		p.sweep(t)
		sent := Event{
			ID: want.ID, TenantID: m.TenantID, Type: m.EventType, Key: m.Key, Payload: m.Payload, CreatedAt: noon(), OrderKey: m.OrderKey,
			CorrelationID: m.CorrelationID, TraceParent: m.TraceParent, Attempt: 1,
		}
		testenv.Equal(t, "", []Event{sent}, w.events())
	})
}

// For an engine, the same logical event has one key, and different events have different keys.
func TestProducer(t *testing.T) {
	t.Parallel()
	t.Run("PublishDefinition_Event_Uses_Deterministic_IdempotencyKey", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for i := range 2 {
			p := w.process(t, nil)
			m := message1(1)
			m.Key = p.writer.Key("acme", "definition", "def-1", "published", "3")
			if got := p.add(t, m); got.AlreadyExisted != (i > 0) {
				t.Errorf("%d: %+v", i, got)
			}
		}
	})
	t.Run("PublishInstanceForceCancelled_Events_Have_UniqueKeys", func(t *testing.T) {
		_, p := start(t)
		for i := range 2 {
			m := message1(1)
			m.Key = p.writer.Key("acme", "instance", fmt.Sprint("instance-", i), "force-cancelled", "")
			if got := p.add(t, m); got.AlreadyExisted {
				t.Errorf("%d: %+v", i, got)
			}
		}
	})
}

func TestRaces(t *testing.T) {
	t.Parallel()
	t.Run("Parallel_Inserts_SingleRow", func(t *testing.T) {
		t.Parallel()
		t.Run("memory", func(t *testing.T) { t.Parallel(); race(t, newWorld(t), 200) })
		t.Run("azurite", func(t *testing.T) { t.Parallel(); race(t, azuriteWorld(t), 3) })
	})
}

// race lets 16 writers, each a process, add one key at a time.
func race(t *testing.T, w *world, rounds int) {
	t.Helper()
	var writers []*process
	for range 16 {
		writers = append(writers, w.process(t, nil))
	}
	for round := range rounds {
		barrier := make(chan struct{})
		var wg sync.WaitGroup
		added := make([]Added, len(writers))
		errs := make([]error, len(writers))
		for i, p := range writers {
			wg.Go(func() {
				<-barrier
				added[i], errs[i] = p.writer.Add(t.Context(), message1(round))
			})
		}
		close(barrier)
		wg.Wait()
		testenv.OK(t, errors.Join(errs...))
		fresh := 0
		for _, a := range added {
			if !a.AlreadyExisted {
				fresh++
			}
			if a.ID != added[0].ID || a.PayloadDiffers {
				t.Errorf("round %d: %+v", round, a)
			}
		}
		if fresh != 1 {
			t.Errorf("round %d: %d of them say that they added it", round, fresh)
		}
	}
	testenv.Equal(t, "", map[string]int{"m": rounds, "p": rounds}, w.rows(t, "acme"))
}

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	p := newWorld(t).process(t, nil)
	for name, c := range map[string]struct {
		change func(m *Message)
		want   error
		text   string
	}{
		"no tenant":         {func(m *Message) { m.TenantID = "" }, ErrInvalid, "tenant id is empty"},
		"long tenant":       {func(m *Message) { m.TenantID = strings.Repeat("x", 129) }, ErrInvalid, "129 bytes"},
		"no type":           {func(m *Message) { m.EventType = "" }, ErrInvalid, "event type is empty"},
		"no payload":        {func(m *Message) { m.Payload = nil }, ErrInvalid, "not JSON"},
		"not JSON":          {func(m *Message) { m.Payload = json.RawMessage(`{`) }, ErrInvalid, "not JSON"},
		"not UTF-8":         {func(m *Message) { m.Payload = json.RawMessage("\"\xff\"") }, ErrInvalid, "not JSON"},
		"order key":         {func(m *Message) { m.OrderKey = "\xff" }, ErrInvalid, "order key is not UTF-8"},
		"too large payload": {func(m *Message) { m.Payload = text(MaxPayload + 1) }, ErrPayloadTooLarge, "1048577 bytes of at most 1048576"},
	} {
		m := message1(1)
		c.change(&m)
		if _, err := p.writer.Add(t.Context(), m); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// text returns a JSON text of this many bytes, with the characters that take most room in a row.
func text(n int) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat("<", n-2) + `"`)
}

func TestPayloadSizes(t *testing.T) {
	t.Parallel()
	integration(t, "every size arrives as it was", func(t *testing.T, w *world) {
		p := w.process(t, nil)
		sizes := []int{2, inlinePayload, inlinePayload + 1, spillPayload, spillPayload + 1, MaxPayload}
		for i, n := range sizes {
			m := message1(i)
			m.Payload = text(n)
			p.add(t, m)
		}
		p.sweep(t)
		got := map[uuid.UUID]int{}
		for _, e := range w.events() {
			got[e.Key] = len(e.Payload)
			if string(e.Payload) != string(text(len(e.Payload))) {
				t.Errorf("payload of %d bytes is not what was added", len(e.Payload))
			}
		}
		for i, n := range sizes {
			if got[key(i)] != n {
				t.Errorf("payload %d has %d bytes, want %d", i, got[key(i)], n)
			}
			if r := p.get(t, "acme", key(i).String()); len(r.Payload) != n || r.Status != StatusProcessed {
				t.Errorf("payload %d is %d bytes and %s afterwards", i, len(r.Payload), r.Status)
			}
		}
		if w.check(t, "acme")[StatusProcessed] != len(sizes) {
			t.Error("not all are processed")
		}
	})
	t.Run("a duplicate leaves no blob behind", func(t *testing.T) {
		w, p := start(t)
		m := message1(1)
		m.Payload = text(spillPayload + 1)
		p.add(t, m)
		plan := &faults.Plan{}
		w.process(t, plan).add(t, m)
		var put, deleted int
		for _, c := range plan.Calls() {
			put += boolToInt(c.Operation == "Put")
			deleted += boolToInt(c.Service == "blobs" && c.Operation == "Delete")
		}
		if put != 1 || deleted != 1 {
			t.Errorf("%d blobs put, %d deleted", put, deleted)
		}
		if r := p.get(t, "acme", key(1).String()); len(r.Payload) != spillPayload+1 {
			t.Errorf("%d bytes are left", len(r.Payload))
		}
	})
}

func TestAddMany(t *testing.T) {
	t.Parallel()
	integration(t, "as one by one", func(t *testing.T, w *world) {
		p := w.process(t, nil)
		p.add(t, message1(3))
		var list []Message
		for i := range 120 {
			list = append(list, message1(i))
		}
		list[50].Payload = text(spillPayload + 1)
		list[60].OrderKey, list[61].OrderKey = "k", "k"
		list = append(list, message1(7))
		added := testenv.Must(p.writer.AddMany(t.Context(), "acme", list))(t)
		for i, a := range added {
			if want := i == 3 || i == 120; a.AlreadyExisted != want || a.Key != list[i].Key || a.PayloadDiffers {
				t.Errorf("%d: %+v", i, a)
			}
		}
		if got := w.check(t, "acme")[StatusPending]; got != 120 {
			t.Errorf("%d are pending", got)
		}
		p.sweep(t)
		if got := w.check(t, "acme")[StatusProcessed]; got != 120 || len(w.events()) != 120 {
			t.Errorf("%d are processed, %d were delivered", got, len(w.events()))
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		p := newWorld(t).process(t, nil)
		for _, m := range []Message{{TenantID: "other", Key: key(1)}, {}} {
			if _, err := p.writer.AddMany(t.Context(), "acme", []Message{m}); !errors.Is(err, ErrInvalid) {
				t.Errorf("%+v: %v", m, err)
			}
		}
	})
}

// A burst gets two wake-ups a second, one immediately and one for the rest; additions after a dispatcher's read get one
// immediately.
func TestWake(t *testing.T) {
	w, p := start(t)
	receive := func() (n int) {
		t.Helper()
		messages := testenv.Must(w.queues.Receive(t.Context(), w.queue, 32, time.Hour))(t)
		for _, m := range messages {
			if wake, err := DecodeWake(m.Text); err != nil || wake.Tenant != "acme" {
				t.Errorf("%+v, %v", wake, err)
			}
		}
		return len(messages)
	}
	for i := range 10 {
		p.add(t, message1(i))
	}
	if n := receive(); n != 1 {
		t.Errorf("%d wake-ups at once", n)
	}
	w.pass(time.Second)
	if n := receive(); n != 1 {
		t.Errorf("%d wake-ups after a second", n)
	}
	p.add(t, message1(10))
	if n := receive(); n != 1 {
		t.Errorf("%d wake-ups for a late one", n)
	}
	testenv.Must(p.dispatcher.Dispatch(t.Context(), "acme"))(t)
	p.add(t, message1(11))
	if n := receive(); n != 1 {
		t.Errorf("%d wake-ups after a dispatch", n)
	}
	for _, bad := range []string{"", "{", `{"tenant":""}`, `[]`} {
		if _, err := DecodeWake(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
