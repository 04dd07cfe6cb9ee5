package console_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

func TestMain(m *testing.M) { os.Exit(browser.Run(m)) }

// local returns the settings of an app that a key opens.
func local() map[string]string { return map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey} }

// openApp opens a tab on an app, signed in.
func openApp(t *testing.T, bench bench) *browser.Tab {
	t.Helper()
	server := httptest.NewServer(bench.Host)
	t.Cleanup(server.Close)
	b := browser.Open(t, server.URL)
	if status := b.Open(console.Root + "/?code=" + localKey); status != http.StatusOK || browser.Eval[string](b, `location.href`) != server.URL+console.Root {
		t.Fatalf("signed in: %d at %s", status, browser.Eval[string](b, `location.href`))
	}
	return b
}

// walk follows links and presses buttons by their texts, by keyboard only.
func walk(b *browser.Tab, steps ...string) {
	b.T.Helper()
	for _, step := range steps {
		b.TabTo(step)
		b.Enter()
	}
}

// is checks the value of an expression.
func is[V comparable](b *browser.Tab, expression string, want V) {
	b.T.Helper()
	if got := browser.Eval[V](b, expression); got != want {
		b.T.Errorf("%s is %v, want %v", expression, got, want)
	}
}

// says checks the text of an element.
func says(b *browser.Tab, selector string, texts ...string) {
	b.T.Helper()
	for _, text := range texts {
		if got := b.Text(selector); !strings.Contains(got, text) {
			b.T.Errorf("%s says %q, and not %q", selector, got, text)
		}
	}
}

// counts checks the minimum number of elements.
func counts(b *browser.Tab, selector string, least int) {
	b.T.Helper()
	if n := browser.Eval[int](b, `document.querySelectorAll("`+selector+`").length`); n < least {
		b.T.Errorf("the page has %d of %s", n, selector)
	}
}

// The address that the local host prints opens the console. By keyboard alone, the broken message is found and resent,
// its run is restarted, and a theme is chosen; a page with scripts in its data runs none of them.
func TestBrowser(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	const evil = `<script>document.title = "owned"</script><img src=x onerror="document.title = 'owned'">`
	hostile := bench.bury(t, "work-2", "", strings.Repeat(evil+" \u202e", 40))
	bench.begin("store", `work-3 <img src=x onerror="document.title = 'owned'">`, "", "7")
	bench.mended.Store(true)
	b := openApp(t, bench)
	b.Do(chromedp.KeyEvent(kb.Tab))
	if has := b.Focused(); has != "Skip to the content" {
		t.Errorf("the first stop is %q", has)
	}
	walk(b, "the vault answered 503", "the vault answered 503", "Retry …")
	if at := browser.Eval[string](b, `location.pathname`); at != path+"/retry" {
		t.Fatalf("it led to %s", at)
	}
	walk(b, "Retry")
	says(b, "[role=status]", "was sent again")
	bench.Deliver()
	b.Do(chromedp.Reload())
	says(b, "body", "Succeeded")
	walk(b, "Timeline of work-1")
	counts(b, "svg rect", 1)
	bench.index()
	b.Open(console.Root)
	walk(b, "Orchestrations", "store-work-1", "Restart …", "Restart")
	says(b, "[role=status]", "was taken: restart")
	bench.Deliver()
	b.Do(chromedp.Reload())
	says(b, "#stands + dl", "execution 2")
	counts(b, "svg rect", 1)
	chooseTheme(b)
	b.Look(map[string]string{"hostile": hostile, "hostile list": letters + "?status=any", "hostile runs": runs, "outside": console.Root + "?code=wrong"}, nil)
}

// chooseTheme chooses a theme, which other pages keep, and returns to that of the system.
func chooseTheme(b *browser.Tab) {
	back := func() string { return browser.Eval[string](b, `getComputedStyle(document.body).backgroundColor`) }
	b.Prefer("light")
	b.Open(console.Root)
	light := back()
	for n, want := range []string{"system", "light", "dark"} {
		b.TabTo("Theme: " + want)
		b.Do(chromedp.KeyEvent(" "))
		if n == 1 && back() == light {
			b.T.Error("dark is as light")
		}
	}
	b.TabTo("Theme: system")
	b.Do(chromedp.KeyEvent(" "))
	b.Do(chromedp.KeyEvent(" "))
	b.Open(letters)
	if theme := browser.Eval[string](b, `document.documentElement.dataset.theme`); theme != "dark" || back() == light {
		b.T.Errorf("on the next page the theme is %q", theme)
	}
	browser.Eval[bool](b, `localStorage.clear(); true`)
	b.Open(letters)
	if back() != light {
		b.T.Errorf("without a choice, it is not the system's: %s", back())
	}
}

// A broken message is repaired by keyboard alone.
func TestBrowserEdit(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	bench.mended.Store(true)
	b := openApp(t, bench)
	b.Open(path)
	walk(b, "Edit and retry")
	browser.Eval[bool](b, `(t => { t.value = t.value.replace("7", "8"); return true })(document.querySelector("textarea"))`)
	walk(b, "Show what has changed")
	says(b, "ins", `"input": 8`)
	walk(b, "Send the edited message")
	says(b, "[role=status]", "The edited message was sent")
}

