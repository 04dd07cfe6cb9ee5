package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
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

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

const rotations = "hmac-rotation-queue"

// newBuried returns a bench with so many pending dead letters of hmac, a minute apart, the oldest an hour ago, and
// one of tls, which has no queue here.
func newBuried(t *testing.T, n int) *outboxBench {
	t.Helper()
	return newBuriedOver(t, inMemory(), n)
}

func newBuriedOver(t *testing.T, s stores, n int) *outboxBench {
	t.Helper()
	b := newOutboxBenchOver(t, s)
	testenv.OK(t, b.queues.CreateQueue(t.Context(), rotations))
	for i := range n {
		b.bury(t, engine.DeadLetter{MessageID: fmt.Sprint("m", i), LastFailureAtUtc: b.now().Add(time.Duration(i)*time.Minute - time.Hour), CorrelationID: fmt.Sprint("c", i)})
	}
	b.bury(t, engine.DeadLetter{Engine: "tls", MessageID: "m", OriginalQueue: "N/A", ErrorMessage: "no vault", LastFailureAtUtc: b.now().Add(-time.Hour), CorrelationID: "c0"})
	return b
}

func (b *outboxBench) bury(t *testing.T, l engine.DeadLetter) {
	t.Helper()
	l.InsertedAtUtc, l.OriginalMessage = b.now().Add(-2*time.Hour), []byte(`{"correlationId":"`+l.CorrelationID+`"}`)
	if l.Engine == "" {
		l.Engine, l.OriginalQueue, l.ErrorMessage = "hmac", rotations, "status 503"
	}
	testenv.Must(b.letters.Add(t.Context(), l))(t)
}

func (b *outboxBench) letter(engineName, message string) string {
	return "/api/dlq/" + engineName + "/" + message + "-" + b.now().Add(-2*time.Hour).Format("20060102T150405.000000Z")
}

// anyone returns one of the keepers.
func anyone() string { return caller("Ada", "home", "keeper") }

func TestPatchDeadLetter(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 1)
	target := b.letter("hmac", "m0")
	etag := b.get(t, target).Header().Get("ETag")
	rec := b.send(t, http.MethodPatch, target, `{"status":"Resolved","resolutionNotes":"by hand"}`, "If-Match", etag, "X-MS-CLIENT-PRINCIPAL", anyone())
	d := data[deadLetterDetail](t, rec)
	if rec.Code != http.StatusOK || d.Status != engine.StatusResolved || d.ResolutionNotes != "by hand" || d.ResolvedBy != idOf("Ada", "home")+" (Ada)" || !d.ResolvedAtUtc.Equal(b.now()) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if again := rec.Header().Get("ETag"); again == etag || again != b.get(t, target).Header().Get("ETag") {
		t.Errorf("ETag %q", again)
	}
	for status, want := range map[string]int{"Pending": 0, "Resolved": 1} {
		if l := data[list[deadLetterItem]](t, b.get(t, "/api/dlq?engine=hmac&status="+status)); len(l.Items) != want {
			t.Errorf("%d are %s", len(l.Items), status)
		}
	}
	tests := []struct {
		body, etag string
		status     int
		code       string
	}{
		{`{"status":"Pending"}`, etag, http.StatusPreconditionFailed, codePrecondition},
		{`{"resolutionNotes":"x"}`, etag, http.StatusPreconditionFailed, codePrecondition},
		{`{"status":"Expired"}`, "*", http.StatusConflict, codeInvalidState},
		{``, "", http.StatusBadRequest, codeInvalidParameter},
		{`{}`, "", http.StatusBadRequest, codeInvalidParameter},
		{`{"status":""}`, "", http.StatusBadRequest, codeInvalidParameter},
		{`{"status":"Retrying"}`, "", http.StatusBadRequest, codeInvalidParameter},
		{`{"status":7}`, "", http.StatusBadRequest, codeInvalidBody},
		{`{"state":"Pending"}`, "", http.StatusBadRequest, codeInvalidBody},
		{`{"status":"Resolved"}`, `"39", "40"`, http.StatusBadRequest, codeInvalidParameter},
		{`{"status":"Resolved"}`, `*, W/"40"`, http.StatusBadRequest, codeInvalidParameter},
		{`{"resolutionNotes":"` + strings.Repeat("x", engine.MaxResolutionNotes+1) + `"}`, "", http.StatusBadRequest, codeInvalidParameter},
	}
	for _, test := range tests {
		rec := b.send(t, http.MethodPatch, target, test.body, "If-Match", test.etag)
		if rec.Code != test.status || decode(t, rec).Error.Code != test.code {
			t.Errorf("%.60s: %d %s", test.body, rec.Code, rec.Body)
		}
	}
	rec = b.send(t, http.MethodPatch, target, `{"resolutionNotes":"again"}`)
	if d := data[deadLetterDetail](t, rec); d.ResolutionNotes != "again" || d.Status != engine.StatusResolved || d.ResolvedBy != idOf("Ada", "home")+" (Ada)" {
		t.Errorf("notes alone: %+v", d)
	}
	expect(t, b.send(t, http.MethodPatch, b.letter("hmac", "nothing"), `{"status":"Resolved"}`), http.StatusNotFound, "", "nothing")
}

