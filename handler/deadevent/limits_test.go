package deadevent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

// An event can die with any size and any characters: an event whose dead letter did not fit would be retried for
// ever.
func TestSizesOfDeadEvents(t *testing.T) {
	t.Parallel()
	store := tables.NewMemory()
	all := engine.NewDeadLetters(store, "")
	dead := NewLetters(all)
	testenv.OK(t, all.CreateTable(t.Context()))
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, unit := range []string{"x", "<", "\u2028", "𝄞", `\"`} {
		for n := maxPayload - 1; n <= maxPayload+1; n++ {
			text := strings.Repeat(unit, (n-2)/len(unit))
			id := fmt.Sprintf("%x-%d", unit, n)
			e := outbox.DeadEvent{Event: outbox.Event{ID: id, TenantID: "acme", Type: "t", CreatedAt: at, Payload: json.RawMessage(`"` + text + strings.Repeat("y", n-2-len(text)) + `"`)},
				Began: at, At: at, FirstFailureAt: at, LastFailureAt: at}
			if _, err := dead.Open(t.Context(), e); err != nil {
				t.Errorf("%d bytes of %q: %.300v", n, unit, err)
				continue
			}
			found, err := all.Pending(t.Context(), Engine, id)
			if err != nil || len(found) != 1 {
				t.Fatalf("%d bytes of %q: %d letters, %v", n, unit, len(found), err)
			}
			l, err := all.Get(t.Context(), Engine, found[0].RowKey)
			var m message
			if err == nil {
				err = json.Unmarshal(l.OriginalMessage, &m)
			}
			if err != nil || (string(m.Data) == string(e.Payload)) != (n <= maxPayload) || (m.DataSize == n) != (n > maxPayload) {
				t.Errorf("%d bytes of %q: %d of data, size %d, %v", n, unit, len(m.Data), m.DataSize, err)
			}
		}
	}
}

// The dead letter of an event from an older version, with any depth of its payload, can be written and read.
func TestDeadEventsThatAreTooDeep(t *testing.T) {
	t.Parallel()
	for levels, kept := range map[int]bool{payload.MaxDepth: true, payload.MaxDepth + 1: false, 10_000: false} {
		text := strings.Repeat("[", levels) + strings.Repeat("]", levels)
		m := messageOf(outbox.DeadEvent{Event: outbox.Event{Payload: json.RawMessage(text)}})
		if _, err := json.Marshal(m); err != nil || (m.DataSize == 0) != kept || (string(m.Data) == text) != kept {
			t.Errorf("%d levels: %d bytes of data, size %d, %v", levels, len(m.Data), m.DataSize, err)
		}
	}
}
