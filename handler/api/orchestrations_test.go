package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

const orchestrationsPath = "/api/orchestrations"

// asked is the input of the approval: the item to order. "broken" cannot be ordered.
type asked struct {
	Item string `json:"item"`
}

// order returns an activity that fails for one item.
func order() *orchestrator.Activity[string, string] {
	return orchestrator.NewActivity("order", func(_ context.Context, item string) (string, error) {
		if item == "broken" {
			return "", orchestrator.Permanent(errors.New("it is broken"))
		}
		return "ordered " + item, nil
	})
}

// approval returns an orchestrator that waits for the event "decision", true or false, and then orders.
func approval() *orchestrator.Orchestrator[asked, string] {
	return orchestrator.NewOrchestrator("approval", func(ctx *orchestrator.Context, in asked) (string, error) {
		if err := ctx.SetStatus(map[string]string{"step": "waiting"}); err != nil {
			return "", err
		}
		yes, err := orchestrator.Event[bool](ctx, "decision").Await()
		if err != nil {
			return "", err
		}
		if !yes {
			return "refused", nil
		}
		return order().Call(ctx, in.Item).Await()
	})
}

// begin starts an approval and lets it run to its wait.
func (b *outboxBench) begin(t *testing.T, id, item string) {
	t.Helper()
	rec := b.send(t, http.MethodPost, orchestrationsPath, fmt.Sprintf(`{"orchestrator":"approval","id":%q,"input":{"item":%q},"correlationId":"c-1"}`, id, item))
	if rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
}

// tell sends a request to an orchestration and lets it take effect.
func (b *outboxBench) tell(t *testing.T, id, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	rec := b.send(t, http.MethodPost, orchestrationPath(id)+path, body, headers...)
	b.drive(t)
	return rec
}

func (b *outboxBench) shown(t *testing.T, id string) orchestrationDetail {
	t.Helper()
	return data[orchestrationDetail](t, b.get(t, orchestrationPath(id)))
}

func code(t *testing.T, rec *httptest.ResponseRecorder) string {
	t.Helper()
	a := decode(t, rec)
	if a.Error.Code == "" || rec.Header().Get("x-ms-error-code") != a.Error.Code {
		t.Fatalf("%d %s: no error", rec.Code, rec.Body)
	}
	return a.Error.Code
}

