package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

var update = flag.Bool("update", false, "write the golden files")

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 123_456_000, time.UTC) }

// failingStore answers reads with an error, or panics with it.
type failingStore struct {
	tables.Store
	err   error
	panic bool
	wait  bool // until the request times out
}

func (s *failingStore) Query(ctx context.Context, _ string, _ tables.Query) (tables.Page, error) {
	return tables.Page{}, s.fail(ctx)
}

func (s *failingStore) Get(ctx context.Context, _ string, _ tables.Key) (tables.Entity, error) {
	return tables.Entity{}, s.fail(ctx)
}

func (s *failingStore) fail(ctx context.Context) error {
	if s.panic {
		panic("AccountKey=hunter2-hunter2")
	}
	if s.wait {
		<-ctx.Done()
		return fmt.Errorf("read: %w", ctx.Err())
	}
	return s.err
}

// bench is the API on a real echo and a store in memory.
type bench struct {
	echo    *echo.Echo
	history *engine.History
	letters *engine.DeadLetters
	log     *bytes.Buffer
	tables  tables.Store
}

func newBench(t *testing.T, store tables.Store) *bench {
	t.Helper()
	b := &bench{
		echo:    echo.New(),
		history: engine.NewHistory(store, ""),
		letters: engine.NewDeadLetters(store, ""),
		log:     &bytes.Buffer{},
		tables:  store,
	}
	// The host's invocations arrive at the same server, at any path of one segment.
	b.echo.POST("/:function", func(c echo.Context) error { return c.String(http.StatusTeapot, "function "+c.Param("function")) })
	err := Register(b.echo, Config{
		History:     b.history,
		DeadLetters: b.letters,
		Engines:     []string{"hmac", "tls"},
		Door:        door(store),
		Now:         func() time.Time { return noon().In(time.FixedZone("east", 3600)) },
		Log:         slog.New(slog.NewTextHandler(b.log, nil)),
	})
	testenv.OK(t, err)
	return b
}

// door grants machines everything, and users of the tenant "home" the permissions of their roles.
func door(store tables.Store) access.Door {
	return access.Door{Name: "api", Audit: &audit.Log{Tables: store}, Control: access.Control{EasyAuth: true,
		Policy: access.Policy{HomeTenant: accesstest.ID("home"), Administrator: access.Members{AppRoles: []string{"keeper"}}, Keys: string(access.Administrator), OtherTenants: access.Operator}}}
}

// serve answers a request: one without credentials comes from a machine with a key.
func serve(e *echo.Echo, req *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	if req.Header.Get("X-MS-CLIENT-PRINCIPAL") == "" {
		req = accesstest.Machine(req)
	}
	e.ServeHTTP(rec, req)
	return rec
}

// newFilledBench holds two entries and two dead letters.
func newFilledBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, tables.NewMemory())
	testenv.OK(t, errors.Join(b.history.CreateTable(t.Context()), b.letters.CreateTable(t.Context()), door(b.tables).Audit.CreateTable(t.Context())))
	entry := engine.Entry{
		Engine: "hmac", InstanceID: "publisher", Operation: "rotate", Status: engine.StatusSucceeded, DurationMs: 1234,
		Input: json.RawMessage(`{ "slot": 1.50, "html": "<&>" }`), Output: json.RawMessage(`{"keyVersion":"v2"}`),
		CreatedAtUtc: noon(), CorrelationID: "a/b%2F ü=",
	}
	failed := entry
	failed.Engine, failed.Operation, failed.Status, failed.RunStatus = "tls", "renew", engine.StatusFailed, engine.StatusFailed
	failed.Output, failed.Error, failed.CreatedAtUtc = nil, "no route", noon().Add(time.Second)
	letter := engine.DeadLetter{
		Engine: "hmac", MessageID: "11111111-2222-3333-4444-555555555555", InsertedAtUtc: noon().Truncate(time.Second),
		InstanceID: "publisher", OriginalQueue: "hmac-rotation-queue", OriginalMessage: []byte("{\"a\": 1}\n"),
		ErrorMessage: "vault said no", DetectedReason: engine.ReasonPermanent, DequeueCount: 5,
		FirstFailureAtUtc: noon().Add(-time.Minute), LastFailureAtUtc: noon(), CorrelationID: "run-1",
	}
	binary := letter
	binary.MessageID, binary.OriginalMessage, binary.Status = "binary", []byte{0xff, 0x00}, engine.StatusResolved
	binary.LastFailureAtUtc = noon().Add(time.Second)
	binary.ResolutionNotes, binary.ResolvedAtUtc, binary.ResolvedBy = "Retried", noon().Add(time.Hour), "someone"
	testenv.OK(t, errors.Join(b.history.Record(t.Context(), entry), b.history.Record(t.Context(), failed)))
	for _, d := range []engine.DeadLetter{letter, binary} {
		testenv.Must(b.letters.Add(t.Context(), d))(t)
	}
	return b
}

