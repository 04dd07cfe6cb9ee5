package outbox

import (
	"errors"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/payload"
)

// A valid payload is delivered unchanged; an invalid one is refused, alone and among others.
func TestDeepPayloads(t *testing.T) {
	t.Parallel()
	for levels, want := range map[int]error{payload.MaxDepth: nil, payload.MaxDepth + 1: ErrInvalid, 9_998: ErrInvalid} {
		w := newWorld(t)
		p := w.process(t, nil)
		m := message1(1)
		m.Payload = []byte(strings.Repeat("[", levels) + strings.Repeat("]", levels))
		_, alone := p.writer.Add(t.Context(), m)
		m.Key = key(2)
		_, among := p.writer.AddMany(t.Context(), m.TenantID, []Message{message1(3), m})
		for _, err := range []error{alone, among} {
			if !errors.Is(err, want) || want != nil && (!errors.Is(err, payload.ErrTooDeep) || !strings.Contains(err.Error(), "500 levels")) {
				t.Errorf("%d levels: %v", levels, err)
			}
		}
		p.sweep(t)
		if want != nil {
			if len(w.events()) != 0 || len(w.rows(t, m.TenantID)) != 0 {
				t.Errorf("%d levels: %d events, rows %v", levels, len(w.events()), w.rows(t, m.TenantID))
			}
			continue
		}
		if got := w.events(); len(got) != 3 || string(got[0].Payload) != string(m.Payload) && string(got[1].Payload) != string(m.Payload) {
			t.Errorf("%d levels: %d events", levels, len(got))
		}
		shaped, err := (origin{source: "/x"}).toCloudEvent(Event{Key: m.Key, Type: "t", Payload: m.Payload})
		if err == nil {
			_, err = shaped.encode()
		}
		if err != nil {
			t.Errorf("%d levels as an event: %v", levels, err)
		}
	}
}