func TestRetryDeadLetter(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 3)
	target := b.letter("hmac", "m0")
	rec := b.send(t, http.MethodPost, target+"/retry", "")
	first := data[retriedLetter](t, rec)
	if rec.Code != http.StatusOK || first.Status != engine.StatusResolved || first.MessageID == "" || first.RetriedBy != "function-key" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	testenv.Equal(t, "the answer to the second request", first, data[retriedLetter](t, b.send(t, http.MethodPost, target+"/retry", "{}")))
	batch, err := b.queues.Receive(t.Context(), rotations, 32, time.Minute)
	if err != nil || len(batch) != 1 || batch[0].ID != first.MessageID || !strings.HasSuffix(string(queues.Decode(batch[0].Text)), "\n"+`{"correlationId":"c0"}`) {
		t.Errorf("in the queue: %v, %v", batch, err)
	}
	if d := data[deadLetterDetail](t, b.get(t, target)); d.ResolutionNotes != "Retried" || d.RetryMessageID != first.MessageID || d.RetryID != first.RetryID {
		t.Errorf("%+v", d)
	}
	expect(t, b.send(t, http.MethodPost, b.letter("tls", "m")+"/retry", ""), http.StatusUnprocessableEntity, codeRetryUnsupported, "no queue")
	b.send(t, http.MethodPatch, b.letter("hmac", "m1"), `{"status":"Expired"}`)
	expect(t, b.send(t, http.MethodPost, b.letter("hmac", "m1")+"/retry", ""), http.StatusConflict, codeInvalidState, "expired")
	b.refuse = func(c faults.Call) bool { return c.Operation == "Send" }
	expect(t, b.send(t, http.MethodPost, b.letter("hmac", "m2")+"/retry", ""), http.StatusServiceUnavailable, "", "no line")
}

func TestGroupsAndCounts(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 4)
	b.send(t, http.MethodPatch, b.letter("hmac", "m3"), `{"status":"Expired"}`)
	g := data[groups](t, b.get(t, "/api/dlq/groups?status=Pending"))
	if len(g.Items) != 2 || g.Items[0].Count != 3 || g.Items[1].Engines[0] != "tls" || !g.Complete || g.Examined != 4 {
		t.Errorf("%+v", g)
	}
	if l := data[list[deadLetterItem]](t, b.get(t, "/api/dlq?errorSignature="+g.Items[1].ErrorSignature)); len(l.Items) != 1 || l.Items[0].Engine != "tls" {
		t.Errorf("%+v", l)
	}
	if g := data[groups](t, b.get(t, "/api/dlq/groups?limit=1&engine=hmac")); len(g.Items) != 1 {
		t.Errorf("%+v", g)
	}
	want := []countItem{{"hmac", 3, 0, 1}, {"tls", 1, 0, 0}}
	testenv.Equal(t, "", want, data[list[countItem]](t, b.get(t, "/api/dlq/counts")).Items)
}