func TestOrchestrationFromStartToEnd(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	const id = "an id/with+signs ü"
	rec := b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"approval","id":"an id/with+signs ü","input":{"item":"book"},"businessReference":{"key":"o-1","parts":{"n":"1"}}}`,
		"x-correlation-id", "mine")
	item := data[summaryItem](t, rec)
	if rec.Code != http.StatusAccepted || rec.Header().Get("Location") != orchestrationPath(id) || item.Status != orchestrator.Pending || item.CorrelationID != "mine" || item.ID != id {
		t.Fatalf("%d %v %+v", rec.Code, rec.Header(), item)
	}
	b.drive(t)
	rec = b.get(t, rec.Header().Get("Location"))
	got := data[orchestrationDetail](t, rec)
	if rec.Header().Get("ETag") != tagOf(got.StateVersion) || got.Status != orchestrator.Running || got.WaitingFor != "Event" || string(got.Input) != `{"item":"book"}` ||
		got.Reference == nil || got.Reference.Parts["n"] != "1" || got.State == nil || got.ResumePointer == nil || got.LastExecutedBy == "" {
		t.Errorf("%s: %s", rec.Header().Get("ETag"), rec.Body)
	}
	want := []waitItem{{Kind: orchestrator.EventCall, Name: "decision", ScheduledAt: got.Waits[0].ScheduledAt}}
	if diff := cmp.Diff(want, got.Waits); diff != "" || cmp.Diff(got.CustomStatus, map[string]any{"step": "waiting"}) != "" {
		t.Error(diff, got.CustomStatus)
	}
	if rec := b.tell(t, id, "/events/other", `{"kept":1}`); rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	if got := b.shown(t, id); !slices.Equal(got.PendingEvents, []string{"other"}) || got.LastSignalID == "" {
		t.Errorf("%+v", got)
	}
	if rec := b.tell(t, id, "/events/Decision", "true"); rec.Code != http.StatusAccepted || rec.Header().Get("Location") != orchestrationPath(id) {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	got = b.shown(t, id)
	if got.Status != orchestrator.Completed || string(got.Output) != `"ordered book"` || got.EndedAt.IsZero() || got.Calls != 2 || len(got.Waits) != 0 || got.Failure != nil {
		t.Errorf("%+v", got)
	}
	for path, want := range map[string]string{"/events/decision": codeInvalidState, "/suspend": codeInvalidState, "/terminate": codeInvalidState, "/rewind": codeInvalidState} {
		expect(t, b.tell(t, id, path, ""), http.StatusConflict, want, "%s at the end", path)
	}
}

func TestOrchestrationRounds(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.begin(t, "a1", "book")
	b.tell(t, "a1", "/events/decision", "true")
	all := data[list[roundItem]](t, b.get(t, orchestrationPath("a1")+"/rounds"))
	if len(all.Items) < 3 || all.ContinuationToken != "" || all.Items[0].Learned[0].Kind != "ExecutionStarted" || string(all.Items[0].Learned[0].Payload) != `{"item":"book"}` {
		t.Fatalf("%+v", all)
	}
	token := "&continuationToken=" + data[list[roundItem]](t, b.get(t, orchestrationPath("a1")+"/rounds?limit=1")).ContinuationToken
	testenv.Equal(t, "", all.Items, walk[roundItem](t, b, orchestrationPath("a1")+"/rounds?limit=1"))
	b.begin(t, "a2", "book")
	for path, want := range map[string]string{
		"a2/rounds?limit=1" + token:               codeInvalidToken,
		"a1/rounds?continuationToken=e30":         codeInvalidToken,
		"a1/rounds?limit=0":                       codeInvalidParameter,
		"a1/rounds?limit=101":                     codeInvalidParameter,
		"nobody/rounds":                           codeNotFound,
		strings.Repeat("x", 401):                  codeNotFound,
		"nobody":                                  codeNotFound,
		"a1/rounds/1":                             codeNotFound,
		"a1/rounds?status=Running":                codeInvalidParameter,
		"a1/rounds?continuationToken=" + "%00%01": codeInvalidToken,
	} {
		if rec := b.get(t, orchestrationsPath+"/"+path); code(t, rec) != want {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
}

func TestOrchestrationCommands(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.begin(t, "a1", "book")
	if rec := b.tell(t, "a1", "/suspend", `{"reason":"lunch"}`); rec.Code != http.StatusAccepted || b.shown(t, "a1").Status != orchestrator.Suspended {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	rounds := data[list[roundItem]](t, b.get(t, orchestrationPath("a1")+"/rounds")).Items
	if last := rounds[len(rounds)-1].Learned[0]; last.Kind != "ExecutionSuspended" || last.Reason != "lunch (by "+"function-key"+")" {
		t.Errorf("%+v", last)
	}
	b.tell(t, "a1", "/events/decision", "true")
	if got := b.shown(t, "a1"); got.Status != orchestrator.Suspended {
		t.Errorf("an event got through: %+v", got)
	}
	b.tell(t, "a1", "/resume", "")
	if got := b.shown(t, "a1"); got.Status != orchestrator.Completed {
		t.Errorf("%+v", got)
	}
	b.begin(t, "a2", "book")
	b.tell(t, "a2", "/cancel", `{}`)
	b.begin(t, "a3", "book")
	b.tell(t, "a3", "/terminate", `{"reason":"no"}`)
	for id, want := range map[string]orchestrator.Status{"a2": orchestrator.Canceled, "a3": orchestrator.Terminated} {
		if got := b.shown(t, id); got.Status != want || got.Failure == nil {
			t.Errorf("%s: %+v", id, got)
		}
	}
	for _, body := range []string{`{"reason":"` + strings.Repeat("x", 1025) + `"}`, `{"why":""}`, `"no"`, `{"reason":1}`} {
		expect(t, b.tell(t, "a1", "/terminate", body), http.StatusBadRequest, "", "%.40s", body)
	}
	for _, path := range []string{"/suspend", "/resume", "/cancel", "/terminate", "/rewind", "/restart", "/events/x"} {
		expect(t, b.tell(t, "nobody", path, ""), http.StatusNotFound, codeNotFound, "%s of nobody", path)
	}
}

func TestOrchestrationRunsAgain(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.begin(t, "a1", "broken")
	if rec := b.tell(t, "a1", "/restart", ""); rec.Code != http.StatusConflict || code(t, rec) != codeActive || rec.Header().Get("Retry-After") == "" {
		t.Errorf("restart of one that runs: %d %s", rec.Code, rec.Body)
	}
	b.tell(t, "a1", "/events/decision", "true")
	if got := b.shown(t, "a1"); got.Status != orchestrator.Failed || got.Failure.Message == "" || !got.Failure.Permanent {
		t.Fatalf("%+v", got)
	}
	for range 2 { // the same request, once more
		if rec := b.tell(t, "a1", "/rewind", `{"reason":"mended"}`, "Idempotency-Key", "k1"); rec.Code != http.StatusAccepted {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		if got := b.shown(t, "a1"); got.Execution != 2 || got.Status != orchestrator.Failed {
			t.Errorf("%+v", got)
		}
	}
	b.tell(t, "a1", "/restart", "")
	if got := b.shown(t, "a1"); got.Execution != 3 || got.Status != orchestrator.Running {
		t.Errorf("%+v", got)
	}
	if rec := b.tell(t, "a1", "/terminate", ""); rec.Code != http.StatusAccepted {
		t.Fatal(rec.Code)
	}
	expect(t, b.tell(t, "a1", "/rewind", ""), http.StatusConflict, codeInvalidState, "rewind of what was terminated")
}

// A request that is repeated under its key has one effect, and one for an earlier state has none.
func TestOrchestrationRequestsAreIdempotent(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	const body = `{"orchestrator":"approval","input":{"item":"book"}}`
	first := data[summaryItem](t, b.send(t, http.MethodPost, orchestrationsPath, body, "Idempotency-Key", "k1"))
	b.drive(t)
	again := data[summaryItem](t, b.send(t, http.MethodPost, orchestrationsPath, body, "Idempotency-Key", "k1"))
	if again.ID != first.ID || again.Execution != 1 {
		t.Errorf("%+v after %+v", again, first)
	}
	rec := b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"approval","input":{"item":"car"}}`, "Idempotency-Key", "k1")
	if rec.Code != http.StatusUnprocessableEntity || code(t, rec) != codeKeyReused {
		t.Errorf("another body: %d %s", rec.Code, rec.Body)
	}
	if other := data[summaryItem](t, b.send(t, http.MethodPost, orchestrationsPath, body)); other.ID == first.ID {
		t.Error("no key, the same orchestration")
	}
	for range 2 {
		b.tell(t, first.ID, "/events/other", "1", "Idempotency-Key", "e1")
	}
	got := b.shown(t, first.ID)
	if !slices.Equal(got.PendingEvents, []string{"other"}) {
		t.Errorf("pending %v", got.PendingEvents)
	}
	rec = b.tell(t, first.ID, "/terminate", "", "If-Match", `"1"`)
	if rec.Code != http.StatusPreconditionFailed || code(t, rec) != codePrecondition || rec.Header().Get("ETag") != tagOf(got.StateVersion) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	// The event overtakes the command, which was for the state before it.
	tag := tagOf(got.StateVersion)
	b.send(t, http.MethodPost, orchestrationPath(first.ID)+"/events/other", "2", "If-Match", tag)
	b.tell(t, first.ID, "/terminate", "", "If-Match", tag)
	if got := b.shown(t, first.ID); got.Status != orchestrator.Running || len(got.PendingEvents) != 2 {
		t.Errorf("%+v", got)
	}
	expect(t, b.tell(t, first.ID, "/events/other", "", "Idempotency-Key", "é"), http.StatusBadRequest, "", "key")
}

