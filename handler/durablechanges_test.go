package handler_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/handler/durable"
)

// Whatever the API of Durable Functions changes is in the audit log, with who did it: one entry each.
func TestDurableChangesAreRecorded(t *testing.T) {
	t.Parallel()
	const base = "/api/runtime/webhooks/durabletask"
	waits, fails := base+"/instances/shop-red-waits", base+"/instances/shop-red-fails"
	tried := map[string]struct{ path, body, target string }{
		"POST /orchestrators/:name/:instance":         {base + "/orchestrators/shop", `{"instanceId":"instance-red"}`, ""},
		"POST /instances/:instance/raiseEvent/:event": {waits + "/raiseEvent/go", `1`, "orchestrations/shop-red-waits"},
		"POST /instances/:instance/suspend":           {waits + "/suspend?reason=lunch", "", "orchestrations/shop-red-waits"},
		"POST /instances/:instance/resume":            {waits + "/resume", "", "orchestrations/shop-red-waits"},
		"POST /instances/:instance/terminate":         {waits + "/terminate?reason=stuck", "", "orchestrations/shop-red-waits"},
		"POST /instances/:instance/rewind":            {fails + "/rewind", "", "orchestrations/shop-red-fails"},
		"POST /instances/:instance/restart":           {fails + "/restart?restartWithNewInstanceId=false", "", "orchestrations/shop-red-fails"},
		"DELETE /instances/:instance":                 {fails, "", "orchestrations/shop-red-fails"},
		"DELETE /instances":                           {base + "/instances?createdTimeFrom=2020-01-01T00:00:00Z&runtimeStatus=Failed", "", "orchestrations"},
	}
	for _, r := range durable.Routes() {
		if !r.Permission.Changes() {
			continue
		}
		name := r.Method + " " + strings.TrimPrefix(r.Path, base)
		t.Run(name, func(t *testing.T) {
			c, ok := tried[name]
			if !ok {
				t.Fatal("it changes something, and is not tried")
			}
			m := newMarket(t)
			status, answer := m.Do(r.Method, c.path, c.body, m.home.Sign, func(r *http.Request) { r.Header.Set("x-correlation-id", "corr") })
			if status >= 300 {
				t.Fatalf("%d %s", status, answer)
			}
			page, err := (&audit.Log{Tables: m.Tables}).List(t.Context(), audit.Filter{Principal: m.home.ID()}, 10, "")
			if err != nil || len(page.Entries) != 1 {
				t.Fatalf("%+v, %v", page.Entries, err)
			}
			e := page.Entries[0]
			if e.Outcome != audit.Done || e.Door != "durable" || e.Permission != string(r.Permission) || e.CorrelationID != "corr" || e.Name != m.home.Name || e.Kind != "person" ||
				c.target != "" && e.Target != c.target || strings.Contains(c.path, "reason") && e.Reason == "" {
				t.Errorf("%+v", e)
			}
		})
	}
}