// Dead letters are selected and retried by keyboard alone, in a browser without scripts, and so are all of a filter;
// the page of the operation polls until it has ended. A running operation is found in the list, paused, resumed and
// canceled.
func TestBrowserOperations(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	for _, id := range []string{"work-1", "work-2", "work-3"} {
		bench.bury(t, id, "", "the vault answered 503")
	}
	bench.mended.Store(true)
	b := openApp(t, bench)
	b.Open(letters + "?engine=store")
	walk(b, "Select this page")
	counts(b, "[name=row]:checked", 3)
	browser.Eval[bool](b, `document.querySelector("[name=row]").focus(); true`)
	b.Do(chromedp.KeyEvent(" "))
	browser.Eval[bool](b, `document.querySelector("[name=row]:checked").focus(); true`)
	b.Do(chromedp.KeyEvent(" "))
	browser.Eval[bool](b, `document.querySelector("button[value=retry]").focus(); true`)
	b.Enter()
	walk(b, "Retry 1")
	bench.Deliver()
	b.Do(chromedp.WaitVisible(`[data-status=Succeeded]`))
	if n := bench.pending(); n != 2 {
		t.Errorf("%d are pending", n)
	}
	b.Open(letters + "?engine=store")
	walk(b, "Retry all of the filter", "Retry all 2")
	says(b, "[role=status]", "0 of 2 done")
	bench.Deliver()
	b.Do(chromedp.WaitVisible(`[data-status=Succeeded]`))
	if text := b.Text("main"); !strings.Contains(text, "2 of 2 done") || strings.Contains(text, "asks again") {
		t.Errorf("the page says %s", text)
	}
	for _, id := range []string{"work-4", "work-5"} {
		bench.bury(t, id, "", "the vault answered 504")
	}
	sign := func(r *http.Request) {
		r.Header.Set("x-functions-key", localKey)
		r.Header.Set("Content-Type", "application/json")
	}
	if status, text := bench.Do(http.MethodPost, "/api/dlq/retry", `{"engine": "store", "canary": 1, "canarySeconds": 3600}`, sign); status != http.StatusAccepted {
		t.Fatalf("%d: %s", status, text)
	}
	bench.Deliver() // the first is sent, and its outcome is awaited
	bench.Restart(local(), func(*handler.Config) {})
	walk(b, "Operations", "retry dead letters", "Pause")
	bench.Deliver()
	b.Do(chromedp.WaitVisible(`[data-status=Paused]`))
	walk(b, "Resume")
	bench.Deliver()
	b.Do(chromedp.WaitVisible(`[data-status=Running]`))
	walk(b, "Cancel the operation")
	bench.Deliver()
	b.Do(chromedp.WaitVisible(`[data-status=Canceled]`))
	if text := b.Text("main"); strings.Contains(text, "Pause") || !strings.Contains(text, "1 done") || bench.pending() != 1 {
		t.Errorf("the page says %s", text)
	}
}

// A poller is found and reset by keyboard alone.
func TestBrowserPollers(t *testing.T) {
	t.Parallel()
	bench := newBench(t, polled(t, local()), "keep")
	bench.Tick("poller-orders-timer", time.Now())
	b := openApp(t, bench)
	walk(b, "Pollers", "orders", "Reset to a place …")
	b.TabTo("INPUT")
	b.Do(chromedp.KeyEvent("1"))
	walk(b, "Reset to a place")
	says(b, "[role=status]", "goes on behind the place")
	if place := bench.state(t).Cursor(); place.Value != "1" {
		t.Errorf("the poller is at %s", place)
	}
}

// A run is started by keyboard alone, and a downloaded history is opened as a file.
func TestBrowserRuns(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local(), "keep")
	b := openApp(t, bench)
	walk(b, "Orchestrations", "Start …", "keep")
	browser.Eval[bool](b, `document.querySelector("[name=correlationId]").value = "by-hand"; document.querySelector("[name=f0]").value = "9007199254740993"; true`)
	walk(b, "Start")
	says(b, "[role=status]", "its id is keep-by-hand")
	bench.begin("keep", "work-2", "", `{"why": "<script>document.title = 'owned'</script>", "deep": [[[1, {"n": 1}]]]}`)
	status, text := bench.Do(http.MethodGet, "/api/orchestrations/keep-work-2/history", "", func(r *http.Request) { r.Header.Set("x-functions-key", localKey) })
	file := filepath.Join(t.TempDir(), "history.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	b.Open(openHistory)
	b.Do(chromedp.SetUploadFiles(`input[type=file]`, []string{file}))
	walk(b, "Open")
	says(b, "[role=status]", "Offline:")
	says(b, ".tree", "why")
	b.Shown("opened", nil)
}

// A task is found, claimed, answered wrongly and then correctly, by keyboard alone.
func TestBrowserTasks(t *testing.T) {
	t.Parallel()
	bench := newAsking(t, local())
	b := openApp(t, bench)
	walk(b, "Tasks", "To claim", "approve update", "Claim", "Answer …")
	if at := browser.Eval[string](b, `location.pathname`); at != work1+"/complete" {
		t.Fatalf("it led to %s", at)
	}
	answers := func(keys ...string) {
		press(b, keys...)
		for b.Focused() != "Answer" {
			b.TabTo("Answer")
		}
		b.Enter()
	}
	b.TabTo("SELECT")
	answers("y", kb.Tab, "0")
	says(b, "[role=alert]", "minimum")
	b.TabTo("SELECT")
	is(b, `document.activeElement.selectedOptions[0].textContent`, "yes")
	answers(kb.Tab, "7")
	says(b, "[role=status]", "is completed")
	bench.Deliver()
	if got := bench.Outcome("update-work-1"); string(got.Output) != `{"approved":true,"days":7}` {
		t.Errorf("the run: %+v", got)
	}
}