// A start with an event starts an orchestration with it, or raises it for the running one, once for a key.
func TestStartWithAnEvent(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	const body = `{"orchestrator":"approval","id":"e1","input":{"item":"book"},"event":{"name":"other","data":1}}`
	for i, key := range []string{"k1", "k1", "k2"} {
		expect(t, b.send(t, http.MethodPost, orchestrationsPath, body, "Idempotency-Key", key), http.StatusAccepted, "", "start %d", i)
		b.drive(t)
	}
	if got := b.shown(t, "e1"); got.Execution != 1 || !slices.Equal(got.PendingEvents, []string{"other", "other"}) {
		t.Errorf("%+v", got)
	}
	expect(t, b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"approval","event":{}}`), http.StatusBadRequest, codeInvalidParameter, "no name")
}

func TestStartIsRefused(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.begin(t, "a1", "book")
	type want struct {
		status       int
		code, target string
	}
	for body, w := range map[string]want{
		``:                          {400, codeInvalidParameter, "orchestrator"},
		`{}`:                        {400, codeInvalidParameter, "orchestrator"},
		`{"orchestrator":"nobody"}`: {400, codeUnknownOrchestrator, "orchestrator"},
		`{"orchestrator":"approval","reuse":"sometimes"}`:                             {400, codeInvalidParameter, "reuse"},
		`{"orchestrator":"approval","id":"` + strings.Repeat("x", 401) + `"}`:         {400, codeInvalidParameter, "id"},
		`{"orchestrator":"approval","correlationId":"a b"}`:                           {400, codeInvalidParameter, "correlationId"},
		`{"orchestrator":"approval","businessReference":{}}`:                          {400, codeInvalidParameter, "businessReference"},
		`{"orchestrator":"approval","more":1}`:                                        {400, codeInvalidBody, "more"},
		`{"orchestrator":"approval","input":}`:                                        {400, codeInvalidBody, ""},
		`{"orchestrator":"approval","input":"` + strings.Repeat("x", maxBody) + `"}`:  {413, codeBodyTooLarge, ""},
		`{"orchestrator":"approval","id":"a1","correlationId":"c-2"}`:                 {409, codeExists, ""},
		`{"orchestrator":"approval","id":"a1","correlationId":"c-2","reuse":"ended"}`: {409, codeActive, ""},
	} {
		rec := b.send(t, http.MethodPost, orchestrationsPath, body)
		if a := decode(t, rec); rec.Code != w.status || a.Error.Code != w.code || a.Error.Target != w.target {
			t.Errorf("%.70s: %d %s", body, rec.Code, rec.Body)
		}
	}
	if got := b.shown(t, "a1"); got.Execution != 1 || got.Status != orchestrator.Running {
		t.Errorf("%+v", got)
	}
	expect(t, b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"approval","id":"a1","correlationId":"c-2","reuse":"any"}`), http.StatusAccepted, "", "any")
	b.drive(t)
	if got := b.shown(t, "a1"); got.Execution != 2 || got.CorrelationID != "c-2" {
		t.Errorf("%+v", got)
	}
	expect(t, b.send(t, http.MethodPost, orchestrationPath("a1")+"/events/e", "{"), http.StatusBadRequest, codeInvalidBody, "bad JSON")
	expect(t, b.send(t, http.MethodPost, orchestrationPath("a1")+"/events/"+strings.Repeat("x", 257), "1"), http.StatusNotFound, "", "long name")
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete} {
		expect(t, b.send(t, method, orchestrationsPath, ""), http.StatusMethodNotAllowed, "", "%s", method)
	}
}

