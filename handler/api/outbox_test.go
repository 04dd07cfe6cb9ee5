package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

const outboxPath = "/api/workflow/outbox"

// numbers returns the messages of a list, by the number in their key.
func numbers(items []outboxItem) (out []int) {
	for _, item := range items {
		for n := range 40 {
			if key(n).String() == item.ID {
				out = append(out, n)
			}
		}
	}
	return out
}

// all walks a list to its end by its tokens.
func (b *outboxBench) all(t *testing.T, query string) (items []outboxItem) {
	t.Helper()
	return walk[outboxItem](t, b, outboxPath+"?"+query)
}

func TestOutboxLists(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	for _, name := range []string{"Admin_List_Pending", "Outbox_Admin_List_Pending"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.all(t, "status=pending&tenant=acme&pageSize=3")
			list := numbers(got)
			slices.Sort(list)
			testenv.Equal(t, "", []int{0, 1, 2, 3, 4, 5, 6, 7}, list)
			for _, item := range got {
				if item.Status != outbox.StatusPending || !item.ProcessedAt.IsZero() || item.TenantID != "acme" {
					t.Errorf("%+v", item)
				}
			}
		})
	}
	t.Run("Admin_Filter_Failed", func(t *testing.T) {
		t.Parallel()
		got := b.all(t, "status=failed&tenant=acme&pageSize=3")
		testenv.Equal(t, "", []int{4, 5, 6, 7}, numbers(got))
		for _, item := range got {
			if item.RetryCount != 1 || item.LastErrorSnippet != "no line" || !item.ProcessedAt.IsZero() {
				t.Errorf("%+v", item)
			}
		}
	})
	t.Run("Outbox_Admin_Filter_By_Status", func(t *testing.T) {
		t.Parallel()
		for query, want := range map[string][]int{
			"status=processed&tenant=acme":                    {8, 9, 10, 11},
			"status=dead&tenant=%2Fb%25":                      {12, 13, 14, 15},
			"status=dead&tenant=acme&eventType=type.1":        {13, 15},
			"status=skipped":                                  nil,
			"tenant=acme":                                     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
			"tenant=nobody":                                   nil,
			"tenant=acme&toDate=2026-11-21T12:02:00Z":         {4, 5},
			"tenant=acme&fromDate=2026-11-21T12:14:00Z":       {2, 3},
			"status=dead&fromDate=2026-11-21T13:11:00+01:00":  {15, 15},
			"status=failed&toDate=2026-11-21&tenant=acme":     nil,
			"code=x&api-version=1&status=dead&tenant=acme":    {12, 13, 14, 15},
			"status=dead&tenant=acme&page=3&pageSize=3":       nil,
			"status=processed&tenant=acme&page=2&pageSize=4":  nil,
			"status=processed&tenant=acme&page=20&pageSize=4": nil,
		} {
			page := data[list[outboxItem]](t, b.get(t, outboxPath+"?"+query))
			got := numbers(page.Items)
			slices.Sort(got)
			testenv.Equal(t, query, want, got)
		}
	})
}

// Pages by number and by token are the same pages.
func TestOutboxPages(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	var byNumber []outboxItem
	for page := 1; ; page++ {
		got := data[list[outboxItem]](t, b.get(t, fmt.Sprintf("%s?pageSize=5&page=%d", outboxPath, page)))
		byNumber = append(byNumber, got.Items...)
		if got.ContinuationToken == "" {
			break
		}
	}
	if diff := cmp.Diff(b.all(t, "pageSize=5"), byNumber); diff != "" || len(byNumber) != 32 {
		t.Errorf("%d messages: %s", len(byNumber), diff)
	}
	token := data[list[outboxItem]](t, b.get(t, outboxPath+"?pageSize=5")).ContinuationToken
	for _, query := range []string{"status=dead", "tenant=acme", "eventType=type.1", "toDate=2026-11-21T12:00:00Z"} {
		rec := b.get(t, outboxPath+"?"+query+"&continuationToken="+token)
		if rec.Code != http.StatusBadRequest || decode(t, rec).Error.Code != codeInvalidToken {
			t.Errorf("token of another filter: %s: %d %s", query, rec.Code, rec.Body)
		}
	}
}

