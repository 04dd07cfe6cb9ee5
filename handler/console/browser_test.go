package console_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/testenv"
)

var screenshots = flag.String("screenshots", "", "a folder that takes a picture of each page, in both themes")

// browserProgram is the browser that tests look at pages with.
const browserProgram = "chromium-headless-shell"

// browser is a tab of a browser. What fails, fails the test.
type browser struct {
	t   *testing.T
	ctx context.Context
	url string

	mu         sync.Mutex
	complaints []string
}

// openBrowser opens one on a server. Without a browser on the machine, the test is skipped.
func openBrowser(t *testing.T, url string) *browser {
	t.Helper()
	testenv.Programs(t, browserProgram)
	path, err := exec.LookPath(browserProgram)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // it ends a test that hangs; beside other tests, a page takes seconds
	t.Cleanup(cancel)
	// Continuous integration runs as root in a container, where the sandbox cannot be set up; all pages are this test's own.
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, url: url}
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{})
		return err
	}))
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	return b
}

// hear notes what the browser complains of: scripts that fail, and what the policy of a page has kept it from.
func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork { // 404 is an answer
			b.complaints = append(b.complaints, e.Entry.Text)
		}
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// eval runs an expression in the page.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.100s: %v", expression, err)
	}
	return v
}

// open goes to an address, and gives the status of the answer.
func (b *browser) open(path string) int {
	b.t.Helper()
	answer, err := chromedp.Run(b.ctx, chromedp.NavigateResponse(b.url+path))
	if err != nil {
		b.t.Fatalf("%s: %v", path, err)
	}
	return int(answer.Status)
}

// prefer sets what the system prefers, light or dark.
func (b *browser) prefer(scheme string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
		b.t.Fatal(err)
	}
}

// focused is what has the focus: the text of a link or button, the name of another element.
func (b *browser) focused() string {
	return eval[string](b, `(e => e.matches("a, button") ? e.textContent.trim() : e.tagName)(document.activeElement)`)
}

// tabTo presses Tab until something with a text has the focus, and holds that it can be seen where the focus is.
func (b *browser) tabTo(text string) {
	b.t.Helper()
	var passed []string
	for range 60 {
		b.do(chromedp.KeyEvent(kb.Tab))
		has := b.focused()
		if outline := eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" && has != "BODY" { // behind the last stop
			b.t.Errorf("nobody sees that the focus is at %q", has)
		}
		if strings.Contains(has, text) {
			return
		}
		passed = append(passed, has)
	}
	b.t.Fatalf("the keyboard does not reach %q, only %q", text, passed)
}

// enter presses Enter, and waits for the page that it leads to.
func (b *browser) enter() {
	b.t.Helper()
	if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(kb.Enter)); err != nil {
		b.t.Fatalf("Enter on %q at %s: %v", b.focused(), eval[string](b, `location.href`), err)
	}
}

