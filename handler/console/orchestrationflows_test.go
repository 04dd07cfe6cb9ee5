package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/browser"
	"github.com/vibedata/roundhouse/orchestrator"
)

const runs = console.Root + "/orchestrations"

// newWaiting is an app with an engine whose runs wait for the event "decision", with a run of a correlation id and a tenant under way.
func newWaiting(t *testing.T, correlationID, tenant string) bench {
	t.Helper()
	note := orchestrator.NewActivity("note", func(_ context.Context, n int) (int, error) { return n, nil })
	run := func(ctx *orchestrator.Context, r engine.Request[int]) (json.RawMessage, error) {
		if _, err := note.Call(ctx, r.Input).Await(); err != nil {
			return nil, err
		}
		return orchestrator.Event[json.RawMessage](ctx, "decision").Await()
	}
	b := bench{Host: handlertest.New(t, handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{{Name: "ask", Queue: "ask-queue", Orchestrator: engine.Orchestrate("ask", run), Operations: []orchestrator.AnyActivity{note}}}, nil
	}}, inAzure())}
	b.begin(correlationID, tenant)
	return b
}

// begin begins a run.
func (b bench) begin(correlationID, tenant string) {
	b.Send("ask-queue", `{"correlationId": "`+correlationID+`", "tenantId": "`+tenant+`", "input": 9007199254740993}`)
	b.Deliver()
}

// index brings the list of runs up to date, which the app writes a little later than runs: it is repaired in three slices.
func (b bench) index() {
	for range 3 {
		b.Tick("orchestration-sweep-timer", time.Now())
	}
}

var statusChip = regexp.MustCompile(`<span class="chip" data-status="(\w+)">`)

// standing is the status that the page of a run shows.
func (b bench) standing(t *testing.T, path string) string {
	t.Helper()
	status, text := b.Do(http.MethodGet, path, "", ann("Reader").Sign)
	m := statusChip.FindStringSubmatch(text)
	if status != http.StatusOK || m == nil {
		t.Fatalf("%d: no status in %s", status, text)
	}
	return m[1]
}

// command sends the form of a command twice, and delivers what comes of it.
func (b bench) command(t *testing.T, path, name string, more url.Values, to string) {
	t.Helper()
	form := b.form(t, path+"/"+name, ann("Administrator"))
	for name, values := range more {
		form[name] = values
	}
	for n := range 2 {
		rec := b.post(t, path+"/"+name, form, ann("Administrator"))
		if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != to {
			t.Fatalf("%s, time %d: %d to %s: %s", name, n+1, rec.Code, rec.Header().Get("Location"), rec.Body)
		}
		if name == "purge" {
			break // there is nothing left that could be asked for
		}
	}
	b.Deliver()
}

// Somebody suspends a run, raises the event that it waits for, sees that nothing comes of it, resumes it, sees its output, runs it
// again, terminates it and purges it: under his name, with his reasons, and each once however often a form is sent.
func TestCommandsToARun(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	const path = runs + "/ask-work-1"
	if got := b.standing(t, path); got != "Running" {
		t.Fatalf("it is %s", got)
	}
	b.index()
	if _, text := b.Do(http.MethodGet, runs+"?status=Running&idPrefix=ask-", "", ann("Reader").Sign); !strings.Contains(text, `href="`+path+`"`) {
		t.Errorf("the list does not have it: %s", text)
	}
	if _, text := b.Do(http.MethodGet, console.Root+"/timeline?correlationId=work-1", "", ann("Reader").Sign); !strings.Contains(text, `href="`+path+`"`) {
		t.Error("the timeline does not lead to it")
	}
	b.command(t, path, "suspend", url.Values{"reason": {"the freeze"}}, path+"?done=suspend")
	if got := b.standing(t, path); got != "Suspended" {
		t.Errorf("after suspend it is %s", got)
	}
	b.command(t, path, "raise", url.Values{"name": {"decision"}, "value": {`{"n": 123456789012345678901234567890}`}}, path+"?done=raise")
	if got := b.standing(t, path); got != "Suspended" {
		t.Errorf("after the event it is %s", got)
	}
	b.command(t, path, "resume", nil, path+"?done=resume")
	_, text := b.Do(http.MethodGet, path, "", ann("Reader").Sign)
	for _, want := range []string{`data-status="Completed"`, "123456789012345678901234567890", "9007199254740993", "ExecutionSuspended", "the freeze", "<rect", "EventRaised"} {
		if !strings.Contains(text, want) {
			t.Errorf("after resume, the page has no %q", want)
		}
	}
	b.command(t, path, "restart", nil, path+"?done=restart")
	if got := b.standing(t, path); got != "Running" {
		t.Errorf("after restart it is %s", got)
	}
	b.command(t, path, "terminate", url.Values{"reason": {"a mistake"}}, path+"?done=terminate")
	if got := b.standing(t, path); got != "Terminated" {
		t.Errorf("after terminate it is %s", got)
	}
	b.command(t, path, "purge", nil, runs+"?done=purged")
	if status, _ := b.Do(http.MethodGet, path, "", ann("Reader").Sign); status != http.StatusNotFound {
		t.Errorf("after purge there is %d", status)
	}
	acts := slices.Compact(b.acts(t, ann("")))
	slices.Reverse(acts)
	want := []string{"suspend", "raise decision", "resume", "restart", "terminate", "purge"}
	for n := range want {
		want[n] = "ann@example.com " + want[n] + " Done"
	}
	if !slices.Equal(acts, want) {
		t.Errorf("audit log: %q, want %q", acts, want)
	}
}

