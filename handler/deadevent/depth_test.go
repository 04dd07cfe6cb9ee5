package deadevent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/outbox"
)

// The dead letter of an event that an older version took, however deep its payload is, can be written and read.
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