// do sends a request; headers are name, value, name, value.
func (b *bench) do(t *testing.T, method, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	rec := serve(b.echo, req)
	conform(t, req, "", rec)
	return rec
}

// answer is the envelope of an answer.
type answer struct {
	Status        string
	CorrelationID string
	Timestamp     string
	Data          struct {
		Items             []map[string]any
		ContinuationToken string
		RowKey            string
	}
	Error struct {
		problem
		Details []problem
	}
}

func decode(t *testing.T, rec *httptest.ResponseRecorder) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil {
		t.Fatalf("%v: %s", err, rec.Body)
	}
	return a
}

// entryPath returns the path of the entry with the special correlation id, encoded as strictly as possible.
func entryPath() string {
	return "/api/history/hmac/" + url.PathEscape("a=2Fb=252F ü=3D-20261121T120000.123456Z")
}

// golden compares the body of an answer with a file. The bodies are a contract with callers: golden files change only
// to add members.
func golden(t *testing.T, name string, rec *httptest.ResponseRecorder) {
	t.Helper()
	var got bytes.Buffer
	testenv.OK(t, json.Indent(&got, rec.Body.Bytes(), "", "  "))
	file := filepath.Join("testdata", name+".json")
	if *update {
		testenv.OK(t, os.WriteFile(file, got.Bytes(), 0o600))
	}
	want, err := os.ReadFile(file)
	testenv.OK(t, err)
	testenv.Equal(t, name, string(want), got.String())
}

func TestGoldenBodies(t *testing.T) {
	t.Parallel()
	b := newFilledBench(t)
	for name, target := range map[string]string{
		"history-page":     "/api/history?limit=1",
		"history-one":      entryPath(),
		"history-failed":   "/api/history/tls/" + url.PathEscape("a=2Fb=252F ü=3D-20261121T120001.123456Z"),
		"dlq-list":         "/api/dlq?engine=hmac",
		"dlq-one":          "/api/dlq/hmac/11111111-2222-3333-4444-555555555555-20261121T120000.000000Z",
		"dlq-binary":       "/api/dlq/hmac/binary-20261121T120000.000000Z",
		"empty-list":       "/api/dlq?engine=tls",
		"error-parameters": "/api/history?limit=0&engin=hmac&status=Pending",
	} {
		golden(t, name, b.do(t, http.MethodGet, target, "x-correlation-id", "golden"))
	}
}

