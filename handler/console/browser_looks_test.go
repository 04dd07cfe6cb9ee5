package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

// watched is a server that notes who looks for news, and can answer that in place of the app.
type watched struct {
	app http.Handler

	mu     sync.Mutex
	status int
	ages   []string
	pages  chan string
}

// ServeHTTP implements [http.Handler].
func (s *watched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	status := s.status
	if r.Header.Get("If-None-Match") != "" {
		s.ages = append(s.ages, r.Header.Get("Cache-Control"))
		r.Header.Set("Cache-Control", "no-cache") // the clock of the app goes on, and that of the page stands still
	} else {
		status = 0
		if !strings.Contains(r.URL.Path, "/assets/") {
			select {
			case s.pages <- r.URL.Path:
			default: // nobody waits for it
			}
		}
	}
	s.mu.Unlock()
	switch {
	case status == http.StatusFound:
		http.Redirect(w, r, "https://login.example/", status)
	case status != 0:
		w.WriteHeader(status)
	default:
		s.app.ServeHTTP(w, r)
	}
}

// answers sets what is answered to who looks for news, 0 for what the app does.
func (s *watched) answers(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *watched) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.ages...)
}

// ownClock gives a page a clock that stands still, and its long timers to the test: planned is the one that is set.
const ownClock = `(() => {
  Date.now = () => 1e12;
  const set = window.setTimeout, clear = window.clearTimeout;
  window.planned = null;
  window.setTimeout = (run, ms, ...more) => ms < 1000 ? set(run, ms, ...more) : (window.planned = {run, ms}, -1);
  window.clearTimeout = (id) => { id === -1 ? window.planned = null : clear(id); };
})()`

// newWatched opens a browser with such a clock on an app, signed in.
func newWatched(t *testing.T, b bench) (*watched, *browser.Tab) {
	t.Helper()
	s := &watched{app: b.Host, pages: make(chan string, 1)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	tab := browser.Open(t, server.URL)
	if _, err := chromedp.Call(tab.Ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: ownClock}); err != nil {
		t.Fatal(err)
	}
	tab.Open(console.Root + "/?code=" + localKey)
	return s, tab
}

// planned is in how many milliseconds the page looks again, 0 for not at all.
func planned(b *browser.Tab) int {
	b.T.Helper()
	return browser.Eval[int](b, `window.planned?.ms ?? 0`)
}

// fire has the time pass that the page waits for, and waits until it waits again.
func fire(b *browser.Tab) {
	b.T.Helper()
	browser.Eval[bool](b, `(() => { const p = window.planned; window.planned = null; p.run(); return true; })()`)
	until(b, `window.planned`)
}

// A list looks again as often as somebody has chosen and the page allows, less often when nothing answers, and not while nobody sees it.
func TestBrowserLooks(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	bench.bury(t, "work-1", "", "the vault answered 503")
	s, b := newWatched(t, bench)
	ready(b, letters)
	hold := func(when string, want int) {
		t.Helper()
		if got := planned(b); got != want {
			t.Errorf("%s: it looks in %d ms, want %d", when, got, want)
		}
	}
	hide := func(hidden string) {
		browser.Eval[bool](b, `Object.defineProperty(document, "hidden", {value: `+hidden+`, configurable: true}); document.dispatchEvent(new Event("visibilitychange")); true`)
	}
	choose := func(value string) {
		browser.Eval[bool](b, `(s => { s.value = "`+value+`"; s.dispatchEvent(new Event("change")); return true; })(document.getElementById("every"))`)
	}
	news := func() string { return browser.Eval[string](b, `document.getElementById("news").textContent`) }

	hold("at first", 15_000)
	fire(b)
	hold("after a look", 15_000)
	if ages := s.asked(); len(ages) != 1 || ages[0] != "max-age=10" {
		t.Errorf("it asked with %q", ages)
	}
	hide("true")
	hold("hidden", 0)
	hide("false")
	hold("seen again", 15_000)
	choose("60")
	hold("every minute", 60_000)
	choose("0")
	hold("never", 0)
	choose("5")
	hold("every 5 seconds", 5_000)

	s.answers(http.StatusServiceUnavailable)
	for _, want := range []int{10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000} {
		fire(b)
		hold("without an answer", want)
	}
	if text := news(); !strings.Contains(text, "does not answer") {
		t.Errorf("it says %q", text)
	}
	s.answers(0)
	fire(b)
	hold("with an answer", 5_000)
	if text := news(); text != "" {
		t.Errorf("it still says %q", text)
	}

	for _, status := range []int{http.StatusUnauthorized, http.StatusFound, http.StatusForbidden, http.StatusNotFound} {
		s.answers(status)
		browser.Eval[bool](b, `document.addEventListener("keydown", () => window.planned.run(), {once: true}); true`)
		goes(b, letters, "q") // the page was loaded again
	}
	ready(b, letters+"/causes")
	hold("a page that costs more", 60_000)
	ready(b, console.Root+"/me")
	hold("a page that does not look", 0)
}

// The page of an operation shows itself anew where it is, with the focus where it was, and stops when the operation has ended.
func TestBrowserFollows(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	bench.bury(t, "work-1", "", "the vault answered 503")
	bench.mended.Store(true)
	_, b := newWatched(t, bench)
	b.Open(letters + "/retry?engine=store")
	b.TabTo("Retry all 1")
	b.Enter()
	b.Do(chromedp.WaitVisible("#choices"))
	b.TabTo("Dead letters since it began")
	browser.Eval[bool](b, `window.old = true; true`)
	if ms := planned(b); ms != 3000 {
		t.Errorf("it looks in %d ms", ms)
	}
	fire(b) // nothing new
	bench.Deliver()
	browser.Eval[bool](b, `window.planned.run(); true`)
	b.Do(chromedp.WaitVisible(`[data-status=Succeeded]`))
	if b.Focused() != "Dead letters since it began" || !browser.Eval[bool](b, `window.old`) {
		t.Errorf("the focus is at %q", b.Focused())
	}
	if said := browser.Eval[string](b, `document.getElementById("said").textContent`); !strings.Contains(said, "1 of 1 done") {
		t.Errorf("it said %q", said)
	}
	if copies := browser.Eval[int](b, `document.querySelectorAll("main .copy").length`); copies != 4 {
		t.Errorf("%d things can be copied from the new page", copies)
	}
	if ms := planned(b); ms != 0 {
		t.Errorf("it has ended, and looks in %d ms", ms)
	}
}

// Without scripts, the page of an operation asks again as well.
func TestBrowserFollowsWithoutScripts(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	bench.bury(t, "work-1", "", "the vault answered 503")
	bench.mended.Store(true)
	s, b := newWatched(t, bench)
	b.Open(letters + "/retry?engine=store")
	b.TabTo("Retry all 1")
	if _, err := chromedp.Call(b.Ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.Enter()
	for range 2 { // the page, and the page again
		for path := ""; !strings.HasPrefix(path, console.Root+"/operations/"); {
			select {
			case path = <-s.pages:
			case <-b.Ctx.Done():
				t.Fatal("it does not ask again")
			}
		}
	}
	if ages := s.asked(); len(ages) != 0 {
		t.Errorf("a script has asked with %q", ages)
	}
}
