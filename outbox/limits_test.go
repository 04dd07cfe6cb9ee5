package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// Messages at each limit are added, displayed and delivered unchanged, in rows and in blobs; beyond it they are
// refused, with the limit, and store nothing.
func TestSizesOfMessages(t *testing.T) {
	t.Parallel()
	payload := func(unit string) func(m *Message, n int) {
		return func(m *Message, n int) { m.Payload = json.RawMessage(`"` + strings.Repeat(unit, n-2) + `"`) }
	}
	id := func(set func(m *Message, id string)) func(m *Message, n int) {
		return func(m *Message, n int) { set(m, strings.Repeat("/", n)) }
	}
	for _, tt := range []struct {
		what  string
		limit int
		set   func(m *Message, n int)
		want  error // beyond it; nil where only the place changes
	}{
		{"payload in an index row", inlinePayload, payload("<"), nil},
		{"payload in a row", spillPayload, payload("<"), nil},
		{"payload", MaxPayload, payload("x"), ErrPayloadTooLarge},
		{"payload of escapes", MaxPayload, payload("<"), ErrPayloadTooLarge},
		{"tenant id", MaxIDLength, id(func(m *Message, id string) { m.TenantID = id }), ErrInvalid},
		{"event type", MaxIDLength, id(func(m *Message, id string) { m.EventType = id }), ErrInvalid},
		{"order key", MaxIDLength, id(func(m *Message, id string) { m.OrderKey = id }), ErrInvalid},
		{"correlation id", MaxIDLength, id(func(m *Message, id string) { m.CorrelationID = id }), ErrInvalid},
	} {
		for n := tt.limit - 1; n <= tt.limit+1; n++ {
			w := newWorld(t)
			p := w.process(t, nil)
			m := message1(1)
			tt.set(&m, n)
			_, err := p.writer.Add(t.Context(), m)
			if n > tt.limit && tt.want != nil {
				if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), fmt.Sprintf("at most %d", tt.limit)) || len(w.rows(t, m.TenantID[:min(len(m.TenantID), 100)])) != 0 {
					t.Errorf("%s of %d: %v", tt.what, n, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s of %d: %v", tt.what, n, err)
			}
			got := p.get(t, m.TenantID, m.Key.String())
			p.sweep(t)
			events := w.events()
			if len(events) != 1 || string(got.Payload) != string(m.Payload) || string(events[0].Payload) != string(m.Payload) || got.EventType != m.EventType ||
				got.TenantID != m.TenantID || events[0].OrderKey != m.OrderKey || events[0].CorrelationID != m.CorrelationID {
				t.Errorf("%s of %d: %d events, a payload of %d", tt.what, n, len(events), len(got.Payload))
			}
		}
	}
}

// A list accepts the token of the longest possible keys.
func TestTokensOfTheLongestKeys(t *testing.T) {
	_, p := start(t)
	tenant := strings.Repeat("/", MaxIDLength)
	for i := range 3 {
		m := message1(i)
		m.TenantID, m.EventType = tenant, strings.Repeat("<", MaxIDLength)
		p.add(t, m)
	}
	f, seen := Filter{Status: StatusPending, TenantID: tenant, EventType: strings.Repeat("<", MaxIDLength), Limit: 1}, 0
	for {
		page := testenv.Must(p.admin.List(t.Context(), f))(t)
		seen += len(page.Records)
		if f.Continuation = page.Continuation; page.Continuation == "" {
			break
		}
	}
	if seen != 3 {
		t.Errorf("%d of 3", seen)
	}
}
