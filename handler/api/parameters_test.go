package api

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// ask is a query, and the number of items in the answer; refused for a query that is answered with 400.
type ask struct {
	query string
	items int
}

const refused = -1

// checkAsks requests a list, once for each query of each parameter.
func checkAsks(t *testing.T, b *outboxBench, path string, parameters map[string][]ask) {
	t.Helper()
	for name, asks := range parameters {
		t.Run(name, func(t *testing.T) {
			for _, a := range asks {
				rec := b.get(t, path+"?"+a.query)
				if a.items == refused {
					testenv.Equal(t, a.query, http.StatusBadRequest, rec.Code)
					continue
				}
				if got := data[list[map[string]any]](t, rec); len(got.Items) != a.items {
					t.Errorf("%s: %d items, want %d", a.query, len(got.Items), a.items)
				}
			}
		})
	}
}

// token returns the continuation token of a list.
func (b *outboxBench) token(t *testing.T, target string) string {
	t.Helper()
	return data[list[map[string]any]](t, b.get(t, target)).ContinuationToken
}

// Each parameter of the standard for the list of dead letters has the specified effect.
func TestDeadLetterParameters(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 100) // of hmac, one a minute from 11:00 on, and one of tls at 11:00
	b.bury(t, engine.DeadLetter{Engine: "tls", MessageID: "i", InstanceID: "i1", OriginalQueue: "N/A", ErrorMessage: "no vault",
		LastFailureAtUtc: b.now().Add(-time.Minute), CorrelationID: "other"})
	b.send(t, http.MethodPatch, b.letter("hmac", "m7"), `{"status":"Resolved"}`)
	b.send(t, http.MethodPatch, b.letter("hmac", "m8"), `{"status":"Expired"}`)
	checkAsks(t, b, "/api/dlq", map[string][]ask{
		"engine":            {{"engine=tls", 2}, {"engine=spn", refused}},
		"status":            {{"status=Resolved", 1}, {"status=Expired", 1}, {"status=Pending&limit=100", 100}, {"status=Dead", refused}},
		"instanceId":        {{"instanceId=i1", 1}, {"instanceId=i2", 0}},
		"fromDate":          {{"fromDate=2026-11-21T12:38:00Z", 2}, {"fromDate=soon", refused}},
		"toDate":            {{"toDate=2026-11-21T11:01:00Z", 2}, {"toDate=soon", refused}},
		"limit":             {{"", 50}, {"limit=1", 1}, {"limit=100", 100}, {"limit=101", refused}, {"limit=0", refused}},
		"continuationToken": {{"limit=100&continuationToken=" + b.token(t, "/api/dlq?limit=100"), 2}, {"continuationToken=x", refused}},
	})
}

// Each parameter of the standard for the list of the history has the specified effect.
func TestHistoryParameters(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for i := range 102 {
		e := engine.Entry{Engine: "hmac", Operation: "rotate", Status: engine.StatusSucceeded, CreatedAtUtc: b.now().Add(time.Duration(i) * time.Minute), CorrelationID: fmt.Sprint("c", i)}
		if i == 0 {
			e.Engine, e.InstanceID, e.Operation, e.Status = "tls", "i1", "renew", engine.StatusFailed
		}
		testenv.OK(t, b.history.Record(t.Context(), e))
	}
	checkAsks(t, b, "/api/history", map[string][]ask{
		"engine":            {{"engine=tls", 1}, {"engine=spn", refused}},
		"instanceId":        {{"instanceId=i1", 1}, {"instanceId=i2", 0}},
		"status":            {{"status=Failed", 1}, {"status=Succeeded&limit=100", 100}, {"status=Pending", refused}},
		"operation":         {{"operation=renew", 1}, {"operation=notify", 0}},
		"fromDate":          {{"fromDate=2026-11-21T13:40:00Z", 2}, {"fromDate=soon", refused}},
		"toDate":            {{"toDate=2026-11-21T12:02:00Z", 2}, {"toDate=soon", refused}},
		"correlationId":     {{"correlationId=c7", 1}, {"correlationId=c", 0}},
		"limit":             {{"", 50}, {"limit=1", 1}, {"limit=100", 100}, {"limit=101", refused}, {"limit=0", refused}},
		"continuationToken": {{"limit=100&continuationToken=" + b.token(t, "/api/history?limit=100"), 2}, {"continuationToken=x", refused}},
	})
}

