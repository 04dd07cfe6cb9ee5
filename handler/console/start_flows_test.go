package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/orchestrator"
)

const startStore = console.Root + "/start/store"

// newStarting is an app with an engine whose input has a schema, and whose runs answer with their input.
func newStarting(t *testing.T, settings map[string]string) bench {
	t.Helper()
	keep := orchestrator.NewActivity("keep", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil })
	run := func(ctx *orchestrator.Context, r engine.Request[json.RawMessage]) (json.RawMessage, error) {
		return keep.Call(ctx, r.Input).Await()
	}
	return bench{Host: handlertest.New(t, handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{{Name: "store", Queue: "store-queue", Orchestrator: engine.Orchestrate("store", run), Operations: []orchestrator.AnyActivity{keep},
			InputSchema: json.RawMessage(`{"type": "object", "properties": {"days": {"type": "integer", "title": "Days"}, "why": {"type": "string", "maxLength": 40}}}`)}}, nil
	}}, settings)}
}

// open opens a form, and gives the key that it is sent with.
func (b bench) open(t *testing.T, path string, as accesstest.Caller) url.Values {
	t.Helper()
	status, text := b.Do(http.MethodGet, path, "", as.Sign)
	m := field.FindStringSubmatch(text)
	if status != http.StatusOK || m == nil || m[1] != "key" {
		t.Fatalf("%d: no form in %s", status, text)
	}
	return url.Values{"key": {m[2]}}
}

// Somebody starts a run with a form that is made from the engine's schema: once, however often it is sent, and under that name. The
// page that follows has both ids, with links.
func TestStart(t *testing.T) {
	t.Parallel()
	b := newStarting(t, inAzure())
	form := b.open(t, startStore, ann("Operator"))
	form.Set("correlationId", "from-the-console")
	form.Set("f0", "9007199254740993")
	form.Set("f1", "the audit")
	const path = runs + "/store-from-the-console"
	for range 2 {
		if rec := b.post(t, startStore, form, ann("Operator")); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != path+"?done=start" {
			t.Fatalf("%d to %s: %s", rec.Code, rec.Header().Get("Location"), rec.Body)
		}
	}
	b.Deliver()
	out := b.Outcome("store-from-the-console")
	if string(out.Output) != `{"days":9007199254740993,"why":"the audit"}` || out.Execution != 1 {
		t.Errorf("it made %s in execution %d", out.Output, out.Execution)
	}
	_, text := b.Do(http.MethodGet, path+"?done=start", "", ann("Operator").Sign)
	for _, want := range []string{"was started: its id is", "store-from-the-console", console.Root + "/timeline?correlationId=from-the-console"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	form.Set("f0", "1")
	if rec := b.post(t, startStore, form, ann("Operator")); rec.Code != http.StatusUnprocessableEntity || !strings.Contains(rec.Body.String(), "Send it again to start another one") {
		t.Errorf("with other values: %d %s", rec.Code, rec.Body)
	}
	if acts := b.acts(t, ann("")); len(acts) != 3 || !slices.Contains(acts, "ann@example.com start store Done") {
		t.Errorf("audit log: %q", acts)
	}
}

// Who may only read sees the form, disabled with the reason, and starts nothing whatever he sends; the audit log says that he tried.
func TestReaderStartsNothing(t *testing.T) {
	t.Parallel()
	b := newStarting(t, inAzure())
	for _, path := range []string{console.Root + "/start", startStore, runs} {
		if status, text := b.Do(http.MethodGet, path, "", ann("Reader").Sign); status != http.StatusOK || !strings.Contains(text, "orchestrations.start") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for _, form := range []url.Values{{}, {"key": {"k"}, "f0": {"many"}}, {"key": {"k"}, "f0": {"1"}}} {
		if rec := b.post(t, startStore, form, ann("Reader")); rec.Code != http.StatusForbidden {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
	if acts := b.acts(t, ann("")); len(acts) != 3 || slices.ContainsFunc(acts, func(a string) bool { return !strings.HasSuffix(a, " Refused") }) {
		t.Errorf("audit log: %q", acts)
	}
	b.index()
	if _, text := b.Do(http.MethodGet, runs, "", ann("Reader").Sign); strings.Contains(text, `href="`+runs+"/store") {
		t.Error("something was started")
	}
}

// Which engines there are concerns all tenants: somebody of another one is told that he may not see them.
func TestForeignTenantStartsNothing(t *testing.T) {
	t.Parallel()
	b := newStarting(t, inAzure())
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	for _, path := range []string{console.Root + "/start", startStore} {
		if status, text := b.Do(http.MethodGet, path, "", red.Sign); status != http.StatusForbidden || strings.Contains(text, "store-queue") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if rec := b.post(t, startStore, url.Values{"key": {"k"}}, red); rec.Code != http.StatusForbidden {
		t.Errorf("%d", rec.Code)
	}
}