func TestOutboxParametersAreChecked(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	long := strings.Repeat("x", outbox.MaxIDLength+1)
	for _, test := range []struct{ query, target, mentions string }{
		{"status=odd", "status", "pending, failed, processed, skipped, dead"},
		{"status=Pending", "status", "pending"},
		{"pageSize=0", "pageSize", "1 to 500"},
		{"pageSize=501", "pageSize", "1 to 500"},
		{"page=0", "page", "1 to"},
		{"page=-1", "page", "1 to"},
		{"page=99999999999999999999", "page", "1 to"},
		{"page=22&pageSize=500", "page", "continuationToken"},
		{"page=1&continuationToken=x", "page", "either"},
		{"continuationToken=x", "continuationToken", "does not belong"},
		{"continuationToken=e30", "continuationToken", "does not belong"},
		{"tenant=" + long, "tenant", "128"},
		{"eventType=%FF", "eventType", "UTF-8"},
		{"fromDate=yesterday", "fromDate", "such as"},
		{"fromDate=2026-11-22&toDate=2026-11-21", "toDate", "fromDate"},
		{"limit=5", "limit", "pageSize"},
		{"tenant=a&tenant=b", "tenant", "once"},
	} {
		rec := b.get(t, outboxPath+"?"+test.query)
		a := decode(t, rec)
		if rec.Code != http.StatusBadRequest || a.Error.Target != test.target || !strings.Contains(a.Error.Message, test.mentions) {
			t.Errorf("%s: %d %s", test.query, rec.Code, rec.Body)
		}
	}
}

// With the emulator, too, the answer is 400 or a valid list, and never another tenant's messages.
func TestHostileOutboxValues(t *testing.T) {
	t.Parallel()
	b := newOutboxBenchOver(t, inAzurite(t))
	b.fill(t)
	for _, value := range hostileValues() {
		if !sample.Keep(t, value) {
			continue
		}
		for _, name := range []string{"tenant", "eventType", "status", "fromDate", "page", "pageSize", "continuationToken"} {
			if rec := b.get(t, outboxPath+"?"+name+"="+url.QueryEscape(value)); rec.Code != http.StatusBadRequest {
				expect(t, rec, http.StatusOK, "", "%s=%q", name, value)
				honest(t, value, rec)
			}
		}
		for _, path := range []string{"/acme/" + url.PathEscape(value), "/" + url.PathEscape(value) + "/" + key(1).String()} {
			if value == ".." {
				continue // no routed path has this segment
			}
			for what, rec := range map[string]*httptest.ResponseRecorder{
				"get": b.get(t, outboxPath+path), "retry": b.send(t, http.MethodPost, outboxPath+path+"/retry", ""),
			} {
				if rec.Code != http.StatusNotFound && rec.Code != http.StatusBadRequest {
					t.Errorf("%s %q: %d %s", what, path, rec.Code, rec.Body)
				}
			}
		}
		expect(t, b.get(t, "/api/operations/"+url.PathEscape(value)), http.StatusNotFound, "", "operation %q", value)
		body, err := json.Marshal(map[string]string{"status": "dead", "tenant": value, "fromDate": value})
		testenv.OK(t, err)
		honest(t, value, b.send(t, http.MethodPost, outboxPath+"/replay", string(body)))
	}
}

func (b *outboxBench) one(tenant string, n int) string {
	return outboxPath + "/" + url.PathEscape(tenant) + "/" + key(n).String()
}