func TestOrchestrationsArePurged(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for _, id := range []string{"a1", "a2", "b1", "b2"} {
		b.begin(t, id, "book")
	}
	remove := func(id string, headers ...string) *httptest.ResponseRecorder {
		return b.send(t, http.MethodDelete, orchestrationPath(id), "", headers...)
	}
	expect(t, remove("a1"), http.StatusConflict, codeActive, "")
	for _, id := range []string{"a1", "a2", "b1"} {
		b.tell(t, id, "/events/decision", "false")
	}
	expect(t, remove("a1", "If-Match", `"1"`), http.StatusPreconditionFailed, "", "")
	if rec := remove("a1"); rec.Code != http.StatusOK || data[purgedItem](t, rec).ID != "a1" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	expect(t, remove("a1"), http.StatusNotFound, "", "")
	rec := b.send(t, http.MethodPost, orchestrationsPath+"/purge", `{"orchestrator":"approval","idPrefix":"b","status":"Completed","olderThanDays":0,"fromDate":"2020-01-01"}`)
	if rec.Code != http.StatusAccepted || rec.Header().Get("Operation-Location") == "" {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
	// The runtime's clock is the real one: the bench's time is before the end of its orchestrations.
	op := data[operationItem](t, b.get(t, rec.Header().Get("Operation-Location")))
	if op.Status != "Succeeded" || op.Kind != "orchestration-bulk" {
		t.Errorf("%+v", op)
	}
	rec = b.send(t, http.MethodPost, orchestrationsPath+"/purge", `{"idPrefix":"b","endedBefore":"2999-01-01"}`)
	b.drive(t)
	op = data[operationItem](t, b.get(t, rec.Header().Get("Operation-Location")))
	if op.Progress.Done != 1 || op.Progress.PassedOver != 0 {
		t.Errorf("%+v", op)
	}
	for id, want := range map[string]int{"a2": 200, "b1": 404, "b2": 200} {
		expect(t, b.get(t, orchestrationPath(id)), want, "", "%s", id)
	}
	for body, target := range map[string]string{
		`{}`: "olderThanDays",
		`{"olderThanDays":1,"endedBefore":"2026-01-01"}`: "olderThanDays",
		`{"olderThanDays":-1}`:                           "olderThanDays",
		`{"olderThanDays":1,"status":"Running"}`:         "status",
		`{"olderThanDays":1,"engine":"hmac"}`:            "engine",
		`{"endedBefore":"yesterday"}`:                    "endedBefore",
	} {
		rec := b.send(t, http.MethodPost, orchestrationsPath+"/purge", body)
		if a := decode(t, rec); rec.Code != http.StatusBadRequest || a.Error.Target != target {
			t.Errorf("%s: %d %s", body, rec.Code, rec.Body)
		}
	}
}

// A payload that would make an answer large is replaced by its size.
func TestLargePayloadsAreLeftOut(t *testing.T) {
	t.Parallel()
	if shown, size := shownPayload(json.RawMessage(strings.Repeat(" ", maxShownPayload-1) + "1")); len(shown) != maxShownPayload || size != 0 {
		t.Error(len(shown), size)
	}
	if shown, size := shownPayload(json.RawMessage(strings.Repeat(" ", maxShownPayload+1))); shown != nil || size != maxShownPayload+1 {
		t.Error(len(shown), size)
	}
}

// The list shows the index, newest first; a token continues only the same list.
func TestOrchestrationsAreListed(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for _, id := range []string{"a/1", "a/2", "b/1", "b/2"} {
		b.begin(t, id, "book")
	}
	b.tell(t, "a/2", "/events/decision", "true")
	b.tell(t, "b/1", "/suspend", "")
	rec := b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"other","id":"c","input":1,"businessReference":{"key":"order 7"}}`)
	if rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
	testenv.OK(t, b.list.Flush(t.Context()))
	ids := func(items []summaryItem) []string {
		all := each(items, func(i summaryItem) string { return i.ID })
		slices.Sort(all)
		return all
	}
	for query, want := range map[string][]string{
		"":                                      {"a/1", "a/2", "b/1", "b/2", "c"},
		"?orchestrator=approval":                {"a/1", "a/2", "b/1", "b/2"},
		"?orchestrator=approval&status=Running": {"a/1", "b/2"},
		"?status=Completed":                     {"a/2", "c"},
		"?status=Suspended&limit=1":             {"b/1"},
		"?idPrefix=a/":                          {"a/1", "a/2"},
		"?idPrefix=a/&status=Completed":         {"a/2"},
		"?tag=order%207":                        {"c"},
		"?customStatus=waiting&status=Running":  {"a/1", "b/2"},
		"?fromDate=2999-01-01":                  nil,
		"?toDate=2001-01-01":                    nil,
		"?fromDate=2001-01-01&idPrefix=b":       {"b/1", "b/2"},
	} {
		page := data[list[summaryItem]](t, b.get(t, orchestrationsPath+query))
		if diff := cmp.Diff(want, ids(page.Items)); diff != "" || page.ContinuationToken != "" {
			t.Errorf("%s: %q %s", query, page.ContinuationToken, diff)
		}
	}
	token := "&continuationToken=" + data[list[summaryItem]](t, b.get(t, orchestrationsPath+"?limit=1")).ContinuationToken
	for _, other := range []string{"?status=Running" + token, "?idPrefix=a" + token, "?continuationToken=e30"} {
		expect(t, b.get(t, orchestrationsPath+other), http.StatusBadRequest, codeInvalidToken, "%s", other)
	}
	paged := walk[summaryItem](t, b, orchestrationsPath+"?limit=1")
	if diff := cmp.Diff([]string{"a/1", "a/2", "b/1", "b/2", "c"}, ids(paged)); diff != "" || paged[0].CreatedAt.Before(paged[4].CreatedAt) {
		t.Error(diff)
	}
	for _, query := range []string{"?status=Ended", "?limit=0", "?limit=101", "?engine=x", "?tag=", "?idPrefix=" + strings.Repeat("x", 401), "?fromDate=x"} {
		expect(t, b.get(t, orchestrationsPath+query), http.StatusBadRequest, codeInvalidParameter, "%s", query)
	}
}

// A history is downloaded without secrets, under a portable file name, and shows the same as the orchestration when
// it is opened.
func TestHistoryIsDownloadedAndOpened(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	const id = "an id/with\"signs ü"
	rec := b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"approval","id":"an id/with\"signs ü","input":{"item":"book","password":"hunter-1"},"correlationId":"c-1"}`)
	if rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
	b.tell(t, id, "/events/decision", "true")
	file := b.get(t, orchestrationPath(id)+"/history")
	if name := file.Header().Get("Content-Disposition"); file.Code != http.StatusOK || name != `attachment; filename="history-an_id_with_signs__.json"` {
		t.Fatalf("%d %s %s", file.Code, name, file.Body)
	}
	if text := file.Body.String(); strings.Contains(text, "hunter") || !strings.Contains(text, `"format": "roundhouse-history"`) || !strings.Contains(text, `"version": 1`) {
		t.Errorf("the file: %s", text)
	}
	if err := orchestrator.Replay(approval(), file.Body.Bytes()); err != nil {
		t.Errorf("replay: %v", err)
	}
	opened := data[openedHistory](t, b.send(t, http.MethodPost, openHistoryPath, file.Body.String()))
	live := b.shown(t, id)
	rounds := data[list[roundItem]](t, b.get(t, orchestrationPath(id)+"/rounds"))
	testenv.Equal(t, "rounds, live and in the file", rounds.Items, opened.Rounds)
	if o := opened.Orchestration; o.ID != id || o.Status != live.Status || string(o.Output) != string(live.Output) || string(o.Input) != string(live.Input) || o.CorrelationID != "c-1" || o.Calls != live.Calls || !o.EndedAt.Equal(live.EndedAt) {
		t.Errorf("%+v, want %+v", o, live)
	}
	kinds := map[string]int{}
	for _, i := range opened.Timeline {
		kinds[string(i.Kind)]++
	}
	if kinds["orchestration"] != 1 || kinds["call"] != 2 || kinds["message"] != 1 {
		t.Errorf("timeline: %v", kinds)
	}
	other := accesstest.Caller{Tenant: "red", Object: "mallory", AppRoles: []string{"keeper"}}
	for _, path := range []string{orchestrationPath(id), orchestrationPath("nobody")} {
		expect(t, b.send(t, http.MethodGet, path+"/history", "", "X-MS-CLIENT-PRINCIPAL", other.Header()), http.StatusNotFound, "", "%s for another tenant", path)
	}
	if rec := b.get(t, orchestrationPath(id)+"/history?limit=1"); code(t, rec) != codeInvalidParameter {
		t.Errorf("%d", rec.Code)
	}
}

