package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

// Somebody takes a task and answers it in a real browser, by keyboard alone; the pages of people's tasks and of the app itself are
// as all pages are to be.
func TestBrowserTasks(t *testing.T) {
	t.Parallel()
	bench := newAsking(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey}, "")
	const evil = `<script>document.title = "owned"</script>`
	bench.Send("update-queue", `{"correlationId": "work-2", "input": "`+strings.ReplaceAll(strings.Repeat(evil, 40), `"`, `\"`)+`"}`)
	bench.Deliver()
	local := func(r *http.Request) { r.Header.Set("x-functions-key", localKey) }
	if status, text := bench.Do(http.MethodPost, "/api/registry", `{"instanceId": "blue-1", "ring": "canary"}`, local); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	server := httptest.NewServer(bench.Host)
	t.Cleanup(server.Close)
	b := browser.Open(t, server.URL)
	b.Open(console.Root + "/?code=" + localKey)
	answerByKeyboard(b, bench)
	other := strings.Replace(work1, "work-1", "work-2", 1)
	b.Look(map[string]string{"tasks": taskList + "?view=all", "mine": taskList, "task": other, "ended": work1, "claim": other + "/claim", "release": other + "/release", "assign": other + "/assign", "complete": other + "/complete",
		"json": other + "/complete?as=json", "me": console.Root + "/me", "audit": console.Root + "/audit?principal=x", "log": console.Root + "/audit", "schedules": console.Root + "/schedules",
		"run": console.Root + "/schedules/update/run?schedule=nightly", "registry": console.Root + "/registry", "instance": console.Root + "/registry/blue-1", "drain": console.Root + "/registry/blue-1/drain",
		"resume": console.Root + "/registry/blue-1/resume"}, nil)
}

// answerByKeyboard goes from the first page to a task, takes it, answers it wrongly, and then as it has to be.
func answerByKeyboard(b *browser.Tab, bench bench) {
	for _, step := range []string{"Tasks", "To claim", "approve update", "Claim", "Answer …"} {
		b.TabTo(step)
		b.Enter()
	}
	if at := browser.Eval[string](b, `location.pathname`); at != work1+"/complete" {
		b.T.Fatalf("it led to %s", at)
	}
	b.TabTo("SELECT")
	b.Do(chromedp.KeyEvent("y"), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("0"))
	b.TabTo("Answer")
	for b.Focused() != "Answer" {
		b.TabTo("Answer")
	}
	b.Enter()
	if text := browser.Eval[string](b, `document.querySelector("[role=alert]").textContent`); !strings.Contains(text, "minimum") {
		b.T.Errorf("the page says %q", text)
	}
	b.TabTo("SELECT")
	if chosen := browser.Eval[string](b, `document.activeElement.selectedOptions[0].textContent`); chosen != "yes" {
		b.T.Errorf("of what was chosen, %q is kept", chosen)
	}
	b.Do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("7"))
	for b.Focused() != "Answer" {
		b.TabTo("Answer")
	}
	b.Enter()
	if text := browser.Eval[string](b, `document.querySelector("[role=status]").textContent`); !strings.Contains(text, "is completed") {
		b.T.Errorf("the page says %q", text)
	}
	bench.Deliver()
	if got := bench.Outcome("update-work-1"); string(got.Output) != `{"approved":true,"days":7}` {
		b.T.Errorf("the run: %+v", got)
	}
}