func TestGoldenOutboxBodies(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	for name, target := range map[string]string{
		"outbox-list": outboxPath + "?status=dead&pageSize=1", "outbox-pending": b.one("acme", 0), "outbox-one": b.one("/b%", 12),
	} {
		golden(t, name, b.get(t, target, "x-correlation-id", "golden"))
	}
}

func TestOutboxSnapshotIsTheDocuments(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	got := data[map[string]float64](t, b.get(t, outboxPath+"/metrics"))
	want := map[string]float64{"backlogSize": 16, "failedPending": 8, "oldestAgeSeconds": 16 * 60, "throughput": 8.0 / 240, "failureRatio": 16.0 / 24, "dead": 8, "died": 8, "misconfigured": 0, "reported": 0}
	testenv.Equal(t, "", want, got)
}

func TestOutboxActions(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	for _, test := range []struct {
		n            int
		action, body string
		status       int
		code         string
		after        outbox.Status
	}{
		{0, "retry", "", 200, "", outbox.StatusPending},
		{0, "replay", "", 200, "", outbox.StatusPending},
		{1, "skip", "{}", 200, "", outbox.StatusSkipped},
		{1, "skip", "", 409, codeInvalidState, outbox.StatusSkipped},
		{1, "retry", "", 409, codeInvalidState, outbox.StatusSkipped},
		{1, "replay", "{}", 200, "", outbox.StatusPending},
		{4, "skip", "", 200, "", outbox.StatusSkipped},
		{8, "retry", "", 409, codeInvalidState, outbox.StatusProcessed},
		{8, "skip", "", 409, codeInvalidState, outbox.StatusProcessed},
		{8, "replay", "", 200, "", outbox.StatusPending},
		{12, "retry", "", 200, "", outbox.StatusPending},
		{13, "skip", "", 200, "", outbox.StatusSkipped},
		{14, "replay", "", 200, "", outbox.StatusPending},
		{15, "retry", `{"by":"someone"}`, 400, codeInvalidBody, outbox.StatusDead},
		{15, "skip", `{"by":"someone"}`, 400, codeInvalidBody, outbox.StatusDead}, // the caller is the decider
		{15, "replay", `{"by":"someone"}`, 400, codeInvalidBody, outbox.StatusDead},
		{15, "skip", `{}{}`, 400, codeInvalidBody, outbox.StatusDead},
		{15, "skip", `[]`, 400, codeInvalidBody, outbox.StatusDead},
		{15, "skip", ` `, 400, codeInvalidBody, outbox.StatusDead},
		{15, "skip", `{`, 400, codeInvalidBody, outbox.StatusDead},
		{15, "skip", "{\"by\":\"\xff\"}", 400, codeInvalidBody, outbox.StatusDead},
		{15, "skip", strings.Repeat(" ", maxBody+1), 413, codeBodyTooLarge, outbox.StatusDead},
	} {
		what := fmt.Sprintf("%s %d with %.20q", test.action, test.n, test.body)
		rec := b.send(t, http.MethodPost, b.one("/b%", test.n)+"/"+test.action, test.body)
		if rec.Code != test.status || rec.Header().Get("x-ms-error-code") != test.code {
			t.Errorf("%s: %d %s", what, rec.Code, rec.Body)
		}
		if test.status == 200 {
			testenv.Equal(t, what, acted{key(test.n).String(), "/b%", outbox.Action(test.action)}, data[acted](t, rec))
		}
		testenv.Equal(t, what, test.after, data[outboxItem](t, b.get(t, b.one("/b%", test.n))).Status)
	}
	if skipped := data[outbox.Record](t, b.get(t, b.one("/b%", 13))); skipped.Status != outbox.StatusSkipped {
		t.Errorf("%+v", skipped)
	}
	for _, action := range []string{"retry", "skip", "replay"} {
		expect(t, b.send(t, http.MethodPost, b.one("acme", 99)+"/"+action, ""), http.StatusNotFound, "", "%s of nothing", action)
	}
}

