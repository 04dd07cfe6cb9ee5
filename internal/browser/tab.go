// Package browser opens pages in a real browser, for tests: a headless Chromium, by its own protocol. What fails, fails the test; without
// a browser on the machine the test is skipped. It owns no storage keys.
package browser

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// program is the browser.
const program = "chromium-headless-shell"

// Tab is a tab of a browser of its own, at one server.
type Tab struct {
	T   *testing.T
	Ctx context.Context // for the calls of the protocol that a Tab has no method for
	URL string          // of the server

	mu         sync.Mutex
	complaints []string
}

// Open opens one at a server, whose address has no path, for as long as the test runs.
func Open(t *testing.T, url string) *Tab {
	t.Helper()
	testenv.Programs(t, program)
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	// Continuous integration runs as root in a container, where the sandbox cannot be set up; all pages are the tests' own.
	ctx, cancel := chromedp.NewExecAllocator(testenv.Context(t), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &Tab{T: t, Ctx: ctx, URL: url}
	b.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{})
		return err
	}))
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	return b
}

// hear notes what the browser complains of: scripts that fail, and what the policy of a page has kept it from.
func (b *Tab) hear(event any) {
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

// Do does what the protocol's library has steps for.
func (b *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	if err := chromedp.Do(b.Ctx, steps...); err != nil {
		b.T.Fatal(err)
	}
}

// Eval runs an expression in the page, and waits for it if it is a promise.
func Eval[V any](b *Tab, expression string) V {
	b.T.Helper()
	v, err := chromedp.Run(b.Ctx, chromedp.Evaluate[V](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.T.Fatalf("%.100s: %v", expression, err)
	}
	return v
}

// Text is what an element of the page says, without space around it.
func (b *Tab) Text(selector string) string {
	b.T.Helper()
	return strings.TrimSpace(Eval[string](b, `document.querySelector("`+selector+`")?.textContent ?? ""`))
}

// Open goes to an address of the server, and gives the status of the answer.
func (b *Tab) Open(path string) int {
	b.T.Helper()
	answer, err := chromedp.Run(b.Ctx, chromedp.NavigateResponse(b.URL+path))
	if err != nil {
		b.T.Fatalf("%s: %v", path, err)
	}
	return int(answer.Status)
}

// Prefer sets what the system prefers, light or dark.
func (b *Tab) Prefer(scheme string) {
	b.T.Helper()
	if _, err := chromedp.Call(b.Ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
		b.T.Fatal(err)
	}
}

// Focused is what has the focus: the text of a link or button, the name of another element.
func (b *Tab) Focused() string {
	b.T.Helper()
	return Eval[string](b, `(e => e.matches("a, button") ? e.textContent.trim() : e.tagName)(document.activeElement)`)
}

// TabTo presses Tab until something with a text has the focus, and holds that it can be seen where the focus is.
func (b *Tab) TabTo(text string) {
	b.T.Helper()
	var passed []string
	for range 80 {
		b.Do(chromedp.KeyEvent(kb.Tab))
		has := b.Focused()
		if outline := Eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" && has != "BODY" { // behind the last stop
			b.T.Errorf("nobody sees that the focus is at %q", has)
		}
		if strings.Contains(has, text) {
			return
		}
		passed = append(passed, has)
	}
	b.T.Fatalf("the keyboard does not reach %q, only %q", text, passed)
}

// Enter presses Enter, and waits for the page that it leads to.
func (b *Tab) Enter() {
	b.T.Helper()
	if _, err := chromedp.RunResponse(b.Ctx, chromedp.KeyEvent(kb.Enter)); err != nil {
		b.T.Fatalf("Enter on %q at %s: %v", b.Focused(), Eval[string](b, `location.href`), err)
	}
}
