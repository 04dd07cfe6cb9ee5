// Package browser opens pages in a real browser, for tests: a headless Chromium, by its own protocol. A failure fails
// the test. The test is skipped in a -short run, and on a machine without the browser. It owns no storage keys.
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

// shared is the browser of a test binary. Each tab has its own cookies and storage.
var shared struct {
	mu   sync.Mutex
	ctx  context.Context // nil while no browser runs
	stop func()
	tabs int
	kept bool // by Run
}

// Run runs the tests of a package, as its TestMain, with one browser for all of them. Without it the browser ends with
// the last tab.
func Run(m interface{ Run() int }) int {
	shared.mu.Lock()
	shared.kept = true
	shared.mu.Unlock()
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.ctx != nil {
		shared.stop()
	}
	return code
}

// hold returns the context of the browser, starting one if none runs, and keeps the browser until the test ends.
func hold(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.ctx == nil {
		// Continuous integration runs as root in a container without a sandbox; all pages are the tests' own.
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
		ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(ctx)
		if err := chromedp.Do(ctx); err != nil {
			cancel()
			stop()
			t.Fatalf("start %s: %v", program, err)
		}
		shared.ctx, shared.stop = ctx, func() { cancel(); stop() }
	}
	shared.tabs++
	t.Cleanup(func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.tabs--; shared.tabs == 0 && !shared.kept {
			shared.stop()
			shared.ctx = nil
		}
	})
	return shared.ctx
}

// Tab is a tab of the browser, at one server.
type Tab struct {
	T   *testing.T
	Ctx context.Context // for protocol calls without a method of Tab
	URL string          // of the server

	mu         sync.Mutex
	complaints []string
}

// Open opens a tab at a server, whose address has no path, until the test ends. It skips the test in a -short run.
func Open(t *testing.T, url string) *Tab {
	t.Helper()
	testenv.Long(t)
	testenv.Programs(t, program)
	ctx, cancel := chromedp.NewContext(hold(t), chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	context.AfterFunc(testenv.Context(t), cancel)
	b := &Tab{T: t, Ctx: ctx, URL: url}
	b.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{})
		if err == nil { // otherwise only one tab of the browser shows its focus
			_, err = cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		}
		return err
	}))
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	return b
}

// hear records the browser's errors: failing scripts, and violations of a page's policy.
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

// Do runs steps of the protocol's library.
func (b *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	if err := chromedp.Do(b.Ctx, steps...); err != nil {
		b.T.Fatal(err)
	}
}

// Eval evaluates an expression in the page, and waits for a promise.
func Eval[V any](b *Tab, expression string) V {
	b.T.Helper()
	v, err := chromedp.Run(b.Ctx, chromedp.Evaluate[V](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.T.Fatalf("%.100s: %v", expression, err)
	}
	return v
}

// Text returns the text of an element, without space around it.
func (b *Tab) Text(selector string) string {
	b.T.Helper()
	return strings.TrimSpace(Eval[string](b, `document.querySelector("`+selector+`")?.textContent ?? ""`))
}

// Open navigates to a path of the server, and returns the status of the answer.
func (b *Tab) Open(path string) int {
	b.T.Helper()
	answer, err := chromedp.Run(b.Ctx, chromedp.NavigateResponse(b.URL+path))
	if err != nil {
		b.T.Fatalf("%s: %v", path, err)
	}
	return int(answer.Status)
}

// Prefer sets the system's preferred scheme, light or dark, and reduced motion: colors change immediately.
func (b *Tab) Prefer(scheme string) {
	b.T.Helper()
	b.Media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// Media sets the emulated media.
func (b *Tab) Media(p emulation.SetEmulatedMediaParams) {
	b.T.Helper()
	if _, err := chromedp.Call(b.Ctx, emulation.SetEmulatedMedia, p); err != nil {
		b.T.Fatal(err)
	}
}

// Focused returns the focused element: the text of a link or button, the name of another element.
func (b *Tab) Focused() string {
	b.T.Helper()
	return Eval[string](b, `(e => e.matches("a, button") ? e.textContent.trim() : e.tagName)(document.activeElement)`)
}

// TabTo presses Tab until an element with a text has the focus, and checks that the focus is visible.
func (b *Tab) TabTo(text string) {
	b.T.Helper()
	var passed []string
	for range 80 {
		b.Do(chromedp.KeyEvent(kb.Tab))
		has := b.Focused()
		if outline := Eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" && has != "BODY" { // after the last element
			b.T.Errorf("nobody sees that the focus is at %q", has)
		}
		if strings.Contains(has, text) {
			return
		}
		passed = append(passed, has)
	}
	b.T.Fatalf("the keyboard does not reach %q, only %q", text, passed)
}

// Enter presses Enter, and waits for the next page.
func (b *Tab) Enter() {
	b.T.Helper()
	if _, err := chromedp.RunResponse(b.Ctx, chromedp.KeyEvent(kb.Enter)); err != nil {
		b.T.Fatalf("Enter on %q at %s: %v", b.Focused(), Eval[string](b, `location.href`), err)
	}
}