// An unused body is bounded, and one without a length, too.
func TestBodyIsBounded(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	for method, target := range map[string]string{http.MethodGet: "/api/history", http.MethodPost: b.one("acme", 0) + "/skip"} {
		req := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(strings.Repeat(" ", maxBody+1)))
		if method == http.MethodPost {
			req.ContentLength = -1
		}
		rec := serve(b.echo, req)
		conform(t, req, "", rec)
		expect(t, rec, http.StatusRequestEntityTooLarge, codeBodyTooLarge, "%s", target)
	}
}

func TestActionsOnWhatIsBeingDelivered(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.add(t, "acme", 0)
	recs := map[string]*httptest.ResponseRecorder{}
	b.deliver = func(context.Context, outbox.Event) error {
		for _, action := range []string{"retry", "skip", "replay"} {
			recs[action] = b.send(t, http.MethodPost, b.one("acme", 0)+"/"+action, "")
		}
		return nil
	}
	b.sweep(t)
	for action, rec := range recs {
		// The claim is for two minutes.
		if rec.Code != http.StatusConflict || decode(t, rec).Error.Code != codeBeingDelivered || rec.Header().Get("Retry-After") != "121" {
			t.Errorf("%s: %d, Retry-After %q, %s", action, rec.Code, rec.Header().Get("Retry-After"), rec.Body)
		}
	}
	if len(recs) != 3 || data[outboxItem](t, b.get(t, b.one("acme", 0))).Status != outbox.StatusProcessed {
		t.Errorf("%d answers", len(recs))
	}
}

func TestOutboxMethods(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	for target, allow := range map[string]string{
		outboxPath:                     "GET, HEAD",
		outboxPath + "/metrics":        "GET, HEAD",
		outboxPath + "/replay":         "POST",
		b.one("acme", 0):               "GET, HEAD",
		b.one("acme", 0) + "/retry":    "POST",
		b.one("acme", 0) + "/skip":     "POST",
		b.one("acme", 0) + "/replay":   "POST",
		"/api/operations/x":            "GET, HEAD",
		"/api/operations/x/cancel":     "POST",
		"/api/metrics":                 "GET, HEAD",
		"/api/health/live":             "GET, HEAD",
		"/api/health/ready":            "GET, HEAD",
		"/API/Workflow/OUTBOX/Metrics": "GET, HEAD",
	} {
		if rec := b.send(t, http.MethodDelete, target, ""); rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != allow {
			t.Errorf("%s: %d, Allow %q", target, rec.Code, rec.Header().Get("Allow"))
		}
	}
	for _, target := range []string{outboxPath, outboxPath + "/metrics", b.one("acme", 0), "/api/health/live", "/api/health/full"} {
		get, head := b.get(t, target, "x-correlation-id", "x"), b.send(t, http.MethodHead, target, "", "x-correlation-id", "x")
		if diff := cmp.Diff(get.Header(), head.Header()); diff != "" || head.Body.Len() != 0 || head.Code != get.Code {
			t.Errorf("HEAD %s: %s", target, diff)
		}
	}
}

func TestOutboxTrouble(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	b.refuse = func(c faults.Call) bool { return true }
	for target, method := range map[string]string{
		outboxPath:                    http.MethodGet,
		outboxPath + "/metrics":       http.MethodGet,
		b.one("acme", 0):              http.MethodGet,
		b.one("acme", 0) + "/retry":   http.MethodPost,
		outboxPath + "/replay":        http.MethodPost,
		"/api/operations/" + anID:     http.MethodGet,
		outboxPath + "?page=2":        http.MethodGet,
		b.one("acme", 12) + "/replay": http.MethodPost,
	} {
		body := ""
		if target == outboxPath+"/replay" {
			body = `{"status":"dead"}`
		}
		rec := b.send(t, method, target, body)
		want := codeStorageUnavailable
		if target == outboxPath+"/replay" {
			want = codeNotRecorded // that comes first, and nothing follows
		}
		if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" || decode(t, rec).Error.Code != want {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
		}
	}
}

