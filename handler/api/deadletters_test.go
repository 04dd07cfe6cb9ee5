package api

import (
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

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

const rotations = "hmac-rotation-queue"

// newBuried holds so many pending dead letters of hmac, a minute apart, the oldest an hour ago, and one of tls, which has no queue here.
func newBuried(t *testing.T, n int) *outboxBench {
	t.Helper()
	return newBuriedOver(t, inMemory(), n)
}

func newBuriedOver(t *testing.T, s stores, n int) *outboxBench {
	t.Helper()
	b := newOutboxBenchOver(t, s)
	testenv.Check(t, b.queues.CreateQueue(t.Context(), rotations))
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
	testenv.Done(t)(b.letters.Add(t.Context(), l))
}

func (b *outboxBench) letter(engineName, message string) string {
	return "/api/dlq/" + engineName + "/" + message + "-" + b.now().Add(-2*time.Hour).Format("20060102T150405.000000Z")
}

// anyone is one of the keepers.
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
	if rec := b.send(t, http.MethodPatch, b.letter("hmac", "nothing"), `{"status":"Resolved"}`); rec.Code != http.StatusNotFound {
		t.Errorf("nothing: %d", rec.Code)
	}
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
	if again := data[retriedLetter](t, b.send(t, http.MethodPost, target+"/retry", "{}")); again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
	batch, err := b.queues.Receive(t.Context(), rotations, 32, time.Minute)
	if err != nil || len(batch) != 1 || batch[0].ID != first.MessageID || !strings.HasSuffix(string(queues.Decode(batch[0].Text)), "\n"+`{"correlationId":"c0"}`) {
		t.Errorf("in the queue: %v, %v", batch, err)
	}
	if d := data[deadLetterDetail](t, b.get(t, target)); d.ResolutionNotes != "Retried" || d.RetryMessageID != first.MessageID || d.RetryID != first.RetryID {
		t.Errorf("%+v", d)
	}
	if rec := b.send(t, http.MethodPost, b.letter("tls", "m")+"/retry", ""); rec.Code != http.StatusUnprocessableEntity || decode(t, rec).Error.Code != codeRetryUnsupported {
		t.Errorf("no queue: %d %s", rec.Code, rec.Body)
	}
	b.send(t, http.MethodPatch, b.letter("hmac", "m1"), `{"status":"Expired"}`)
	if rec := b.send(t, http.MethodPost, b.letter("hmac", "m1")+"/retry", ""); rec.Code != http.StatusConflict || decode(t, rec).Error.Code != codeInvalidState {
		t.Errorf("expired: %d %s", rec.Code, rec.Body)
	}
	b.refuse = func(c faults.Call) bool { return c.Operation == "Send" }
	if rec := b.send(t, http.MethodPost, b.letter("hmac", "m2")+"/retry", ""); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("no line: %d %s", rec.Code, rec.Body)
	}
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
	testenv.Diff(t, want, data[list[countItem]](t, b.get(t, "/api/dlq/counts")).Items, "")
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
	if rec := b.send(t, http.MethodPost, "/api/dlq/expire", `{"olderThanDays":2}`, "Idempotency-Key", "old"); rec.Code != http.StatusUnprocessableEntity {
		t.Errorf("another request with that key: %d", rec.Code)
	}
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