func TestPathsMatchInAnyCaseAndDecodeOnce(t *testing.T) {
	t.Parallel()
	b := newFilledBench(t)
	const row = "a=2Fb=252F%20%C3%BC=3D-20261121T120000.123456Z"
	tests := map[string]int{
		"/api/history/hmac/" + row:                                   http.StatusOK,
		"/API/History/hmac/" + row:                                   http.StatusOK,
		"/api/HISTORY/hmac/" + row:                                   http.StatusOK,
		"/api/history/hmac/" + row + "/":                             http.StatusOK,
		"/api/history/%68mac/" + row:                                 http.StatusOK,
		"/api/history/hmac/" + strings.ReplaceAll(row, "=", "%3D"):   http.StatusOK,
		"/api/history/hmac/" + strings.ReplaceAll(row, "=", "%253D"): http.StatusNotFound,
		"/api/history/hmac/" + strings.ReplaceAll(row, "=2F", "%2F"): http.StatusNotFound,
		"/api/history/hmac/" + strings.ReplaceAll(row, "=25", "%25"): http.StatusNotFound,
		"/api/history/hmac/a/b":                                      http.StatusNotFound,
		"/api/history/hmac/%2F":                                      http.StatusNotFound,
		"/api/history/hmac/%00":                                      http.StatusNotFound,
		"/api/history/hmac/~S-1":                                     http.StatusNotFound,
		"/api/history/HMAC/" + row:                                   http.StatusNotFound,
		"/api/history/hm%61c%2F/x":                                   http.StatusNotFound,
		"/api/history/spn/" + row:                                    http.StatusNotFound,
		"/api/history/hmac":                                          http.StatusNotFound,
		"/api/dlq/hmac/" + row:                                       http.StatusNotFound,
		"/api/dlq/hmac/x":                                            http.StatusNotFound,
		"/api":                                                       http.StatusNotFound,
		"/api/":                                                      http.StatusNotFound,
		"/API/nothing":                                               http.StatusNotFound,
		"/Api/DLQ":                                                   http.StatusOK,
		"/api/dlq/":                                                  http.StatusOK,
	}
	for target, want := range tests {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			rec := b.do(t, method, target)
			testenv.Equal(t, fmt.Sprintf("%s %s: %s", method, target, rec.Body), want, rec.Code)
			if method == http.MethodGet && want == http.StatusNotFound && decode(t, rec).Error.Code != codeNotFound {
				t.Errorf("%s: body %s", target, rec.Body)
			}
		}
	}
	if rec := b.do(t, http.MethodPost, "/some-function"); rec.Body.String() != "function some-function" {
		t.Errorf("a path of another part of the server: %d %s", rec.Code, rec.Body)
	}
}

// Row keys of a list lead to their entries, for any ids.
func TestListedRowKeysAreAddresses(t *testing.T) {
	t.Parallel()
	b := newFilledBench(t)
	for _, id := range []string{"%25", "%2F", "a%2fb", "+", " ", "..", "日本語", "a?b#c\\d", "~S-", "=3D", "'"} {
		entry := engine.Entry{Engine: "hmac", Operation: "rotate", Status: engine.StatusFailed, CreatedAtUtc: noon(), CorrelationID: id}
		testenv.OK(t, b.history.Record(t.Context(), entry))
		listed := decode(t, b.do(t, http.MethodGet, "/api/history?correlationId="+url.QueryEscape(id)))
		if len(listed.Data.Items) != 1 {
			t.Errorf("%q: %d items", id, len(listed.Data.Items))
			continue
		}
		rowKey, _ := listed.Data.Items[0]["rowKey"].(string)
		rec := b.do(t, http.MethodGet, "/api/history/hmac/"+url.PathEscape(rowKey))
		if rec.Code != http.StatusOK || decode(t, rec).Data.RowKey != rowKey {
			t.Errorf("%q: %d %s", id, rec.Code, rec.Body)
		}
	}
}

func TestParametersAreChecked(t *testing.T) {
	t.Parallel()
	b := newFilledBench(t)
	long := strings.Repeat("x", 513)
	tests := []struct{ query, target, mentions string }{
		{"limit=0", "limit", "1 to 100"},
		{"limit=101", "limit", "1 to 100"},
		{"limit=ten", "limit", "1 to 100"},
		{"limit=10&limit=10", "limit", "once"},
		{"limit=", "limit", "value"},
		{"engine=spn", "engine", "hmac, tls"},
		{"engine=HMAC", "engine", "hmac, tls"},
		{"engine=hmac,tls", "engine", "hmac, tls"},
		{"status=pending", "status", "Succeeded, Failed"},
		{"fromDate=yesterday", "fromDate", "2026-11-21T10:47:52Z"},
		{"fromDate=2026-11-21T25:00:00Z", "fromDate", "such as"},
		{"toDate=1500-01-01", "toDate", "1601"},
		{"fromDate=2026-11-22&toDate=2026-11-21", "toDate", "fromDate"},
		{"instanceId=" + long, "instanceId", "512"},
		{"operation=%FF", "operation", "UTF-8"},
		{"correlationId=" + long[:129], "correlationId", "128"},
		{"Engine=hmac", "Engine", "engine, instanceId, status"},
		{"$filter=x", "$filter", "no such parameter"},
		{"limit=%zz", "", "encoded"},
		{"a;b=c", "", "encoded"},
		{"continuationToken=abc", "continuationToken", "does not belong"},
	}
	for _, test := range tests {
		rec := b.do(t, http.MethodGet, "/api/history?"+test.query)
		a := decode(t, rec)
		if rec.Code != http.StatusBadRequest || a.Status != "Failed" || a.Error.Target != test.target || !strings.Contains(a.Error.Message, test.mentions) {
			t.Errorf("%s: %d %s, want target %q and %q", test.query, rec.Code, rec.Body, test.target, test.mentions)
		}
		if rec.Header().Get("x-ms-error-code") != a.Error.Code || !strings.HasPrefix(a.Error.Code, "Invalid") {
			t.Errorf("%s: x-ms-error-code %q, code %q", test.query, rec.Header().Get("x-ms-error-code"), a.Error.Code)
		}
	}
	expect(t, b.do(t, http.MethodGet, "/api/dlq?operation=rotate"), http.StatusBadRequest, "", "dead letters have no operation")
}

