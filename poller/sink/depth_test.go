package sink_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sink"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// A row that is too deep for an engine or an event is itself bad, and goes to the dead letters without its data.
func TestDeepRows(t *testing.T) {
	t.Parallel()
	q, b, store := queues.NewMemory(), blobs.NewMemory(), tables.NewMemory()
	o, err := outbox.New(outbox.Config{Tables: store, Queues: q, Blobs: b, Options: outbox.DefaultOptions()})
	if err != nil {
		t.Fatal(err)
	}
	letters := engine.NewDeadLetters(store, "")
	testenv.OK(t, errors.Join(o.Create(t.Context()), letters.CreateTable(t.Context()), q.CreateQueue(t.Context(), "work")))
	for name, tt := range map[string]struct {
		poller.Handler
		wraps int // levels of a message or an event around the data of a row
	}{
		"engine": {sink.Engine{Target: poller.EngineTarget{Engine: "update"}, Queue: "work", Queues: q, Claims: engine.NewClaims(b, "")}, 2},
		"outbox": {sink.Outbox{Target: poller.OutboxTarget{EventType: "e", Tenant: "acme"}, Writer: outbox.NewWriter(o)}, 1},
	} {
		for levels, good := range map[int]bool{payload.MaxDepth: true, payload.MaxDepth + 1: false, 9_998: false, 12_000: false} {
			inner := levels - tt.wraps
			d := delivery(`{"x":` + strings.Repeat("[", inner-1) + strings.Repeat("]", inner-1) + `}`)
			if err := tt.Deliver(t.Context(), d); (err == nil) != good || !good && !poller.IsPermanent(err) {
				t.Errorf("%s, %d levels: %v", name, levels, err)
			}
			err := sink.DeadLetters(letters, poller.Setting{})(t.Context(), poller.Quarantined{Poller: "p" + name, Row: d.Rows[0], EventID: d.EventIDs[0], Err: errors.New("refused"),
				LastFailureAt: time.Unix(1, 0), FirstFailureAt: time.Unix(1, 0)})
			if err != nil {
				t.Errorf("%s, %d levels: quarantine: %v", name, levels, err)
			}
		}
	}
}