// Rows that another version, or an older one, has written.
func TestRowsOfOtherVersions(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for id, props := range map[string]map[string]any{
		"newer": {"SchemaVersion": int32(99), "Status": "pending"},
		"old":   {"Id": "old", "Name": "Legacy", "Payload": "not { JSON", "CreatedAt": b.now(), "IsProcessed": false},
	} {
		e := tables.Entity{Key: tables.Key{Partition: "acme", Row: "m-" + id}, Properties: props}
		testenv.OK(t, b.tables.Apply(t.Context(), outbox.DefaultTable, tables.Insert(e)))
	}
	expect(t, b.get(t, outboxPath+"/acme/newer"), http.StatusConflict, codeNewerSchema, "newer")
	got := data[map[string]any](t, b.get(t, outboxPath+"/acme/old"))
	if _, hasKey := got["idempotencyKey"]; hasKey || got["payload"] != "not { JSON" || got["eventType"] != "Legacy" {
		t.Errorf("old: %v", got)
	}
	expect(t, b.send(t, http.MethodPost, outboxPath+"/acme/old/retry", ""), http.StatusConflict, "", "retry of old")
}

func TestPartsMayBeLeftOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, tables.NewMemory())
	for _, target := range []string{outboxPath, outboxPath + "/metrics", "/api/operations/x", "/api/metrics", "/api/health/live"} {
		expect(t, b.do(t, http.MethodGet, target), http.StatusNotFound, "", "%s", target)
	}
	o := newOutboxBench(t)
	c := Config{History: b.history, DeadLetters: b.letters, Engines: []string{"hmac"}, Outbox: outbox.NewAdmin(o.outbox)}
	if err := Register(echo.New(), c); err == nil || !strings.Contains(err.Error(), "needed together") {
		t.Errorf("an outbox alone: %v", err)
	}
}

func TestMessagesAreFoundUnderAnyTenant(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for n, tenant := range []string{"replay", "metrics", "a/b", "%2F", "a b", "日本語", "?", "operations", "=3D"} {
		b.add(t, tenant, n)
		b.pass(time.Second)
		got := data[outboxItem](t, b.get(t, b.one(tenant, n)))
		if got.TenantID != tenant || got.ID != key(n).String() {
			t.Errorf("%q: %+v", tenant, got)
		}
		if items := b.all(t, "tenant="+url.QueryEscape(tenant)); len(items) != 1 {
			t.Errorf("%q: %d items", tenant, len(items))
		}
	}
}

// The backlog has the tenants that the caller may see, and no others.
func TestOutboxBacklog(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	var asked []string
	b := newOutboxBenchWith(t, inMemory(), func(c *Config) {
		c.Backlog = func(_ context.Context, tenant string) (outbox.Backlog, error) {
			asked = append(asked, tenant)
			if tenant == "broken" {
				return outbox.Backlog{}, errors.New("storage is down")
			}
			return outbox.Backlog{More: true, Rows: []outbox.BacklogRow{{TenantID: "acme", Destination: "crm", Waiting: 500, Failed: 2, AtLeast: true, OldestAt: at}, {TenantID: "acme", Waiting: 1, OldestAt: at}}}, nil
		}
	})
	path := outboxPath + "/backlog"
	want := backlogList{More: true, Items: []backlogItem{{TenantID: "acme", Destination: "crm", Waiting: 500, Failed: 2, AtLeast: true, OldestAtUtc: at}, {TenantID: "acme", Waiting: 1, OldestAtUtc: at}}}
	testenv.Equal(t, "", want, data[backlogList](t, b.get(t, path)))
	b.get(t, path+"?tenant=acme")
	red := caller("ann", "red", "Roundhouse.Operator")
	expect(t, b.get(t, path, "X-MS-CLIENT-PRINCIPAL", red), http.StatusOK, "", "of one tenant")
	if got := data[backlogList](t, b.get(t, path+"?tenant=acme", "X-MS-CLIENT-PRINCIPAL", red)); len(got.Items) != 0 {
		t.Errorf("another tenant's: %+v", got)
	}
	if len(asked) != 3 || asked[0] != "" || asked[1] != "acme" || asked[2] == "" || asked[2] == "acme" {
		t.Errorf("asked for %q", asked)
	}
	for query, status := range map[string]int{"?limit=3": 400, "?tenant=" + long(): 400, "?tenant=broken": 500} {
		expect(t, b.get(t, path+query), status, "", "%.20s", query)
	}
}

