package api

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/internal/testenv"
)

const operationsPath = "/api/operations"

// ids are those of operations in a list.
func ids(t *testing.T, b *outboxBench, query string, headers ...string) (all []string) {
	t.Helper()
	l := data[list[operationItem]](t, b.get(t, operationsPath+query, headers...))
	for _, o := range l.Items {
		all = append(all, o.ID)
	}
	return all
}

// The list has what each operation shows of itself, newest first, by status, by who, and page by page; callers of a tenant see their own.
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
	testenv.Check(t, b.list.Flush(t.Context()))
	if diff := cmp.Diff(want, ids(t, b, "")); diff != "" || len(want) != 4 {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	one := data[operationItem](t, b.get(t, operationsPath+"/"+want[0]))
	if l := data[list[operationItem]](t, b.get(t, operationsPath+"?limit=1")); !cmp.Equal(one, l.Items[0]) {
		t.Errorf("in the list: %s", cmp.Diff(one, l.Items[0]))
	}
	for query, wants := range map[string][]string{"?status=Succeeded": want[3:], "?status=NotStarted": want[:3], "?status=Open": want[:3], "?status=Paused": nil, "?by=bo": want[2:3],
		"?by=ada&status=Open": want[1:2], "?by=nobody": nil} {
		testenv.Diff(t, wants, ids(t, b, query), "%s", query)
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
	var paged []string
	for token := ""; ; {
		l := data[list[operationItem]](t, b.get(t, operationsPath+"?limit=2"+token))
		for _, o := range l.Items {
			paged = append(paged, o.ID)
		}
		if l.ContinuationToken == "" {
			break
		}
		if rec := b.get(t, operationsPath+"?limit=2&status=Open&continuationToken="+l.ContinuationToken); rec.Code != http.StatusBadRequest {
			t.Errorf("a token of another list: %d", rec.Code)
		}
		token = "&continuationToken=" + l.ContinuationToken
	}
	testenv.Diff(t, want, paged, "in pages")
	for _, query := range []string{"?status=Done", "?limit=0", "?who=ada", "?continuationToken=x"} {
		if rec := b.get(t, operationsPath+query); rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", query, rec.Code)
		}
	}
}

// A paused operation says so, and does nothing until it is resumed; both are in the audit log, under the name of who did it.
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
	b.forget(t) // the message that begins it: the pause overtakes it
	b.drive(t)
	for range 2 {
		if got := data[operationItem](t, b.get(t, location)); got.Status != "Paused" || !got.EndedAt.IsZero() || got.Progress.Done != 0 {
			t.Errorf("%+v", got)
		}
		command("pause", http.StatusAccepted)
		b.drive(t)
	}
	if len(b.all(t, "status=dead")) != 8 {
		t.Error("messages were replayed while it was paused")
	}
	if rec := b.send(t, http.MethodPost, location+"/resume", `{"by":"someone"}`); rec.Code != http.StatusBadRequest {
		t.Errorf("with a body of others: %d", rec.Code)
	}
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
