package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
)

const anID = bulk.OutboxKind + "-" + "6ba7b814-9dad-11d1-80b4-00c04fd430c8"

func (b *outboxBench) replayAll(t *testing.T, body string, headers ...string) (operationItem, string) {
	t.Helper()
	rec := b.send(t, http.MethodPost, outboxPath+"/replay", body, headers...)
	if rec.Code != http.StatusAccepted || rec.Header().Get("Retry-After") == "" || rec.Header().Get("Location") != rec.Header().Get("Operation-Location") {
		t.Fatalf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	return data[operationItem](t, rec), rec.Header().Get("Operation-Location")
}

// forget drops the first message of the runtime's queue.
func (b *outboxBench) forget(t *testing.T) {
	t.Helper()
	batch, err := b.queues.Receive(t.Context(), b.runtime.SignalQueue(), 1, time.Minute)
	if err != nil || len(batch) != 1 {
		t.Fatal(batch, err)
	}
	testenv.OK(t, b.queues.Delete(t.Context(), b.runtime.SignalQueue(), batch[0].ID, batch[0].PopReceipt))
}

func TestReplayByFilter(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	op, location := b.replayAll(t, `{"status":"dead","tenant":"acme","eventType":"type.1"}`, "x-correlation-id", "mine", "X-MS-CLIENT-PRINCIPAL", anyone())
	if op.Status != "NotStarted" || op.CorrelationID != "mine" || location != "/api/operations/"+op.ID || !op.EndedAt.IsZero() {
		t.Errorf("%+v at %s", op, location)
	}
	rec := b.get(t, location)
	if rec.Header().Get("Retry-After") == "" || data[operationItem](t, rec).Status != "NotStarted" {
		t.Errorf("%v %s", rec.Header(), rec.Body)
	}
	b.drive(t)
	rec = b.get(t, location)
	got := data[operationItem](t, rec)
	want := operationItem{
		ID: op.ID, Kind: bulk.OutboxKind, Status: "Succeeded", CorrelationID: "mine", CreatedAt: got.CreatedAt, LastUpdatedAt: got.LastUpdatedAt, EndedAt: got.EndedAt,
		Request:  bulk.Request{Action: string(outbox.ActionReplay), Status: string(outbox.StatusDead), Tenant: "acme", EventType: "type.1", To: b.now(), By: idOf("Ada", "home") + " (Ada)"},
		Progress: bulk.Progress{Slices: 1, Done: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.EndedAt.IsZero() || rec.Code != http.StatusOK || rec.Header().Get("Retry-After") != "" {
		t.Errorf("%d %v: %s", rec.Code, rec.Header(), diff)
	}
	for n, want := range map[int]outbox.Status{12: outbox.StatusDead, 13: outbox.StatusPending, 14: outbox.StatusDead, 15: outbox.StatusPending} {
		testenv.Equal(t, fmt.Sprintf("event %d", n), want, data[outboxItem](t, b.get(t, b.one("acme", n))).Status)
	}
	testenv.Equal(t, "another tenant's", outbox.StatusDead, data[outboxItem](t, b.get(t, b.one("/b%", 13))).Status)
	expect(t, b.send(t, http.MethodPost, location+"/cancel", ""), http.StatusConflict, codeInvalidState, "cancel at the end")
}

func TestReplayIsCanceled(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	_, location := b.replayAll(t, `{"status":"dead"}`)
	for _, body := range []string{`{"by":"someone"}`, `{"who":"me"}`} {
		expect(t, b.send(t, http.MethodPost, location+"/cancel", body), http.StatusBadRequest, "", "%s", body)
	}
	rec := b.send(t, http.MethodPost, location+"/cancel", "{}", "X-MS-CLIENT-PRINCIPAL", anyone())
	if rec.Code != http.StatusAccepted || rec.Header().Get("Operation-Location") != location {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
	b.forget(t) // its first message: the cancellation overtakes it
	b.drive(t)
	if got := data[operationItem](t, b.get(t, location)); got.Status != "Canceled" || got.EndedAt.IsZero() || got.Progress.Done != 0 {
		t.Errorf("%+v", got)
	}
	testenv.Equal(t, "dead messages, of which none is replayed", 8, len(b.all(t, "status=dead")))
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	const body = `{"status":"dead","tenant":"acme"}`
	first, location := b.replayAll(t, body, "Idempotency-Key", "k1", "x-correlation-id", "same")
	b.pass(1e9)
	for _, correlation := range []string{"same", "other"} {
		again, at := b.replayAll(t, body, "Idempotency-Key", "k1", "x-correlation-id", correlation)
		if diff := cmp.Diff(first, again); diff != "" || at != location {
			t.Errorf("%s: %s", correlation, diff)
		}
		rec := b.send(t, http.MethodPost, outboxPath+"/replay", `{"status":"failed"}`, "Idempotency-Key", "k1", "x-correlation-id", correlation)
		if rec.Code != http.StatusUnprocessableEntity || decode(t, rec).Error.Code != codeKeyReused {
			t.Errorf("another body: %d %s", rec.Code, rec.Body)
		}
	}
	if other, _ := b.replayAll(t, body, "Idempotency-Key", "k2"); other.ID == first.ID {
		t.Error("another key, the same operation")
	}
	if one, _ := b.replayAll(t, body); one.ID == first.ID {
		t.Error("no key, the same operation")
	}
}

func TestReplayIsRefused(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	for body, target := range map[string]string{
		``:                                      "status",
		`{}`:                                    "status",
		`{"status":""}`:                         "status",
		`{"status":"all"}`:                      "status",
		`{"status":"dead","toDate":"tomorrow"}`: "toDate",
		`{"status":"dead","tenants":"acme"}`:    "tenants",
		`{"status":"dead","tenant":["acme"]}`:   "tenant",
		`{"status":"dead","by":"someone"}`:      "by",
		`{"status":"dead","fromDate":"2026-11-22","toDate":"2026-11-21"}`:          "toDate",
		`{"status":"dead","` + strings.Repeat("x", 100) + `":1}`:                   strings.Repeat("x", 64),
		`{"status":"dead","tenant":"` + strings.Repeat("x", maxBody/2) + `"}`:      "tenant",
		`{"status":"dead","tenant":"acme"} {"status":"failed","tenant":"another"}`: "",
		`"dead"`: "",
	} {
		rec := b.send(t, http.MethodPost, outboxPath+"/replay", body)
		if a := decode(t, rec); rec.Code != http.StatusBadRequest || a.Error.Target != target || !strings.HasPrefix(a.Error.Code, "Invalid") {
			t.Errorf("%.60s: %d %s", body, rec.Code, rec.Body)
		}
	}
	rec := b.send(t, http.MethodPost, outboxPath+"/replay", `{"status":"dead"}`, "Idempotency-Key", "not printable: é")
	if rec.Code != http.StatusBadRequest || decode(t, rec).Error.Target != "Idempotency-Key" {
		t.Errorf("key: %d %s", rec.Code, rec.Body)
	}
}

// Other orchestrations are not operations.
func TestUnknownOperations(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	other := bulk.OutboxKind + "-" + "7ba7b814-9dad-11d1-80b4-00c04fd430c8"
	for _, id := range []string{"engine-1", other} {
		testenv.Must(b.runtime.Start(t.Context(), orchestrator.Start{ID: id, Orchestrator: "other", Input: []byte("1")}))(t)
	}
	for _, id := range []string{"engine-1", other, anID, bulk.OutboxKind + "-", "x"} {
		expect(t, b.get(t, "/api/operations/"+id), http.StatusNotFound, codeNotFound, "%s", id)
		expect(t, b.send(t, http.MethodPost, "/api/operations/"+id+"/cancel", ""), http.StatusNotFound, "", "cancel %s", id)
	}
}

// An operation that storage does not let finish is retried for minutes, and then reports only that it failed.
func TestOperationThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newFilledOutbox(t)
		_, location := b.replayAll(t, `{"status":"dead"}`)
		b.refuse = func(c faults.Call) bool { return c.Service == "tables" && c.Target == outbox.DefaultTable }
		began := time.Now()
		for range 1000 {
			b.drive(t)
			if got := data[operationItem](t, b.get(t, location)); !got.EndedAt.IsZero() {
				if got.Status != "Failed" || got.Error == nil || got.Error.Code != codeInternal || time.Since(began) < time.Minute {
					t.Errorf("%+v after %v", got, time.Since(began))
				}
				return
			}
			<-time.After(time.Second)
		}
		t.Error("the operation has no end")
	})
}

func TestTerminatedOperation(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	op, location := b.replayAll(t, `{"status":"dead"}`)
	b.forget(t) // its first message, so that it cannot end before
	testenv.OK(t, b.runtime.Terminate(t.Context(), op.ID, "enough"))
	b.drive(t)
	if got := data[operationItem](t, b.get(t, location)); got.Status != "Canceled" || got.EndedAt.IsZero() {
		t.Errorf("%+v", got)
	}
}

const operationsPath = "/api/operations"

// ids returns the ids of operations in a list.
func ids(t *testing.T, b *outboxBench, query string, headers ...string) []string {
	t.Helper()
	return each(walk[operationItem](t, b, operationsPath+query, headers...), func(o operationItem) string { return o.ID })
}

// The list has each operation's own fields, newest first, by status, by caller, and page by page; callers of a tenant
// see their own.
func TestListOperations(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	var want []string
	for n, who := range []string{caller("Ada", "home", "keeper"), caller("Bo", "home", "keeper"), caller("Ada", "home", "keeper")} {
		rec := b.send(t, http.MethodPost, "/api/dlq/expire", `{"instanceId":"i-`+fmt.Sprint(n)+`","olderThanDays":0}`, "X-MS-CLIENT-PRINCIPAL", who)
		want = append([]string{data[operationItem](t, rec).ID}, want...)
		if n == 0 {
			b.drive(t)
		}
	}
	red, _ := b.replayAll(t, `{"status":"dead","tenant":"`+accesstest.ID("red")+`"}`)
	want = append([]string{red.ID}, want...)
	testenv.OK(t, b.list.Flush(t.Context()))
	if diff := cmp.Diff(want, ids(t, b, "")); diff != "" || len(want) != 4 {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	one := data[operationItem](t, b.get(t, operationsPath+"/"+want[0]))
	if l := data[list[operationItem]](t, b.get(t, operationsPath+"?limit=1")); !cmp.Equal(one, l.Items[0]) {
		t.Errorf("in the list: %s", cmp.Diff(one, l.Items[0]))
	}
	for query, wants := range map[string][]string{"?status=Succeeded": want[3:], "?status=NotStarted": want[:3], "?status=Open": want[:3], "?status=Paused": nil, "?by=bo": want[2:3],
		"?by=ada&status=Open": want[1:2], "?by=nobody": nil} {
		testenv.Equal(t, query, wants, ids(t, b, query))
	}
	for _, tenant := range []string{"red", "blue"} {
		var theirs []string
		if tenant == "red" {
			theirs = want[:1]
		}
		if got := ids(t, b, "", "X-MS-CLIENT-PRINCIPAL", caller("Mallory", tenant, "keeper")); !cmp.Equal(theirs, got) {
			t.Errorf("the tenant %s sees %q, want %q", tenant, got, theirs)
		}
	}
	token := data[list[operationItem]](t, b.get(t, operationsPath+"?limit=2")).ContinuationToken
	expect(t, b.get(t, operationsPath+"?limit=2&status=Open&continuationToken="+token), http.StatusBadRequest, "", "a token of another list")
	testenv.Equal(t, "in pages", want, ids(t, b, "?limit=2"))
	for _, query := range []string{"?status=Done", "?limit=0", "?who=ada", "?continuationToken=x"} {
		expect(t, b.get(t, operationsPath+query), http.StatusBadRequest, "", "%s", query)
	}
}

// A paused operation reports that, and does nothing until it is resumed; both are in the audit log, under the
// caller's name.
func TestPauseOperation(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	op, location := b.replayAll(t, `{"status":"dead"}`)
	command := func(name string, want int, headers ...string) {
		t.Helper()
		if rec := b.send(t, http.MethodPost, location+"/"+name, "{}", headers...); rec.Code != want {
			t.Fatalf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	command("pause", http.StatusAccepted, "X-MS-CLIENT-PRINCIPAL", anyone())
	b.forget(t) // its first message: the pause overtakes it
	b.drive(t)
	for range 2 {
		if got := data[operationItem](t, b.get(t, location)); got.Status != "Paused" || !got.EndedAt.IsZero() || got.Progress.Done != 0 {
			t.Errorf("%+v", got)
		}
		command("pause", http.StatusAccepted)
		b.drive(t)
	}
	testenv.Equal(t, "dead messages, of which none is replayed while it is paused", 8, len(b.all(t, "status=dead")))
	expect(t, b.send(t, http.MethodPost, location+"/resume", `{"by":"someone"}`), http.StatusBadRequest, "", "with a body of others")
	command("resume", http.StatusForbidden, "X-MS-CLIENT-PRINCIPAL", caller("Guest", "home"))
	command("resume", http.StatusNotFound, "X-MS-CLIENT-PRINCIPAL", caller("Red", "red", "keeper"))
	command("resume", http.StatusAccepted, "X-MS-CLIENT-PRINCIPAL", anyone())
	b.drive(t)
	if got := data[operationItem](t, b.get(t, location)); got.Status != "Succeeded" || got.Progress.Done != 8 {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"pause", "resume"} {
		command(name, http.StatusConflict)
	}
	page, err := (&audit.Log{Tables: b.tables}).List(t.Context(), audit.Filter{Principal: accesstest.Caller{Tenant: "home", Object: "Ada"}.ID()}, 10, "")
	var acts []string
	for _, e := range page.Entries {
		acts = append(acts, e.Action+" "+e.Target+" "+e.Before)
	}
	if want := []string{"resume operations/" + op.ID + " Paused", "pause operations/" + op.ID + " NotStarted"}; err != nil || !slices.Equal(acts, want) {
		t.Errorf("audit log: %q, %v", acts, err)
	}
}