func long() string { return fmt.Sprintf("%0*d", outbox.MaxIDLength+1, 0) }

// Circuits are listed by destination, of live nodes; an unreadable report does not hide others.
func TestOutboxCircuits(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	open := func(destination string, after, until time.Duration) outbox.OpenCircuit {
		return outbox.OpenCircuit{Destination: destination, Since: began.Add(after), Until: began.Add(until), Failures: 5, Reason: "status 503"}
	}
	node := func(name string, state nodes.State, said string) nodes.Info {
		return nodes.Info{Name: name, State: state, Since: began, Seen: began.Add(time.Hour), Said: said}
	}
	all := []nodes.Info{
		node("a", nodes.StateAlive, outbox.EncodeCircuits([]outbox.OpenCircuit{open("crm", time.Minute, 2*time.Minute), open("bill", 0, time.Minute)})),
		node("b", nodes.StateAlive, outbox.EncodeCircuits([]outbox.OpenCircuit{open("crm", 0, 90*time.Second)})),
		node("gone", nodes.StateGone, outbox.EncodeCircuits([]outbox.OpenCircuit{open("gone", 0, 0)})),
		node("taken", nodes.StateTaken, outbox.EncodeCircuits([]outbox.OpenCircuit{open("taken", 0, 0)})),
		node("newer", nodes.StateAlive, "?"), node("quiet", nodes.StateAlive, ""),
	}
	var failure error
	b := newOutboxBenchWith(t, inMemory(), func(c *Config) { c.Nodes = func(context.Context) ([]nodes.Info, error) { return all, failure } })
	path := outboxPath + "/circuits"
	on := func(name string, after, until time.Duration) circuitNode {
		return circuitNode{Node: name, SinceUtc: began.Add(after), UntilUtc: began.Add(until), Failures: 5, Reason: "status 503", SeenUtc: began.Add(time.Hour)}
	}
	want := []circuitItem{
		{Destination: "bill", SinceUtc: began, UntilUtc: began.Add(time.Minute), Nodes: []circuitNode{on("a", 0, time.Minute)}},
		{Destination: "crm", SinceUtc: began, UntilUtc: began.Add(90 * time.Second), Nodes: []circuitNode{on("a", time.Minute, 2*time.Minute), on("b", 0, 90*time.Second)}},
	}
	testenv.Equal(t, "", want, data[list[circuitItem]](t, b.get(t, path)).Items)
	for i := range maxCircuitNodes {
		all = append(all, node(fmt.Sprint("more-", i), nodes.StateAlive, all[1].Said))
	}
	if got := data[list[circuitItem]](t, b.get(t, path)).Items; len(got) != 2 || len(got[1].Nodes) != maxCircuitNodes || got[1].NodesLeftOut != 2 {
		t.Errorf("of many nodes: %+v", got)
	}
	expect(t, b.get(t, path, "X-MS-CLIENT-PRINCIPAL", caller("ann", "red", "operator")), http.StatusForbidden, "", "of one tenant")
	expect(t, b.get(t, path+"?limit=3"), http.StatusBadRequest, "", "an unknown parameter")
	if failure = errors.New("storage is down"); b.get(t, path).Code != http.StatusInternalServerError {
		t.Error("nodes that cannot be read are no empty list")
	}
}