// The tests of parameters check their selections; this one checks ignored parameters, and the forms of dates.
func TestFiltersAndDates(t *testing.T) {
	t.Parallel()
	b := newFilledBench(t)
	for target, want := range map[string]int{
		"/api/history?code=x&clientId=y&api-version=1":                      2,
		"/api/history?correlationId=" + url.QueryEscape("a/b%2F ü="):        2,
		"/api/history?fromDate=2026-11-21T12:00:01Z":                        1,
		"/api/history?fromDate=2026-11-21T13:00:01%2B01:00":                 1,
		"/api/history?fromDate=2026-11-21T13:00:01+01:00":                   1,
		"/api/history?toDate=2026-11-21T12:00:00.123456Z":                   0,
		"/api/history?toDate=2026-11-21T12:00:00.1234561Z":                  1,
		"/api/history?fromDate=2026-11-21&toDate=2026-11-22":                2,
		"/api/dlq?correlationId=run-1&status=Resolved&instanceId=publisher": 1,
		"/api/dlq?fromDate=2026-11-21T12:00:01Z":                            1,
	} {
		rec := b.do(t, http.MethodGet, target)
		if a := decode(t, rec); rec.Code != http.StatusOK || a.Status != "Succeeded" || len(a.Data.Items) != want {
			t.Errorf("%s: %d with %d items, want %d: %s", target, rec.Code, len(a.Data.Items), want, rec.Body)
		}
	}
}

func TestPagesAreWalked(t *testing.T) {
	t.Parallel()
	b := newFilledBench(t)
	for _, resource := range []string{"/api/history", "/api/dlq"} {
		target, seen := resource+"?limit=1", map[any]bool{}
		for range 2 {
			a := decode(t, b.do(t, http.MethodGet, target))
			for _, item := range a.Data.Items {
				seen[item["rowKey"]] = true
			}
			if a.Data.ContinuationToken == "" {
				target = ""
				break
			}
			target = resource + "?limit=1&continuationToken=" + a.Data.ContinuationToken
		}
		if len(seen) != 2 || target != "" {
			t.Errorf("%s: %d rows, rest %q", resource, len(seen), target)
		}
	}
	token := decode(t, b.do(t, http.MethodGet, "/api/history?limit=1")).Data.ContinuationToken
	rec := b.do(t, http.MethodGet, "/api/history?limit=1&status=Failed&continuationToken="+token)
	if rec.Code != http.StatusBadRequest || decode(t, rec).Error.Code != codeInvalidToken {
		t.Errorf("token of another filter: %d %s", rec.Code, rec.Body)
	}
}

