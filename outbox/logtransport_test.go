package outbox

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// A destination that only logs writes the event without the payload, which may be sensitive.
func TestLogDelivers(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	e := Event{ID: "i-1", TenantID: "acme", Type: "order.created", Key: key(1), Payload: []byte(`{"card":"4711"}`), Attempt: 1}
	testenv.OK(t, NewLog(slog.New(slog.NewTextHandler(&lines, nil))).Deliver(t.Context(), e))
	for _, want := range []string{"acme", "order.created", key(1).String()} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("%s is not in %s", want, &lines)
		}
	}
	if strings.Contains(lines.String(), "4711") {
		t.Errorf("the payload is in %s", &lines)
	}
}