func (b *outboxBench) start(t *testing.T, path, body string, headers ...string) operationItem {
	t.Helper()
	rec := b.send(t, http.MethodPost, path, body, headers...)
	op := data[operationItem](t, rec)
	if rec.Code != http.StatusAccepted || rec.Header().Get("Operation-Location") != "/api/operations/"+op.ID || (rec.Header().Get("Retry-After") == "") != !op.EndedAt.IsZero() {
		t.Fatalf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	return op
}

func TestBulkOverDeadLetters(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 5)
	op := b.start(t, "/api/dlq/retry", `{"engine":"hmac","toDate":"2026-11-21T11:03:00Z","ratePerSecond":100}`, "Idempotency-Key", "k", "X-MS-CLIENT-PRINCIPAL", anyone())
	if op.Kind != bulk.DeadLetterKind || op.Request.By != idOf("Ada", "home")+" (Ada)" || op.Request.Action != bulk.ActionRetry {
		t.Errorf("%+v", op)
	}
	b.drive(t)
	if op = data[operationItem](t, b.get(t, "/api/operations/"+op.ID)); op.Status != "Succeeded" || op.Progress.Done != 3 {
		t.Errorf("%+v", op)
	}
	expire := b.start(t, "/api/dlq/expire", `{"olderThanDays":0}`)
	old := b.start(t, "/api/dlq/expire", `{"olderThanDays":1}`, "Idempotency-Key", "old")
	b.drive(t)
	expire, old = data[operationItem](t, b.get(t, "/api/operations/"+expire.ID)), data[operationItem](t, b.get(t, "/api/operations/"+old.ID))
	if expire.Progress.Done != 3 || old.Progress.Done != 0 || old.Status != "Succeeded" {
		t.Errorf("%+v, %+v", expire, old)
	}
	b.pass(time.Hour)
	if again := b.start(t, "/api/dlq/expire", `{"olderThanDays":1}`, "Idempotency-Key", "old"); again.ID != old.ID {
		t.Errorf("another operation %s, the first was %s", again.ID, old.ID)
	}
	expect(t, b.send(t, http.MethodPost, "/api/dlq/expire", `{"olderThanDays":2}`, "Idempotency-Key", "old"), http.StatusUnprocessableEntity, "", "another request with that key")
	for path, bodies := range map[string][]string{
		"/api/dlq/retry": {
			``, `{}`, `{"engine":"spn"}`, `{"engine":"hmac","ratePerSecond":0}`, `{"engine":"hmac","ratePerSecond":101}`, `{"engine":"hmac","canary":51}`,
			`{"engine":"hmac","canarySeconds":5}`, `{"engine":"hmac","ratePerSecond":"5"}`, `{"engine":"hmac","ratePerSecond":1.5}`, `{"ratePerSecond":5}`,
		},
		"/api/dlq/expire": {``, `{}`, `{"engine":"hmac"}`, `{"olderThanDays":-1}`, `{"olderThanDays":36501}`, `{"olderThanDays":1,"toDate":"2026-11-21"}`, `{"olderThanDays":1,"canary":5}`},
	} {
		for _, body := range bodies {
			if rec := b.send(t, http.MethodPost, path, body); rec.Code != http.StatusBadRequest || !strings.HasPrefix(decode(t, rec).Error.Code, "Invalid") {
				t.Errorf("%s %s: %d %s", path, body, rec.Code, rec.Body)
			}
		}
	}
}

// The same with Azurite.
func TestDeadLettersOnAzurite(t *testing.T) {
	t.Parallel()
	b := newBuriedOver(t, inAzurite(t), 40)
	first := data[retriedLetter](t, b.send(t, http.MethodPost, b.letter("hmac", "m7")+"/retry", ""))
	testenv.Equal(t, "the answer to the second request", first, data[retriedLetter](t, b.send(t, http.MethodPost, b.letter("hmac", "m7")+"/retry", "")))
	target := b.letter("hmac", "m8")
	etag := b.get(t, target).Header().Get("ETag")
	expect(t, b.send(t, http.MethodPatch, target, `{"status":"Expired"}`, "If-Match", etag), http.StatusOK, "", "")
	expect(t, b.send(t, http.MethodPatch, target, `{"status":"Pending"}`, "If-Match", etag), http.StatusPreconditionFailed, "", "stale")
	op := b.start(t, "/api/dlq/retry", `{"engine":"hmac"}`)
	b.drive(t)
	if op = data[operationItem](t, b.get(t, "/api/operations/"+op.ID)); op.Status != "Succeeded" || op.Progress.Done != 38 {
		t.Errorf("%+v", op)
	}
	want := []countItem{{"hmac", 0, 39, 1}, {"tls", 1, 0, 0}}
	testenv.Equal(t, "", want, data[list[countItem]](t, b.get(t, "/api/dlq/counts")).Items)
	if n, err := b.queues.Length(t.Context(), rotations); err != nil || n != 39 {
		t.Errorf("%d messages, %v", n, err)
	}
	removed, more, err := b.letters.Retention(t.Context(), engine.Retention{Engines: []string{"hmac", "tls"}}, b.now().Add(engine.DefaultKeep+time.Hour), 100)
	if removed != 40 || more || err != nil {
		t.Errorf("retention: %d, %v, %v", removed, more, err)
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 2)
	id := "c0"
	err := errors.Join(
		b.history.Record(t.Context(), engine.Entry{Engine: "hmac", Operation: "rotate", Status: engine.StatusFailed, CreatedAtUtc: b.now(), CorrelationID: id}),
		b.history.Record(t.Context(), engine.Entry{Engine: "tls", Operation: "renew", Status: engine.StatusSucceeded, CreatedAtUtc: b.now().Add(-2 * time.Hour), CorrelationID: id}),
		b.history.Record(t.Context(), engine.Entry{Engine: "tls", Operation: "renew", Status: engine.StatusSucceeded, CreatedAtUtc: b.now(), CorrelationID: "c0-20261121T120000.000000Z"}))
	testenv.OK(t, err)
	for start, correlation := range map[string]string{"hmac-i1": id, "hmac-i2": id, "tls-" + id: "of another run"} {
		testenv.Must(b.runtime.Start(t.Context(), orchestrator.Start{ID: start, Orchestrator: "other", Input: []byte("1"), CorrelationID: correlation}))(t)
	}
	testenv.OK(t, b.list.Flush(t.Context()))
	got := data[timelinePage](t, b.get(t, "/api/timeline/"+id))
	var kinds []string
	for _, item := range got.Items {
		if item.Kind == "message" {
			continue
		}
		if item.Kind != "orchestration" { // it began by the real clock
			kinds = append(kinds, string(item.Kind)+" "+item.Engine)
		} else if !strings.HasPrefix(item.Orchestration.ID, "hmac-i") || item.Orchestration.Status != orchestrator.Pending {
			t.Errorf("%+v", item.Orchestration)
		}
	}
	want := []string{"history tls", "deadLetter hmac", "deadLetter tls", "history hmac"}
	if diff := cmp.Diff(want, kinds); diff != "" || len(got.Items) != 8 || got.Truncated || got.CorrelationID != id {
		t.Errorf("%+v: %s", got, diff)
	}
	expect(t, b.get(t, "/api/timeline/nobody"), http.StatusNotFound, "", "")
}