func TestCorrelationID(t *testing.T) {
	t.Parallel()
	b := newFilledBench(t)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	tests := map[string]struct {
		headers []string
		want    string // "" for a new one
	}{
		"given":        {[]string{"x-correlation-id", "mine"}, "mine"},
		"both":         {[]string{"x-correlation-id", "mine", "traceparent", "00-" + trace + "-b7ad6b7169203331-01"}, "mine"},
		"trace":        {[]string{"traceparent", "00-" + trace + "-b7ad6b7169203331-01"}, trace},
		"later trace":  {[]string{"traceparent", "cc-" + trace + "-b7ad6b7169203331-01-more"}, trace},
		"no trace":     {[]string{"traceparent", "00-00000000000000000000000000000000-b7ad6b7169203331-01"}, ""},
		"broken trace": {[]string{"traceparent", "00-" + trace}, ""},
		"none":         {nil, ""},
		"too long":     {[]string{"x-correlation-id", strings.Repeat("x", 129)}, ""},
		"unprintable":  {[]string{"x-correlation-id", "a\nb"}, ""},
		"blank":        {[]string{"x-correlation-id", "a b"}, ""},
	}
	for name, test := range tests {
		for _, target := range []string{"/api/dlq", "/api/nothing"} {
			rec := b.do(t, http.MethodGet, target, test.headers...)
			got := decode(t, rec).CorrelationID
			if got != rec.Header().Get("x-correlation-id") || got == "" {
				t.Errorf("%s: body %q, header %q", name, got, rec.Header().Get("x-correlation-id"))
			}
			if err := uuid.Validate(got); got != test.want && (test.want != "" || err != nil) {
				t.Errorf("%s: %q, want %q", name, got, test.want)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	b := newFilledBench(t)
	for _, target := range []string{"/api/history", entryPath(), "/api/nothing", "/api/history?limit=0"} {
		get, head := b.do(t, http.MethodGet, target), b.do(t, http.MethodHead, target)
		for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Type": "application/json"} {
			testenv.Equal(t, fmt.Sprintf("%s: %s", target, name), want, get.Header().Get(name))
		}
		if (get.Header().Get("ETag") != "") != (target == entryPath()) {
			t.Errorf("%s: ETag %q", target, get.Header().Get("ETag"))
		}
		if head.Code != get.Code || head.Body.Len() != 0 {
			t.Errorf("HEAD %s: %d with %d bytes, GET %d", target, head.Code, head.Body.Len(), get.Code)
		}
		// The correlation ids of requests differ, in text but not in length.
		ignore := func(h http.Header) http.Header { h = h.Clone(); h.Del("x-correlation-id"); return h }
		testenv.Equal(t, fmt.Sprintf("HEAD %s, against GET", target), ignore(get.Header()), ignore(head.Header()))
	}
}

func TestOtherMethods(t *testing.T) {
	t.Parallel()
	b := newFilledBench(t)
	for target, allow := range map[string]string{
		"/api/history": "GET, HEAD", "/API/dlq": "GET, HEAD", entryPath(): "GET, HEAD", "/api/dlq/hmac/x": "GET, PATCH, HEAD", "/api/timeline/x": "GET, HEAD",
	} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "PURGE"} {
			if strings.Contains(allow, method) {
				continue
			}
			rec := b.do(t, method, target)
			if rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != allow || decode(t, rec).Error.Code != codeMethodNotAllowed {
				t.Errorf("%s %s: %d, Allow %q, %s", method, target, rec.Code, rec.Header().Get("Allow"), rec.Body)
			}
		}
	}
	expect(t, b.do(t, http.MethodPost, "/api/nothing"), http.StatusNotFound, "", "POST to nowhere")
}

func TestProblemJSON(t *testing.T) {
	t.Parallel()
	b := newFilledBench(t)
	for accept, want := range map[string]bool{
		"application/problem+json":                         true,
		"application/json, application/problem+json;q=0.5": true,
		"Application/Problem+JSON":                         true,
		"application/problem+json;q=0":                     false,
		"application/json":                                 false,
		"*/*":                                              false,
		"":                                                 false,
	} {
		rec := b.do(t, http.MethodGet, "/api/history?limit=0&x=1", "Accept", accept, "x-correlation-id", "mine")
		testenv.Equal(t, fmt.Sprintf("%q: its type is that of problems, not %q", accept, rec.Header().Get("Content-Type")), want, rec.Header().Get("Content-Type") == problemType)
		if !want {
			continue
		}
		var got problemBody
		testenv.OK(t, json.Unmarshal(rec.Body.Bytes(), &got))
		body := problemBody{
			Type: "about:blank", Title: "Bad Request", Status: 400, Instance: "/api/history", Code: codeInvalidParameter,
			Detail: got.Errors[0].Message, Target: "x", CorrelationID: "mine", Timestamp: noon(), Errors: got.Errors,
		}
		if diff := cmp.Diff(body, got); diff != "" || len(got.Errors) != 2 || rec.Code != 400 {
			t.Errorf("%d, problem (-want +got):\n%s", rec.Code, diff)
		}
	}
	if rec := b.do(t, http.MethodGet, "/api/history", "Accept", problemType); rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != "application/json" {
		t.Errorf("success: %d %s", rec.Code, rec.Header().Get("Content-Type"))
	}
}