// An invalid or too large history is refused.
func TestOpenHistoryRefuses(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for body, want := range map[string]string{
		``: codeNoHistory, `{}`: codeNoHistory, `{"id":"a","executions":[{"execution":1}]}`: codeNoHistory, `{"format":"roundhouse-history","version":7,"id":"a"}`: codeNewerSchema,
		`{"id":"` + strings.Repeat("x", MaxHistory) + `"}`: codeBodyTooLarge,
	} {
		if rec := b.send(t, http.MethodPost, openHistoryPath, body); code(t, rec) != want {
			t.Errorf("%.60s: %d %s", body, rec.Code, rec.Body)
		}
	}
}

// A long history is cut, with the number of omitted entries.
func TestOpenHistoryIsBounded(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	rounds := `{"learned":[{"kind":"ExecutionStarted","at":1,"name":"x"}]}` + strings.Repeat(`,{"decided":[{"kind":"ActivityScheduled","at":2,"name":"y","task":1}]}`, maxOpened+9)
	opened := data[openedHistory](t, b.send(t, http.MethodPost, openHistoryPath, `{"id":"a","executions":[{"execution":1,"rounds":[`+rounds+`]}]}`))
	if len(opened.Rounds) != maxOpened || opened.EntriesLeft != 10 || len(opened.Timeline) != maxOpened || opened.ItemsLeft == 0 {
		t.Errorf("%d rounds, %d entries left; %d items, %d left", len(opened.Rounds), opened.EntriesLeft, len(opened.Timeline), opened.ItemsLeft)
	}
	large := `{"kind":"ActivityScheduled","at":2,"task":1,"payload":"` + strings.Repeat("x", 100<<10) + `"}`
	rounds = `{"learned":[{"kind":"ExecutionStarted","at":1,"name":"x"}]}` + strings.Repeat(`,{"decided":[`+large+`]}`, 40)
	opened = data[openedHistory](t, b.send(t, http.MethodPost, openHistoryPath, `{"id":"a","executions":[{"execution":1,"rounds":[`+rounds+`]}]}`))
	if len(opened.Rounds) != 22 || opened.EntriesLeft != 19 {
		t.Errorf("%d rounds, %d entries left", len(opened.Rounds), opened.EntriesLeft)
	}
}

// Any file is refused or can be shown.
func FuzzOpenedHistory(f *testing.F) {
	golden, err := os.ReadFile("../../orchestrator/orchestratortest/testdata/order.json")
	testenv.OK(f, err)
	f.Add(golden)
	for _, kind := range []string{"ExecutionStarted", "ActivityScheduled", "ChildScheduled", "EventRaised", "ExecutionContinued", "ExecutionSuspended", "ExecutionStalled", "AttemptFailed"} {
		f.Add([]byte(`{"id":"a","executions":[{"execution":1,"rounds":[{"learned":[{"kind":"ExecutionStarted","at":1}],"decided":[{"kind":"ActivityScheduled","at":2,"task":1}]},
			{"learned":[{"kind":"` + kind + `","at":3,"task":1,"undoes":-1,"failure":{"message":"x"},"origin":{}}],"decided":[{"kind":"` + kind + `","at":4,"task":-9,"failure":{"message":"x"}}]}]}]}`))
	}
	a := &api{now: time.Now}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := orchestrator.OpenHistory(text)
		if err != nil {
			return
		}
		if _, err := json.Marshal(a.openedOf(h)); err != nil {
			t.Errorf("what was opened cannot be shown: %v", err)
		}
	})
}
