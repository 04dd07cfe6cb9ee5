package sink_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sink"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// delivery returns rows with this data, numbered from 1.
func delivery(data ...string) poller.Delivery {
	d := poller.Delivery{Poller: "orders", Token: 7, BatchID: "batch"}
	for i, text := range data {
		n := json.RawMessage{'0' + byte(i+1)}
		row := poller.Row{Cursor: poller.Cursor{Kind: "integer", Value: string(n)}, Key: json.RawMessage(`{"id":` + string(n) + `}`), Data: json.RawMessage(text)}
		d.Rows, d.EventIDs = append(d.Rows, row), append(d.EventIDs, poller.EventID(d.Poller, row))
	}
	return d
}

func TestEngine(t *testing.T) {
	t.Parallel()
	q, b := queues.NewMemory(), blobs.NewMemory()
	testenv.OK(t, errors.Join(q.CreateQueue(t.Context(), "work"), b.CreateContainer(t.Context(), "engine-messages")))
	e := sink.Engine{Target: poller.EngineTarget{Engine: "update", Operation: "sync", InstanceColumn: "instance", Tenant: "acme"},
		Queue: "work", Queues: q, Claims: engine.NewClaims(b, "")}
	d := delivery(`{"id":1,"instance":"i-1"}`, `{"id":2,"instance":9007199254740993,"long":"`+strings.Repeat("x", 60<<10)+`"}`)
	for range 2 {
		testenv.OK(t, e.Deliver(t.Context(), d))
	}
	found := map[string]int{}
	for {
		received := testenv.Must(q.Receive(t.Context(), "work", queues.MaxReceive, time.Minute))(t)
		if len(received) == 0 {
			break
		}
		for _, r := range received {
			var m engine.Message
			testenv.OK(t, json.Unmarshal(queues.Decode(r.Text), &m))
			found[m.CorrelationID]++
			switch m.InstanceID {
			case "i-1":
				var event sink.Event
				if err := json.Unmarshal(m.Input, &event); err != nil || event.ID != d.EventIDs[0] || string(event.Data) != string(d.Rows[0].Data) {
					t.Errorf("%+v, %v", event, err)
				}
			case "9007199254740993":
				if m.Blob == "" || len(m.Input) > 0 {
					t.Error("a long row is not in a blob")
				}
			default:
				t.Errorf("instance %q", m.InstanceID)
			}
			if m.Engine != "update" || m.Operation != "sync" || m.TenantID != "acme" {
				t.Errorf("%+v", m)
			}
		}
	}
	want := map[string]int{engine.DeriveCorrelationID("poller", "orders", d.EventIDs[0]): 2, engine.DeriveCorrelationID("poller", "orders", d.EventIDs[1]): 2}
	testenv.Equal(t, "correlation ids", want, found)
	for _, data := range []string{`{"id":1}`, `{"instance":null}`, `[]`} {
		if err := e.Deliver(t.Context(), delivery(data)); !poller.IsPermanent(err) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// A column can hold the engine's input, as JSON or as its text.
func TestEngineInput(t *testing.T) {
	t.Parallel()
	q := queues.NewMemory()
	testenv.OK(t, q.CreateQueue(t.Context(), "work"))
	e := sink.Engine{Target: poller.EngineTarget{Engine: "update", InputColumn: "input"}, Queue: "work", Queues: q, Claims: engine.NewClaims(blobs.NewMemory(), "")}
	for data, want := range map[string]string{`{"input":{"a":9007199254740993}}`: `{"a":9007199254740993}`, `{"input":"{\"a\":1}"}`: `{"a":1}`, `{"input":null}`: ""} {
		testenv.OK(t, e.Deliver(t.Context(), delivery(data)))
		received, err := q.Receive(t.Context(), "work", 1, time.Minute)
		if err != nil || len(received) != 1 {
			t.Fatalf("%d messages, %v", len(received), err)
		}
		var m engine.Message
		if err := json.Unmarshal(queues.Decode(received[0].Text), &m); err != nil || string(m.Input) != want {
			t.Errorf("%s: input %s, %v", data, m.Input, err)
		}
	}
	for _, data := range []string{`{"id":1}`, `{"input":"{"}`} {
		if err := e.Deliver(t.Context(), delivery(data)); !poller.IsPermanent(err) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func TestOutbox(t *testing.T) {
	t.Parallel()
	o, err := outbox.New(outbox.Config{Tables: tables.NewMemory(), Queues: queues.NewMemory(), Blobs: blobs.NewMemory(), Options: outbox.DefaultOptions()})
	if err != nil {
		t.Fatal(err)
	}
	testenv.OK(t, o.Create(t.Context()))
	s := sink.Outbox{Target: poller.OutboxTarget{EventType: "order.changed", TenantColumn: "tenant", Ordered: true}, Writer: outbox.NewWriter(o)}
	d := delivery(`{"id":1,"tenant":"acme"}`, `{"id":2,"tenant":"contoso"}`, `{"id":3,"tenant":"acme"}`)
	for range 2 {
		testenv.OK(t, s.Deliver(t.Context(), d))
	}
	admin := outbox.NewAdmin(o)
	for i, tenant := range []string{"acme", "contoso", "acme"} {
		r := testenv.Must(admin.Get(t.Context(), tenant, d.EventIDs[i]))(t)
		var event sink.Event
		if err := json.Unmarshal(r.Payload, &event); err != nil || !bytes.Equal(event.Data, d.Rows[i].Data) || r.EventType != "order.changed" || r.OrderKey == "" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if err := s.Deliver(t.Context(), delivery(`{"tenant":"acme","x":"`+strings.Repeat("x", 1<<20)+`"}`)); !poller.IsPermanent(err) || !errors.Is(err, outbox.ErrPayloadTooLarge) {
		t.Errorf("a row that is too large: %v", err)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	letters := engine.NewDeadLetters(tables.NewMemory(), "")
	testenv.OK(t, letters.CreateTable(t.Context()))
	d := delivery(`{"id":1}`, `{"id":2,"tenant":"acme","x":"`+strings.Repeat("x", 200<<10)+`"}`)
	at := time.Date(2026, 4, 7, 1, 2, 3, 0, time.UTC)
	quarantine := sink.DeadLetters(letters, poller.Setting{Engine: &poller.EngineTarget{TenantColumn: "tenant"}})
	for range 2 {
		for i, row := range d.Rows {
			q := poller.Quarantined{Poller: d.Poller, Row: row, EventID: d.EventIDs[i], Attempts: 5, Err: errors.New("refused"), FirstFailureAt: at, LastFailureAt: at.Add(time.Duration(i+1) * time.Minute)}
			testenv.OK(t, quarantine(t.Context(), q))
		}
	}
	page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"poller-orders"}})
	if err != nil || len(page.DeadLetters) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	if first, second := page.DeadLetters[1], page.DeadLetters[0]; first.TenantID != "" || second.TenantID != "acme" {
		t.Errorf("of the tenants %q and %q", first.TenantID, second.TenantID)
	}
	var got []poller.Delivery
	retry := sink.Retry(poller.HandlerFunc(func(_ context.Context, d poller.Delivery) error { got = append(got, d); return nil }))
	for i, wantErr := range []error{engine.ErrNotRetryable, nil} { // newest first: the long one
		letter, err := letters.Get(t.Context(), "poller-orders", page.DeadLetters[i].RowKey)
		if err != nil || letter.DequeueCount != 5 || letter.ErrorMessage != "refused" || !letter.FirstFailureAtUtc.Equal(at) {
			t.Fatalf("%+v, %v", letter, err)
		}
		letter.RetryID = "r"
		if _, err := retry(t.Context(), letter); !errors.Is(err, wantErr) {
			t.Errorf("retry %d: %v", i, err)
		}
		letter.Engine = "poller-other"
		if _, err := retry(t.Context(), letter); !errors.Is(err, engine.ErrNotRetryable) {
			t.Errorf("retry of another's letter: %v", err)
		}
	}
	if len(got) != 1 || got[0].EventIDs[0] != d.EventIDs[0] || string(got[0].Rows[0].Data) != `{"id":1}` {
		t.Errorf("%+v", got)
	}
	letter := testenv.Must(letters.Get(t.Context(), "poller-orders", page.DeadLetters[1].RowKey))(t)
	for err, notRetryable := range map[error]bool{errors.New("storage is away"): false, poller.Permanent(errors.New("no value")): true} {
		refuse := sink.Retry(poller.HandlerFunc(func(context.Context, poller.Delivery) error { return err }))
		if _, got := refuse(t.Context(), letter); !errors.Is(got, err) || errors.Is(got, engine.ErrNotRetryable) != notRetryable {
			t.Errorf("%v: %v", err, got)
		}
	}
}
