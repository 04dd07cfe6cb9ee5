package direct_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/direct"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/deadevent"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// refusing refuses every event.
type refusing struct{}

func (refusing) Deliver(context.Context, outbox.Event) error {
	return &outbox.DeliveryError{Permanent: true, Err: errors.New("refused")}
}

// A decision over storage about the dead letter of an event changes the event, as through the app.
func TestDeadEvents(t *testing.T) {
	t.Parallel()
	store, messages, payloads := tables.NewMemory(), queues.NewMemory(), blobs.NewMemory()
	letters := engine.NewDeadLetters(store, "")
	o, err := outbox.New(outbox.Config{Tables: store, Queues: messages, Blobs: payloads, Letters: deadevent.NewLetters(letters), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	router, err := outbox.NewRouter([]outbox.Route{{EventType: "*", Destination: "r"}}, outbox.Destinations{"r": refusing{}})
	if err != nil {
		t.Fatal(err)
	}
	dispatcher, err := outbox.NewDispatcher(o, outbox.DispatcherConfig{Router: router})
	testenv.OK(t, errors.Join(err, o.Create(t.Context()), letters.CreateTable(t.Context())))
	added, err := outbox.NewWriter(o).Add(t.Context(), outbox.Message{TenantID: "acme", EventType: "t", Payload: json.RawMessage(`1`)})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Must(dispatcher.Sweep(t.Context()))(t)
	event := func() outbox.Record {
		r := testenv.Must(outbox.NewAdmin(o).Get(t.Context(), "acme", added.ID))(t)
		return r
	}
	transport, err := direct.New(direct.Config{Tables: store, Queues: messages, Blobs: payloads, Engines: []string{deadevent.Engine}, By: "ann", Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		status string
		want   outbox.Status
	}{{"Expired", outbox.StatusSkipped}, {"Pending", outbox.StatusDead}, {"Resolved", outbox.StatusSkipped}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, direct.Address+"/api/dlq/outbox/"+url.PathEscape(event().DeadLetter), strings.NewReader(`{"status":"`+test.status+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer := testenv.Must(transport.RoundTrip(r))(t)
		_ = answer.Body.Close()
		if got := event(); answer.StatusCode != http.StatusOK || got.Status != test.want || got.Status == outbox.StatusSkipped && got.SkippedBy != "local/ann" {
			t.Errorf("%s: %d, the event is %+v", test.status, answer.StatusCode, got)
		}
	}
}