func TestTrouble(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		store *failingStore
		want  int
	}{
		"throttled":     {&failingStore{err: tables.ErrThrottled}, http.StatusServiceUnavailable},
		"unknown":       {&failingStore{err: tables.ErrOutcomeUnknown}, http.StatusServiceUnavailable},
		"denied":        {&failingStore{err: tables.ErrDenied}, http.StatusServiceUnavailable},
		"invalid":       {&failingStore{err: tables.ErrInvalid}, http.StatusInternalServerError},
		"anything else": {&failingStore{err: errors.New("AccountKey=hunter2-hunter2")}, http.StatusInternalServerError},
		"panic":         {&failingStore{panic: true}, http.StatusInternalServerError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, test.store)
			for _, target := range []string{entryPath(), "/api/dlq"} {
				b.log.Reset()
				rec := b.do(t, http.MethodGet, target, "x-correlation-id", "mine")
				if rec.Code != test.want || (rec.Header().Get("Retry-After") != "") != (test.want == http.StatusServiceUnavailable) {
					t.Errorf("%s: %d, Retry-After %q, want %d", target, rec.Code, rec.Header().Get("Retry-After"), test.want)
				}
				for place, text := range map[string]string{"body": rec.Body.String(), "log": b.log.String()} {
					if strings.Contains(text, "hunter2") || strings.Contains(text, ".go:") && place == "body" {
						t.Errorf("%s: %s tells too much: %s", target, place, text)
					}
				}
				if !strings.Contains(b.log.String(), "correlationId=mine") {
					t.Errorf("%s: log %q", target, b.log)
				}
			}
		})
	}
}

func TestRequestsEnd(t *testing.T) {
	t.Parallel()
	for _, target := range []string{entryPath(), "/api/dlq"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, &failingStore{wait: true})
			start := time.Now()
			rec := b.do(t, http.MethodGet, target)
			if took := time.Since(start); rec.Code != http.StatusServiceUnavailable || took != DefaultTimeout {
				t.Errorf("%s: %d after %v, want 503 after %v", target, rec.Code, took, DefaultTimeout)
			}
		})
	}
}

func TestMissingTableIsTrouble(t *testing.T) {
	t.Parallel()
	b := newBench(t, tables.NewMemory())
	expect(t, b.do(t, http.MethodGet, "/api/history"), http.StatusServiceUnavailable, "", "")
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	store := tables.NewMemory()
	good := Config{History: engine.NewHistory(store, ""), DeadLetters: engine.NewDeadLetters(store, ""), Engines: []string{"hmac"}, Door: door(store)}
	for name, change := range map[string]func(c *Config){
		"no history":      func(c *Config) { c.History = nil },
		"no dead letters": func(c *Config) { c.DeadLetters = nil },
		"no engines":      func(c *Config) { c.Engines = nil },
		"unnamed engine":  func(c *Config) { c.Engines = []string{"hmac", ""} },
		"timeout":         func(c *Config) { c.Timeout = -1 },
		"no door":         func(c *Config) { c.Door = access.Door{} },
	} {
		e, c := echo.New(), good
		change(&c)
		if err := Register(e, c); err == nil || len(e.Routes()) != 0 {
			t.Errorf("%s: error %v, %d routes", name, err, len(e.Routes()))
		}
	}
	if err := Register(echo.New(), good); err != nil {
		t.Errorf("the least there can be: %v", err)
	}
}