// The same on the wire of Azurite.
func TestDeadLettersOnAzurite(t *testing.T) {
	t.Parallel()
	b := newBuriedOver(t, inAzurite(t), 40)
	first := data[retriedLetter](t, b.send(t, http.MethodPost, b.letter("hmac", "m7")+"/retry", ""))
	if again := data[retriedLetter](t, b.send(t, http.MethodPost, b.letter("hmac", "m7")+"/retry", "")); again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
	target := b.letter("hmac", "m8")
	etag := b.get(t, target).Header().Get("ETag")
	if rec := b.send(t, http.MethodPatch, target, `{"status":"Expired"}`, "If-Match", etag); rec.Code != http.StatusOK {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec := b.send(t, http.MethodPatch, target, `{"status":"Pending"}`, "If-Match", etag); rec.Code != http.StatusPreconditionFailed {
		t.Errorf("stale: %d %s", rec.Code, rec.Body)
	}
	op := b.start(t, "/api/dlq/retry", `{"engine":"hmac"}`)
	b.drive(t)
	if op = data[operationItem](t, b.get(t, "/api/operations/"+op.ID)); op.Status != "Succeeded" || op.Progress.Done != 38 {
		t.Errorf("%+v", op)
	}
	want := []countItem{{"hmac", 0, 39, 1}, {"tls", 1, 0, 0}}
	testenv.Diff(t, want, data[list[countItem]](t, b.get(t, "/api/dlq/counts")).Items, "")
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
	testenv.Check(t, err)
	for start, correlation := range map[string]string{"hmac-i1": id, "hmac-i2": id, "tls-" + id: "of another run"} {
		testenv.Done(t)(b.runtime.Start(t.Context(), orchestrator.Start{ID: start, Orchestrator: "other", Input: []byte("1"), CorrelationID: correlation}))
	}
	testenv.Check(t, b.list.Flush(t.Context()))
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
	if rec := b.get(t, "/api/timeline/nobody"); rec.Code != http.StatusNotFound {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func quoted(t *testing.T, value string) string {
	t.Helper()
	text, err := json.Marshal(value)
	testenv.Check(t, err)
	return string(text)
}

// Whatever stands in whatever parameter, member or segment of any route: the answer is a refusal, or an honest one that
// shows no row which was not asked for; never a failure of the service.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	values := []string{
		"'", "''", `"`, "' or 1 eq 1 or '' eq '", "hmac' or PartitionKey ne '", "%27", "x) or (1 eq 1", "$filter=true", "..", "../..", "/", `\`, "~P-", "~n-", "#", "?",
		"a\x00b", "\x00", "\n\r", "\x7f", "\xff\xfe", "\xed\xa0\x80", "\u202e", "日本語", "😀", "\ufeff", "{{7*7}}", "<script>", "-1", "99999999999999999999", "1e9",
		"2026-13-45", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "NaN", "null", "true", "*", "hmac,tls", strings.Repeat("x", 10<<10), strings.Repeat("ü", 5<<10),
	}
	b := newBuried(t, 3)
	b.fill(t)
	testenv.Check(t, b.history.Record(t.Context(), engine.Entry{Engine: "hmac", Operation: "rotate", Status: engine.StatusFailed, CreatedAtUtc: b.now(), CorrelationID: "c0"}))
	check := func(what, value string, rec *httptest.ResponseRecorder) {
		t.Helper()
		switch {
		case rec.Code == http.StatusOK && strings.Contains(rec.Body.String(), `"items":[`):
			if !strings.Contains(rec.Body.String(), `"items":[]`) {
				t.Errorf("%s=%.40q gave rows: %.300s", what, value, rec.Body)
			}
		case rec.Code == http.StatusCreated && strings.Contains(rec.Body.String(), `"instanceId"`): // an id may be any text that can be seen
		case rec.Code == http.StatusOK, rec.Code == http.StatusAccepted:
			// A timeline of nothing, or an operation on nothing, is honest, too; rows are checked above.
		case rec.Code < 400 || rec.Code > 499:
			t.Errorf("%s=%.40q: %d %.300s", what, value, rec.Code, rec.Body)
		}
	}
	doc := theContract(t)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.Tags[0] == "probes" {
				continue // they read nothing of a request
			}
			for _, value := range values {
				for _, p := range op.Parameters {
					target, headers := strings.NewReplacer("{engine}", "hmac", "{rowKey}", "m0-20261121T100000.000000Z", "{tenant}", "acme",
						"{id}", anID, "{operation}", anID, "{correlationId}", "nobody").Replace("/api"+path), []string(nil)
					switch p.Value.In {
					case "path":
						target = strings.NewReplacer("{"+p.Value.Name+"}", url.PathEscape(value), "{engine}", "hmac", "{rowKey}", "x", "{tenant}", "acme", "{id}", "x").Replace("/api" + path)
					case "query":
						if p.Value.Schema.Value.Enum != nil && slices.Contains(p.Value.Schema.Value.Enum, any(value)) && p.Value.Name == "superseded" {
							continue // it is one of the values, and selects nothing by itself
						}
						target += "?" + p.Value.Name + "=" + url.QueryEscape(value)
					case "header":
						headers = []string{p.Value.Name, value}
					}
					body := ""
					if op.RequestBody != nil && op.RequestBody.Value.Required {
						body = `{"status":"Pending","engine":"tls"}`
					}
					if method == http.MethodPatch && p.Value.In == "header" && value == "*" {
						continue // that is no version that can be stale
					}
					check(method+" "+path+" "+p.Value.Name, value, b.send(t, method, target, body, headers...))
				}
				if op.RequestBody == nil {
					continue
				}
				for name := range op.RequestBody.Value.Content.Get("application/json").Schema.Value.Properties {
					target := strings.NewReplacer("{engine}", "tls", "{rowKey}", "x", "{tenant}", "nobody", "{id}", "x", "{operation}", "x").Replace("/api" + path)
					check(method+" "+path+" body "+name, value, b.send(t, method, target, `{"`+name+`":`+quoted(t, value)+`}`))
				}
			}
		}
	}
	b.drive(t) // what was accepted finds nothing either
	if counts := data[list[countItem]](t, b.get(t, "/api/dlq/counts")).Items; counts[0] != (countItem{"hmac", 3, 0, 0}) {
		t.Errorf("%+v", counts)
	}
}