func quoted(t *testing.T, value string) string {
	t.Helper()
	text, err := json.Marshal(value)
	testenv.OK(t, err)
	return string(text)
}

// hostileValues returns values that callers may write instead of valid ones.
func hostileValues() []string {
	return []string{
		"'", "''", `"`, "' or 1 eq 1 or '' eq '", "hmac' or PartitionKey ne '", "acme' or TenantId ne '", "%27", "x) or (1 eq 1", "$filter=true", "..", "../..", "%2e%2e",
		"/", "acme/", `\`, `a\b`, "~", "~P-", "~n-", "m-", "p-", "=3D", "acme%", "acme%00", "#", "?", "a\x00b", "\x00", "\n\r", "acme\n", "\x7f", "\xff\xfe", "\xed\xa0\x80",
		"\u202e", "日本語", "😀", "\ufeff", "{{7*7}}", "<script>", `{"$ne":""}`, "-1", "99999999999999999999", "1e9", "2026-13-45", "datetime'2026-01-01'",
		"0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "NaN", "null", "true", "*", "hmac,tls", strings.Repeat("é", 64), strings.Repeat("x", 10<<10), strings.Repeat("ü", 5<<10),
	}
}

// honest checks that an answer is a refusal, or shows no row: never a server error.
func honest(t *testing.T, value string, rec *httptest.ResponseRecorder) {
	t.Helper()
	text := rec.Body.String()
	rows := rec.Code == http.StatusOK && strings.Contains(text, `"items":[`) && !strings.Contains(text, `"items":[]`)
	// A timeline of nothing, an operation on nothing, and an instance with any visible id are valid, too.
	refused, made := rec.Code >= 400 && rec.Code <= 499, rec.Code == http.StatusCreated && strings.Contains(text, `"instanceId"`)
	if rows || !refused && !made && rec.Code != http.StatusOK && rec.Code != http.StatusAccepted {
		t.Errorf("%.40q: %d %.300s", value, rec.Code, text)
	}
}

// For any value of any parameter, member or segment of any route, the answer is a refusal, or a valid one.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 3)
	b.fill(t)
	testenv.OK(t, b.history.Record(t.Context(), engine.Entry{Engine: "hmac", Operation: "rotate", Status: engine.StatusFailed, CreatedAtUtc: b.now(), CorrelationID: "c0"}))
	try := func(what string, send func(t *testing.T, value string) *httptest.ResponseRecorder) {
		values := slices.DeleteFunc(hostileValues(), func(value string) bool { return !sample.Keep(t, what, value) })
		if len(values) == 0 {
			return
		}
		t.Run(what, func(t *testing.T) {
			sample.Repeat(t)
			for _, value := range values {
				honest(t, value, send(t, value))
			}
		})
	}
	there := strings.NewReplacer("{engine}", "hmac", "{rowKey}", "m0-20261121T100000.000000Z", "{tenant}", "acme", "{id}", anID, "{operation}", anID, "{correlationId}", "nobody")
	nowhere := strings.NewReplacer("{engine}", "tls", "{rowKey}", "x", "{tenant}", "nobody", "{id}", "x", "{operation}", "x")
	for path, item := range theContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			if op.Tags[0] == "probes" {
				continue // they read nothing of a request
			}
			body := ""
			if op.RequestBody != nil && op.RequestBody.Value.Required {
				body = `{"status":"Pending","engine":"tls"}`
			}
			for _, p := range op.Parameters {
				name, in := p.Value.Name, p.Value.In
				try(method+" "+path+" "+name, func(t *testing.T, value string) *httptest.ResponseRecorder {
					switch {
					case in == "path":
						filled := strings.NewReplacer("{"+name+"}", url.PathEscape(value), "{engine}", "hmac", "{rowKey}", "x", "{tenant}", "acme", "{id}", "x")
						return b.send(t, method, filled.Replace("/api"+path), body)
					case in == "header" && method == http.MethodPatch && value == "*":
						value = `"stale"` // "*" is no version that can be stale
						fallthrough
					case in == "header":
						return b.send(t, method, there.Replace("/api"+path), body, name, value)
					case name == "superseded" && slices.Contains(p.Value.Schema.Value.Enum, any(value)):
						value = "neither" // a value that selects nothing by itself
					}
					return b.send(t, method, there.Replace("/api"+path)+"?"+name+"="+url.QueryEscape(value), body)
				})
			}
			if op.RequestBody == nil {
				continue
			}
			for name := range op.RequestBody.Value.Content.Get("application/json").Schema.Value.Properties {
				try(method+" "+path+" body "+name, func(t *testing.T, value string) *httptest.ResponseRecorder {
					return b.send(t, method, nowhere.Replace("/api"+path), `{"`+name+`":`+quoted(t, value)+`}`)
				})
			}
		}
	}
	b.drive(t) // the accepted request finds nothing either
	if counts := data[list[countItem]](t, b.get(t, "/api/dlq/counts")).Items; counts[0] != (countItem{"hmac", 3, 0, 0}) {
		t.Errorf("%+v", counts)
	}
}

// checkEdit replaces the pipeline's check: it accepts a message unless its content declares an error.
func checkEdit(_ context.Context, _ engine.DeadLetter, message []byte) error {
	switch {
	case bytes.Contains(message, []byte("wrong")):
		return fmt.Errorf("%w: the tenant has to stay", engine.ErrEdit)
	case bytes.Contains(message, []byte("never")):
		return fmt.Errorf("%w: its run is damaged", engine.ErrNotEditable)
	}
	return nil
}

// The edited message is sent once, under the name of its sender; the dead letter has both, and the audit log has
// their hashes and no content.
func TestRetryEdited(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 2)
	target := b.letter("hmac", "m0")
	const message = `{"correlationId":"c0","note":"hush-hush","n":9007199254740993,"password":"abc"}`
	body := `{"message":` + quoted(t, message) + `}`
	etag := b.get(t, target).Header().Get("ETag")
	rec := b.send(t, http.MethodPost, target+"/retry-edited", body, "If-Match", etag, "X-MS-CLIENT-PRINCIPAL", anyone())
	first := data[retriedLetter](t, rec)
	if rec.Code != http.StatusOK || first.Status != engine.StatusResolved || first.MessageID == "" || first.RetriedBy != idOf("Ada", "home")+" (Ada)" {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	testenv.Equal(t, "the answer to the second request", first, data[retriedLetter](t, b.send(t, http.MethodPost, target+"/retry-edited", body, "If-Match", etag)))
	batch, err := b.queues.Receive(t.Context(), rotations, 32, time.Minute)
	if err != nil || len(batch) != 1 || !strings.HasSuffix(string(queues.Decode(batch[0].Text)), "\n"+message) {
		t.Errorf("in the queue: %v, %v", batch, err)
	}
	d := data[deadLetterDetail](t, b.get(t, target))
	if d.OriginalMessage != `{"correlationId":"c0"}` || d.SentMessage != strings.Replace(message, "abc", "[redacted]", 1) || d.ResolutionNotes != "Retried with an edited message" {
		t.Errorf("%+v", d)
	}
	page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{Target: strings.TrimPrefix(target, "/api/")}, 10, "")
	if err != nil || len(page.Entries) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	for _, e := range page.Entries {
		if e.Action != "retry edited" || !strings.Contains(e.Before, hash(d.OriginalMessage)) || !strings.Contains(e.After, hash(message)) || strings.Contains(fmt.Sprint(e), "hush") {
			t.Errorf("%+v", e)
		}
	}
}

func TestRetryEditedRefuses(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 2)
	target := b.letter("hmac", "m0")
	b.send(t, http.MethodPost, b.letter("hmac", "m1")+"/retry", "")
	for name, test := range map[string]struct {
		target, body, etag string
		status             int
		code, says         string
	}{
		"nothing":        {target, `{}`, "", http.StatusBadRequest, codeInvalidParameter, ""},
		"empty":          {target, `{"message":""}`, "", http.StatusBadRequest, codeInvalidParameter, ""},
		"no text":        {target, `{"message":{}}`, "", http.StatusBadRequest, codeInvalidBody, ""},
		"unknown member": {target, `{"message":"{}","more":1}`, "", http.StatusBadRequest, codeInvalidBody, ""},
		"wrong":          {target, `{"message":"wrong"}`, "", http.StatusUnprocessableEntity, codeInvalidMessage, "The edited message cannot be sent: the tenant has to stay."},
		"never":          {target, `{"message":"never"}`, "", http.StatusUnprocessableEntity, codeEditUnsupported, "The dead letter cannot be retried with an edited message: its run is damaged."},
		"stale":          {target, `{"message":"{}"}`, `W/"old"`, http.StatusPreconditionFailed, codePrecondition, ""},
		"sent already":   {b.letter("hmac", "m1"), `{"message":"{}"}`, "", http.StatusConflict, codeInvalidState, "another message"},
		"none":           {b.letter("hmac", "m9"), `{"message":"{}"}`, "", http.StatusNotFound, codeNotFound, ""},
		"too large":      {target, `{"message":"` + strings.Repeat("x", maxBody) + `"}`, "", http.StatusRequestEntityTooLarge, codeBodyTooLarge, ""},
	} {
		rec := b.send(t, http.MethodPost, test.target+"/retry-edited", test.body, "If-Match", test.etag)
		if e := decode(t, rec).Error; rec.Code != test.status || e.Code != test.code || !strings.Contains(e.Message, test.says) {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	if d := data[deadLetterDetail](t, b.get(t, target)); d.Status != engine.StatusPending || d.RetryID != "" {
		t.Errorf("it has changed: %+v", d)
	}
}

// Notes and assignees of a dead letter are shown and listed, once for repeated requests, and are in the audit log.
func TestNotesAndAssignments(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 3)
	target := b.letter("hmac", "m0")
	ada := func(t *testing.T, path, body string, headers ...string) deadLetterDetail {
		t.Helper()
		rec := b.send(t, http.MethodPost, target+path, body, append(headers, "X-MS-CLIENT-PRINCIPAL", anyone())...)
		if rec.Code != http.StatusOK || rec.Header().Get("ETag") == "" {
			t.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
		}
		return data[deadLetterDetail](t, rec)
	}
	for range 2 {
		ada(t, "/notes", `{"text":"password=abc, we wait"}`, "Idempotency-Key", "k")
	}
	d := ada(t, "/claim", "")
	if len(d.Notes) != 1 || d.Notes[0].Text != "password=[redacted], we wait" && !strings.Contains(d.Notes[0].Text, "[redacted]") || d.Notes[0].By != idOf("Ada", "home")+" (Ada)" || d.Assignee != idOf("Ada", "home") || d.AssigneeName != "Ada" || d.Status != engine.StatusPending {
		t.Errorf("%+v", d)
	}
	for query, want := range map[string]int{"me": 1, "nobody": 3, idOf("Ada", "home"): 1, "somebody": 0} {
		rec := b.get(t, "/api/dlq?assignee="+query, "X-MS-CLIENT-PRINCIPAL", anyone())
		if l := data[list[deadLetterItem]](t, rec); len(l.Items) != want || want == 1 && l.Items[0].AssigneeName != "Ada" {
			t.Errorf("of %s: %+v", query, l.Items)
		}
	}
	etag := b.get(t, target).Header().Get("ETag")
	if rec := b.send(t, http.MethodPost, target+"/claim", ""); rec.Code != http.StatusConflict || decode(t, rec).Error.Code != codeLetterHeld || !strings.Contains(rec.Body.String(), "Ada has it since") {
		t.Errorf("held: %d %s", rec.Code, rec.Body)
	}
	if d := ada(t, "/assign", `{"assignee":"t/bo","assigneeName":"Bo"}`, "If-Match", etag); d.Assignee != "t/bo" || d.AssigneeName != "Bo" {
		t.Errorf("%+v", d)
	}
	expect(t, b.send(t, http.MethodPost, target+"/release", "", "If-Match", etag), http.StatusPreconditionFailed, "", "stale")
	if d := ada(t, "/release", "{}"); d.Assignee != "" {
		t.Errorf("%+v", d)
	}
	b.send(t, http.MethodPost, target+"/retry", "")
	expect(t, b.send(t, http.MethodPost, target+"/claim", ""), http.StatusConflict, codeInvalidState, "resolved")
	for path, bodies := range map[string][]string{
		"/notes":   {``, `{}`, `{"text":""}`, `{"text":7}`, `{"note":"x"}`, `{"text":"` + strings.Repeat("x", engine.MaxNoteText+1) + `"}`},
		"/assign":  {``, `{}`, `{"assignee":"me"}`, `{"assignee":"nobody"}`, `{"assignee":"` + strings.Repeat("x", engine.MaxIdentity+1) + `"}`},
		"/claim":   {`{"assignee":"x"}`},
		"/release": {`[]`},
	} {
		for _, body := range bodies {
			expect(t, b.send(t, http.MethodPost, target+path, body), http.StatusBadRequest, "", "%s %.60s", path, body)
		}
	}
	for n := range engine.MaxNotes {
		rec := b.send(t, http.MethodPost, target+"/notes", `{"text":"x"}`)
		if last := n == engine.MaxNotes-1; last != (rec.Code == http.StatusConflict) {
			t.Fatalf("note %d: %d", n, rec.Code)
		}
	}
}

// named returns dead letters of a bench as in a body.
func (b *outboxBench) named(messages ...string) string {
	var rows []string
	for _, m := range messages {
		rows = append(rows, fmt.Sprintf(`{"engine":"hmac","rowKey":%q}`, strings.TrimPrefix(b.letter("hmac", m), "/api/dlq/hmac/")))
	}
	return "[" + strings.Join(rows, ",") + "]"
}

// Exactly the named dead letters are retried or expired; each counts once, and the audit log has their number and the
// hash of their names.
func TestBulkOverNamedDeadLetters(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 5)
	op := b.start(t, "/api/dlq/retry", `{"rows":`+b.named("m1", "m3", "m1")+`,"ratePerSecond":100}`, "Idempotency-Key", "k")
	if op.Request.Selected != 2 || op.Request.Selection == "" || op.Request.Rows != nil {
		t.Errorf("%+v", op.Request)
	}
	if again := b.start(t, "/api/dlq/retry", `{"rows":`+b.named("m1", "m3")+`,"ratePerSecond":100}`, "Idempotency-Key", "k"); again.ID != op.ID {
		t.Errorf("another operation: %+v", again)
	}
	expect(t, b.send(t, http.MethodPost, "/api/dlq/retry", `{"rows":`+b.named("m1", "m4")+`,"ratePerSecond":100}`, "Idempotency-Key", "k"), http.StatusUnprocessableEntity, "", "other rows with that key")
	b.drive(t)
	expire := b.start(t, "/api/dlq/expire", `{"rows":`+b.named("m0", "m1", "nothing")+`}`)
	b.drive(t)
	expire, op = data[operationItem](t, b.get(t, "/api/operations/"+expire.ID)), data[operationItem](t, b.get(t, "/api/operations/"+op.ID))
	if op.Progress.Done != 2 || op.Status != "Succeeded" || expire.Progress.Done != 1 || expire.Progress.PassedOver != 2 {
		t.Errorf("%+v, %+v", op, expire)
	}
	for m, want := range map[string]engine.DeadLetterStatus{"m0": engine.StatusExpired, "m1": engine.StatusResolved, "m2": engine.StatusPending, "m3": engine.StatusResolved, "m4": engine.StatusPending} {
		if d := data[deadLetterDetail](t, b.get(t, b.letter("hmac", m))); d.Status != want {
			t.Errorf("%s is %s", m, d.Status)
		}
	}
	page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{Target: bulk.DeadLetterKind}, 10, "")
	if err != nil || len(page.Entries) != 4 || !strings.Contains(page.Entries[len(page.Entries)-1].Before, op.Request.Selection) {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestNamedDeadLettersAreRefused(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 2)
	many := strings.TrimSuffix(strings.Repeat(`{"engine":"hmac","rowKey":"x"},`, bulk.MaxRows+1), ",")
	for _, body := range []string{`{"rows":[]}`, `{"rows":[` + many + `]}`, `{"rows":[{"engine":"spn","rowKey":"x"}]}`, `{"rows":[{"engine":"hmac","rowKey":""}]}`, `{"rows":[{"engine":"hmac"}]}`,
		`{"rows":[{"engine":"hmac","rowKey":"x","more":1}]}`, `{"rows":[{"engine":"hmac","rowKey":"` + strings.Repeat("x", engine.MaxInstanceIDLength+1) + `"}]}`, `{"rows":["x"]}`, `{"rows":{}}`,
		`{"rows":[{"engine":"hmac","rowKey":"x"}],"engine":"hmac"}`, `{"rows":[{"engine":"hmac","rowKey":"x"}],"toDate":"2026-11-21"}`} {
		for _, path := range []string{"/api/dlq/retry", "/api/dlq/expire"} {
			if rec := b.send(t, http.MethodPost, path, body); rec.Code != http.StatusBadRequest || !strings.HasPrefix(decode(t, rec).Error.Code, "Invalid") {
				t.Errorf("%s %.100s: %d %s", path, body, rec.Code, rec.Body)
			}
		}
	}
	expect(t, b.send(t, http.MethodPost, "/api/dlq/expire", `{"rows":`+b.named("m0")+`,"olderThanDays":0}`), http.StatusBadRequest, "", "both")
}

func TestShownMessage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ message, want, encoding string }{
		"a document":   {`{"n": 1, "password":"abc"}`, `{"n": 1, "password":"[redacted]"}`, ""},
		"text":         {`password=abc`, `password=[redacted]`, ""},
		"no text":      {"\xffpassword=abc", base64.StdEncoding.EncodeToString([]byte("\xffpassword=[redacted]")), "base64"},
		"nothing":      {"", "", ""},
		"no secret":    {`{"n": 1} `, `{"n": 1} `, ""},
		"other binary": {"\xff\x00", "/wA=", "base64"},
	} {
		text, encoding := shownMessage(engine.DeadLetter{OriginalMessage: []byte(test.message)})
		if text != test.want || encoding != test.encoding {
			t.Errorf("%s: %q in %q, not %q in %q", name, text, encoding, test.want, test.encoding)
		}
	}
}

// Dead letters and history of an engine that the app no longer has are listed and counted, and operators can decide
// on them. They are not retried.
func TestRemovedEngine(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 2)
	testenv.OK(t, b.history.CreateTable(t.Context()))
	if l := data[list[deadLetterItem]](t, b.get(t, "/api/dlq")); len(l.Items) != 3 {
		t.Fatalf("%+v", l)
	}
	testenv.OK(t, b.history.Register(t.Context(), []engine.Description{{Name: "hmac"}, {Name: "gone"}}, []string{"poller-gone"}))
	for _, name := range []string{"gone", "poller-gone"} {
		b.bury(t, engine.DeadLetter{Engine: name, MessageID: "m", OriginalQueue: rotations, ErrorMessage: "no line", LastFailureAtUtc: b.now(), CorrelationID: "c1"})
		testenv.OK(t, b.history.Record(t.Context(), engine.Entry{Engine: name, InstanceID: "i", Operation: "o", Status: engine.StatusFailed, RunStatus: engine.StatusFailed, CreatedAtUtc: b.now(), CorrelationID: "c1"}))
	}
	for path, want := range map[string]int{
		"/api/dlq": 5, "/api/dlq?engine=gone": 1, "/api/dlq?correlationId=c1": 3, "/api/dlq?status=Pending&limit=100": 5, "/api/dlq/counts": 4, "/api/dlq/groups": 3,
		"/api/history": 2, "/api/history?engine=poller-gone": 1, "/api/history?correlationId=c1": 2,
	} {
		if l := data[struct{ Items []json.RawMessage }](t, b.get(t, path)); len(l.Items) != want {
			t.Errorf("%s: %d items, want %d", path, len(l.Items), want)
		}
	}
	target := b.letter("gone", "m")
	expect(t, b.send(t, http.MethodPost, target+"/retry", ""), http.StatusUnprocessableEntity, codeRetryUnsupported, "no longer has the engine gone")
	expect(t, b.send(t, http.MethodPost, "/api/dlq/retry", `{"engine":"gone"}`), http.StatusBadRequest, codeInvalidParameter, "engine")
	expect(t, b.send(t, http.MethodPost, target+"/notes", `{"text":"known"}`), http.StatusOK, "", "known")
	expect(t, b.send(t, http.MethodPatch, target, `{"status":"Expired"}`), http.StatusOK, "", "Expired")
	expect(t, b.send(t, http.MethodPost, "/api/dlq/expire", `{"engine":"poller-gone","olderThanDays":0}`), http.StatusAccepted, "", "")
	expect(t, b.get(t, b.letter("never", "m")), http.StatusNotFound, "", "gone, hmac, poller-gone, tls")
}