// A form that was opened before the run changed is told so: what has ended hears of nothing, and what is purged is what was looked at.
func TestOldForms(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	const path = runs + "/ask-work-1"
	suspend := b.form(t, path+"/suspend", ann("Operator"))
	terminate := b.form(t, path+"/terminate", ann("Operator"))
	b.command(t, path, "terminate", nil, path+"?done=terminate")
	if rec := b.post(t, path+"/terminate", terminate, ann("Operator")); rec.Code != http.StatusSeeOther {
		t.Errorf("terminate of what is terminated: %d %s", rec.Code, rec.Body)
	}
	purge := b.form(t, path+"/purge", ann("Administrator"))
	if rec := b.post(t, path+"/suspend", suspend, ann("Operator")); rec.Code != http.StatusConflict || !strings.Contains(rec.Body.String(), "Back to the orchestration") {
		t.Errorf("suspend of what has ended: %d %s", rec.Code, rec.Body)
	}
	b.command(t, path, "restart", nil, path+"?done=restart")
	b.command(t, path, "terminate", nil, path+"?done=terminate")
	if rec := b.post(t, path+"/purge", purge, ann("Administrator")); rec.Code != http.StatusPreconditionFailed {
		t.Errorf("purge of what was not looked at: %d %s", rec.Code, rec.Body)
	}
	if got := b.standing(t, path); got != "Terminated" {
		t.Errorf("it is %s", got)
	}
}

// Who may only read sends no command, whatever he posts, and the audit log says that he tried.
func TestReaderCommandsNothing(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	const path = runs + "/ask-work-1"
	names := []string{"suspend", "resume", "cancel", "terminate", "rewind", "restart", "raise", "purge"}
	for _, name := range names {
		for _, form := range []url.Values{{"key": {"k"}, "name": {"decision"}}, {}, {"value": {"no JSON"}}} {
			if rec := b.post(t, path+"/"+name, form, ann("Reader")); rec.Code != http.StatusForbidden || rec.Header().Get("x-ms-error-code") != "Forbidden" {
				t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
			}
		}
	}
	b.Deliver()
	if got := b.standing(t, path); got != "Running" {
		t.Errorf("it is %s", got)
	}
	if acts := b.acts(t, ann("")); len(acts) != 3*len(names) || slices.ContainsFunc(acts, func(a string) bool { return !strings.HasSuffix(a, " Refused") }) {
		t.Errorf("audit log: %q", acts)
	}
}

// Somebody of another tenant sees that tenant's runs, and of others not even that they are there.
func TestForeignTenantsRuns(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "secret-of-blue", accesstest.ID("blue"))
	b.begin("of-red", accesstest.ID("red"))
	const theirs, own = runs + "/ask-secret-of-blue", runs + "/ask-of-red"
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	b.index()
	status, text := b.Do(http.MethodGet, runs, "", red.Sign)
	if status != http.StatusOK || strings.Contains(text, "secret-of-blue") || !strings.Contains(text, `href="`+own+`"`) {
		t.Errorf("the list: %d %s", status, text)
	}
	if status, _ := b.Do(http.MethodGet, own, "", red.Sign); status != http.StatusOK {
		t.Errorf("his own: %d", status)
	}
	_, none := b.Do(http.MethodGet, runs+"/nothing", "", red.Sign)
	for _, path := range []string{theirs, theirs + "/suspend", theirs + "/raise", theirs + "/purge"} {
		status, text := b.Do(http.MethodGet, path, "", red.Sign)
		if status != http.StatusNotFound || strings.Contains(text, accesstest.ID("blue")) || told(text) != told(none) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for _, name := range []string{"suspend", "terminate", "raise", "purge"} {
		if rec := b.post(t, theirs+"/"+name, url.Values{"key": {"k"}, "name": {"decision"}}, red); rec.Code != http.StatusForbidden && rec.Code != http.StatusNotFound {
			t.Errorf("%s: %d", name, rec.Code)
		}
	}
	b.Deliver()
	if got := b.standing(t, theirs); got != "Running" {
		t.Errorf("it is %s", got)
	}
}

// told is the sentence of a page that could not be made.
func told(text string) string {
	return regexp.MustCompile(`role="alert">.*</p>`).FindString(text)
}

// retrying begins a run whose first attempt fails, and gives the address of its page.
func (b bench) retrying(correlationID string) string {
	text, _ := json.Marshal(map[string]any{"correlationId": correlationID, "input": 7})
	b.Send("store-queue", string(text))
	b.Deliver()
	return runs + "/" + url.PathEscape("store-"+correlationID)
}

// restartByKeyboard goes from the first page to the run of the message that was sent again, and runs it once more.
func restartByKeyboard(b *browser.Tab, bench bench) {
	bench.index()
	b.Open(console.Root)
	for _, step := range []string{"Orchestrations", "store-work-1", "Restart …", "Restart"} {
		b.TabTo(step)
		b.Enter()
	}
	if text := browser.Eval[string](b, `document.querySelector("[role=status]").textContent`); !strings.Contains(text, "was taken: restart") {
		b.T.Errorf("the page says %q", text)
	}
	bench.Deliver()
	b.Do(chromedp.Reload())
	if text := browser.Eval[string](b, `document.querySelector("#stands + dl").textContent`); !strings.Contains(text, "execution 2") {
		b.T.Errorf("it was not run again: %q", text)
	}
	if bars := browser.Eval[int](b, `document.querySelectorAll("svg rect").length`); bars == 0 {
		b.T.Error("the picture has no bars")
	}
}