// Each parameter of the outbox document for the list of messages has the specified effect.
func TestOutboxParameters(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t) // four messages of each status and of each of two tenants, of two types in turn
	checkAsks(t, b, outboxPath, map[string][]ask{
		"status":    {{"status=pending", 16}, {"status=failed", 8}, {"status=processed", 8}, {"status=odd", refused}},
		"page":      {{"pageSize=20&page=1", 20}, {"pageSize=20&page=2", 12}, {"pageSize=20&page=3", 0}, {"page=0", refused}},
		"pageSize":  {{"pageSize=7", 7}, {"pageSize=501", refused}},
		"eventType": {{"eventType=type.0", 16}, {"eventType=type.2", 0}},
	})
}

// The endpoints of the standard and of the outbox document exist, and answer as specified.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 3)
	b.add(t, "acme", 1)
	entry := engine.Entry{Engine: "hmac", Operation: "rotate", Status: engine.StatusSucceeded, CreatedAtUtc: b.now(), CorrelationID: "c"}
	testenv.OK(t, b.history.Record(t.Context(), entry))
	letter := func(n int) string { return b.letter("hmac", fmt.Sprint("m", n)) }
	for _, e := range []struct {
		name, target, body string
		status             int
	}{
		{"GET /api/dlq", "/api/dlq", "", http.StatusOK},
		{"GET /api/dlq/{engine}/{rowKey}", letter(0), "", http.StatusOK},
		{"PATCH /api/dlq/{engine}/{rowKey}", letter(1), `{"status":"Resolved","resolutionNotes":"by hand"}`, http.StatusOK},
		{"POST /api/dlq/{engine}/{rowKey}/retry", letter(2) + "/retry", "", http.StatusOK},
		{"POST /api/dlq/expire", "/api/dlq/expire", `{"olderThanDays":30,"engine":"hmac"}`, http.StatusAccepted},
		{"GET /api/history", "/api/history", "", http.StatusOK},
		{"GET /api/history/{engine}/{rowKey}", "/api/history/hmac/c-20261121T120000.000000Z", "", http.StatusOK},
		{"GET /api/workflow/outbox", "/api/workflow/outbox", "", http.StatusOK},
	} {
		t.Run(e.name, func(t *testing.T) {
			var method, path string
			testenv.Must(fmt.Sscan(e.name, &method, &path))(t)
			expect(t, b.send(t, method, e.target, e.body), e.status, "", "")
			if item := theContract(t).Paths.Value(path[len("/api"):]); item == nil || item.GetOperation(method) == nil {
				t.Error("the document does not have it")
			}
		})
	}
}

// A run that another one blocks is refused over HTTP with 409, and Retry-After.
func TestInstanceLocked(t *testing.T) {
	t.Parallel()
	conflict := &engine.ConflictError{Engine: "update", InstanceID: "i1", Holder: "another", RetryAfter: 1500 * time.Millisecond}
	b := newOutboxBenchWith(t, inMemory(), func(c *Config) {
		c.Admit = func(context.Context, orchestrator.Start) (orchestrator.Start, error) {
			return orchestrator.Start{}, conflict
		}
	})
	rec := b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"update","input":{"instanceId":"i1"}}`)
	if rec.Code != http.StatusConflict || code(t, rec) != codeInstanceLocked || rec.Header().Get("Retry-After") != "2" {
		t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
}
