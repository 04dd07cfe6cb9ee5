package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// Operations are listed with their action, their owner and their progress; a paused one waits for its resumption, and
// has not ended.
func TestOperationList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.leave()
	w.deadLetter(t, "m1", "vault said no", time.Now())
	r := w.want(t, 0, nil, "dlq", "retry", "--all", "--engine", "hmac", "--yes", "--no-wait", "-o", "json")
	var o client.Operation
	must(t, json.Unmarshal([]byte(r.out), &o))
	w.want(t, 0, nil, "operation", "pause", o.ID)
	must(t, w.list.Flush(t.Context()))
	w.want(t, 0, []string{"ID", "STATUS", "BY", o.ID, "NotStarted", "retry of dead-letter", "function-key"}, "operation", "list", "--status", "open")
	w.want(t, 0, []string{"There are no such operations."}, "operation", "list", "--by", "nobody")
	w.want(t, 0, nil, "operation", "resume", o.ID)
	w.drive(t)
	w.want(t, 0, []string{o.ID, "Succeeded", "1"}, "operation", "list", "--status", "succeeded")
	w.want(t, 4, []string{"409"}, "operation", "pause", o.ID)
	for status, ended := range map[string]bool{"NotStarted": false, "Running": false, "Paused": false, "Succeeded": true, "Failed": true, "Canceled": true} {
		if got := (client.Operation{Status: status}).Ended(); got != ended {
			t.Errorf("%s: ended is %v", status, got)
		}
	}
}