// violation is something that axe-core finds in a page.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// accessible holds the page against what axe-core knows of WCAG 2.2, levels A and AA, and of good practice.
func (b *browser) accessible(name, axe string) {
	b.t.Helper()
	eval[bool](b, axe+"; true")
	var found []violation
	text := eval[string](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => JSON.stringify(r.violations))`)
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range found {
		b.t.Errorf("%s: %s: %s: %.600v", name, v.ID, v.Help, v.Nodes)
	}
}

// picture keeps a picture of the page, if that was asked for.
func (b *browser) picture(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	image, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), image, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

const localKey = "abcdefghijklmnopqrstuvwxyz"

// Somebody who has the address that the local host prints finds the broken message and sends it again, in a real browser and by
// keyboard alone; each page is accessible in both themes, fits a small screen, and keeps to its policy.
func TestBrowser(t *testing.T) {
	t.Parallel()
	bench := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	const evil = `<script>document.title = "owned"</script><img src=x onerror="document.title = 'owned'">`
	hostile := bench.bury(t, "work-2", "", strings.Repeat(evil+" \u202e", 40))
	waiting := bench.retrying(`work-3 <img src=x onerror="document.title = 'owned'">`)
	bench.mended.Store(true)
	operation, event := bench.operation(t), bench.publish(t, "acme")
	server := httptest.NewServer(bench.Host)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	if status := b.open(console.Root + "/?code=" + localKey); status != 200 || eval[string](b, `location.href`) != server.URL+console.Root {
		t.Fatalf("signed in: %d at %s", status, eval[string](b, `location.href`))
	}
	b.retryByKeyboard(bench, path)
	b.restartByKeyboard(bench)
	b.chooseTheme()
	pages := map[string]string{"home": console.Root, "causes": letters + "/causes", "letters": letters + "?status=any&correlationId=work-2", "letter": path, "hostile": hostile, "retry": hostile + "/retry",
		"expire": hostile + "/expire", "timeline": console.Root + "/timeline?correlationId=work-1", "search": console.Root + "/timeline", "nowhere": console.Root + "/nothing", "outside": console.Root + "?code=wrong",
		"orchestrations": runs, "orchestrations-filtered": runs + "?status=Stalled&idPrefix=it", "orchestration": runs + "/store-work-1", "orchestration-hostile": waiting, "suspend": waiting + "/suspend", "raise": waiting + "/raise",
		"not-now": waiting + "/purge",
		"bulk":    letters + "/retry?engine=store", "operation": operation, "outbox": console.Root + "/outbox", "event": event, "skip": event + "/skip"}
	b.look(pages)
}

// look holds pages: each is accessible in both themes, fits a small screen, and keeps to its policy, whatever its data is.
func (b *browser) look(pages map[string]string) {
	t := b.t
	t.Helper()
	axe, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		b.prefer(scheme)
		for name, target := range pages {
			b.open(target)
			b.accessible(name+", "+scheme, string(axe))
			b.picture(name + "-" + scheme)
			if title := eval[string](b, `document.title`); title == "owned" {
				t.Errorf("%s: a script of the data has run", name)
			}
		}
	}
	b.do(chromedp.EmulateViewport(360, 740))
	for name, target := range pages {
		b.open(target)
		b.picture(name + "-small")
		if width := eval[int](b, `document.documentElement.scrollWidth`); width > 360 {
			t.Errorf("%s is %d wide on a screen of 360", name, width)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		t.Errorf("the browser complains: %q", slices.Compact(b.complaints))
	}
}

// retryByKeyboard goes from the first page to the dead letter, and sends its message again.
func (b *browser) retryByKeyboard(bench bench, path string) {
	b.do(chromedp.KeyEvent(kb.Tab))
	if has := b.focused(); has != "Skip to the content" {
		b.t.Errorf("the first stop is %q", has)
	}
	for _, step := range []string{"the vault answered 503", "the vault answered 503", "Retry …"} {
		b.tabTo(step)
		b.enter()
	}
	if at := eval[string](b, `location.pathname`); at != path+"/retry" {
		b.t.Fatalf("it led to %s", at)
	}
	b.tabTo("Retry")
	b.enter()
	if text := eval[string](b, `document.querySelector("[role=status]").textContent`); !strings.Contains(text, "was sent again") {
		b.t.Errorf("the page says %q", text)
	}
	bench.Deliver()
	b.do(chromedp.Reload())
	if text := eval[string](b, `document.body.textContent`); !strings.Contains(text, "Succeeded") {
		b.t.Error("the page does not say that it succeeded")
	}
	b.tabTo("Timeline of work-1")
	b.enter()
	if bars := eval[int](b, `document.querySelectorAll("svg rect").length`); bars == 0 {
		b.t.Error("the timeline has no bars")
	}
}

// chooseTheme chooses a theme, which stays for other pages, and goes back to that of the system.
func (b *browser) chooseTheme() {
	back := func() string { return eval[string](b, `getComputedStyle(document.body).backgroundColor`) }
	b.prefer("light")
	b.open(console.Root)
	light := back()
	for n, want := range []string{"system", "light", "dark"} {
		b.tabTo("Theme: " + want)
		b.do(chromedp.KeyEvent(" "))
		if n == 1 && back() == light {
			b.t.Error("dark is as light")
		}
	}
	b.tabTo("Theme: system")
	b.do(chromedp.KeyEvent(" "))
	b.do(chromedp.KeyEvent(" "))
	b.open(letters)
	if theme := eval[string](b, `document.documentElement.dataset.theme`); theme != "dark" || back() == light {
		b.t.Errorf("on the next page the theme is %q", theme)
	}
	eval[bool](b, `localStorage.clear(); true`)
	b.open(letters)
	if back() != light {
		b.t.Error(fmt.Errorf("without a choice, it is not the system's: %s", back()))
	}
}
