package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

// ready opens a page, and waits for its modules.
func ready(b *browser.Tab, path string) {
	b.T.Helper()
	b.Open(path)
	b.Do(chromedp.WaitVisible("#choices"))
}

// press presses keys in sequence.
func press(b *browser.Tab, keys ...string) {
	b.T.Helper()
	for _, key := range keys {
		b.Do(chromedp.KeyEvent(key))
	}
}

// goes presses keys that lead to another page, waits for it and its modules, and checks its address.
func goes(b *browser.Tab, to string, keys ...string) {
	b.T.Helper()
	press(b, keys[:len(keys)-1]...)
	if _, err := chromedp.RunResponse(b.Ctx, chromedp.KeyEvent(keys[len(keys)-1])); err != nil {
		b.T.Fatalf("%q: %v", keys, err)
	}
	b.Do(chromedp.WaitVisible("#choices"))
	if at := browser.Eval[string](b, `location.pathname + location.search`); at != to {
		b.T.Fatalf("%q led to %s, want %s", keys, at, to)
	}
}

// control presses a key with Ctrl.
func control(b *browser.Tab, key string) {
	b.T.Helper()
	dispatch(b, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: key, Code: "Key" + strings.ToUpper(key), Modifiers: 2})
}

// typed presses a key whose letter is written only if the page lets it, as a keyboard does.
func typed(b *browser.Tab, key string) {
	b.T.Helper()
	dispatch(b, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key})
}

func dispatch(b *browser.Tab, down input.DispatchKeyEventParams) {
	b.T.Helper()
	up := down
	up.Type, up.Text = input.DispatchKeyEventTypeKeyUp, ""
	b.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, event := range []input.DispatchKeyEventParams{down, up} {
			if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, event); err != nil {
				return err
			}
		}
		return nil
	}))
}

// until waits until an expression is true in the page.
func until(b *browser.Tab, expression string) {
	b.T.Helper()
	browser.Eval[bool](b, `new Promise((done) => { const look = () => (`+expression+`) ? done(true) : requestAnimationFrame(look); look(); })`)
}

// A list shows the number of new rows in a link, leaves its rows in place, and does not poll while it is invisible; new
// data stays text.
func TestBrowserNews(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	bench.bury(t, "work-1", "", "the vault answered 503")
	b := openApp(t, bench)
	browser.Eval[bool](b, `localStorage.setItem("every", "5"); true`)
	ready(b, letters)
	is(b, `document.getElementById("every").value`, "5")
	const evil = `<img src=x onerror="document.title = 'owned'">`
	bench.bury(t, "work-2", "", evil)
	bench.bury(t, "work-3", "", evil)
	b.Do(chromedp.WaitVisible("#news a"))
	is(b, `document.getElementById("news").textContent`, "2 new")
	is(b, `document.querySelectorAll("main tbody tr").length`, 1)
	b.Accessible("news")
	b.TabTo("2 new")
	b.Enter()
	if rows := browser.Eval[int](b, `document.querySelectorAll("main tbody tr").length`); rows != 3 || browser.Eval[string](b, `document.title`) == "owned" {
		t.Errorf("%d rows under the title %s", rows, browser.Eval[string](b, `document.title`))
	}
	is(b, `document.getElementById("news").textContent`, "")
}

// The keys move through rows, to the filter and to sections; they do nothing in fields, with Ctrl, and when they are
// switched off.
func TestBrowserKeys(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	bench.bury(t, "work-2", "", "the vault answered 504")
	b := openApp(t, bench)
	ready(b, letters)
	row := func() int {
		return browser.Eval[int](b, `[...document.querySelectorAll("main tbody tr")].indexOf(document.activeElement.closest("tr"))`)
	}
	for _, step := range []struct {
		key string
		at  int
	}{{"j", 0}, {"j", 1}, {"j", 1}, {"k", 0}, {"k", 0}} {
		if press(b, step.key); row() != step.at {
			t.Errorf("%s led to row %d, want %d", step.key, row(), step.at)
		}
	}
	if outline := browser.Eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
		t.Error("nobody sees which row has the focus")
	}
	if press(b, "x"); !browser.Eval[bool](b, `document.activeElement.closest("tr").querySelector("[name=row]").checked`) {
		t.Error("x has not selected the row")
	}
	typed(b, "/")
	is(b, `document.activeElement.name`, "instanceId")
	if press(b, "j", "?", "g", "d"); browser.Eval[string](b, `document.activeElement.value`) != "j?gd" || browser.Eval[bool](b, `document.getElementById("help").open`) {
		t.Errorf("in a field, the keys write %q", browser.Eval[string](b, `document.activeElement.value`))
	}
	ready(b, path)
	goes(b, path+"/retry", "r")
	ready(b, path)
	goes(b, path+"/expire", "e")
	ready(b, path)
	browser.Eval[bool](b, `document.querySelector("[data-key=r]").outerHTML = '<button type="button" disabled data-key="r" aria-describedby="why">Retry</button><span id="why">You may not.</span>'; true`)
	press(b, "r")
	until(b, `document.getElementById("said").textContent === "You may not."`)
	goes(b, console.Root+"/orchestrations", "g", "o")
	goes(b, letters+"/causes", "g", "d")
	press(b, "?")
	b.Do(chromedp.WaitVisible("#help"))
	b.Accessible("help")
	press(b, "j", kb.Escape)
	until(b, `!document.getElementById("help").open`)
	b.Do(chromedp.SetValue("#keys", "off"))
	browser.Eval[bool](b, `document.getElementById("keys").dispatchEvent(new Event("change")); document.activeElement.blur(); true`)
	if press(b, "?"); browser.Eval[bool](b, `document.getElementById("help").open`) {
		t.Error("the keys are off, and ? still shows them")
	}
	ready(b, letters)
	if press(b, "j"); row() != -1 {
		t.Error("the keys are off, and on again on the next page")
	}
}

// The palette finds pages, the page's actions, and ids, by keyboard; screen readers see a list.
func TestBrowserPalette(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	b := openApp(t, bench)
	opened := func() {
		b.T.Helper()
		control(b, "k")
		b.Do(chromedp.WaitVisible("#palette"))
		until(b, `document.activeElement.id === "palette-text"`)
	}
	ready(b, path)
	opened()
	b.Shown("palette", nil)
	marked := `document.getElementById(document.getElementById("palette-text").getAttribute("aria-activedescendant"))`
	first := browser.Eval[string](b, marked+`.textContent`)
	press(b, kb.ArrowDown)
	if second := browser.Eval[string](b, marked+`.textContent`); second == first || browser.Eval[string](b, marked+`.getAttribute("aria-selected")`) != "true" {
		t.Errorf("the arrow leads from %q to %q", first, second)
	}
	if press(b, kb.ArrowUp, kb.ArrowUp); browser.Eval[int](b, `[...document.querySelectorAll("[role=option]")].indexOf(`+marked+`)`) != browser.Eval[int](b, `document.querySelectorAll("[role=option]").length - 1`) {
		t.Error("up from the first is not the last")
	}
	control(b, "k")
	until(b, `!document.getElementById("palette").open`)
	for text, to := range map[string]string{"otbx": console.Root + "/outbox", "retr": path + "/retry"} {
		ready(b, path)
		opened()
		goes(b, to, append(strings.Split(text, ""), kb.Enter)...)
	}
	id := strings.TrimPrefix(path, letters+"/")
	for up, to := range []string{path, console.Root + "/orchestrations/" + strings.ReplaceAll(id, "/", "%2F"), console.Root + "/timeline?correlationId=" + strings.ReplaceAll(id, "/", "%2F")} {
		ready(b, console.Root)
		opened()
		b.Do(chromedp.SendKeys("#palette-text", id))
		for range up + 1 {
			press(b, kb.ArrowUp)
		}
		goes(b, to, kb.Enter)
	}
	ready(b, console.Root)
	opened()
	b.Do(chromedp.SendKeys("#palette-text", `<img src=x onerror="document.title='owned'">`))
	until(b, `document.querySelectorAll("[role=option]").length === 3`)
	if browser.Eval[int](b, `document.querySelectorAll("#palette img").length`) != 0 {
		t.Error("what was typed is no text")
	}
}

// The page's texts can be copied, or are selected where the browser has no clipboard; both are announced.
func TestBrowserCopy(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	b := openApp(t, bench)
	key := strings.TrimPrefix(path, letters+"/store/")
	want := map[string]string{"the id": "store/" + key, "the command": "roundhouse dlq show store " + key,
		"the curl command": `curl -H "x-functions-key: $ROUNDHOUSE_KEY" ` + b.URL + "/api/machine/dlq/store/" + key, "the link": b.URL + path}
	for what, text := range want {
		ready(b, path+"?done=retried")
		browser.Eval[bool](b, `Object.defineProperty(navigator, "clipboard", {value: {writeText: (text) => { window.copied = text; return Promise.resolve(); }}}); true`)
		b.TabTo("Copy " + what)
		press(b, kb.Enter)
		until(b, `document.getElementById("said").textContent === "Copied `+what+`."`)
		is(b, `window.copied`, text)
	}
	ready(b, path)
	browser.Eval[bool](b, `Object.defineProperty(navigator, "clipboard", {value: undefined}); document.execCommand = () => false; true`) // as on plain http
	b.TabTo("Copy the id")
	press(b, kb.Enter)
	until(b, `document.getElementById("said").textContent.includes("is selected")`)
	is(b, `getSelection().toString()`, want["the id"])
}

// Times have the chosen form, on the next page as well, with the other form in the title.
func TestBrowserTimes(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	b := openApp(t, bench)
	ready(b, path)
	const first = `document.querySelector("main time")`
	text := func() string { return browser.Eval[string](b, first+`.textContent`) }
	sent, iso := text(), browser.Eval[string](b, first+`.dateTime`)
	if !strings.HasSuffix(sent, " UTC") || !strings.HasPrefix(iso, strings.Replace(sent[:19], " ", "T", 1)) {
		t.Errorf("%s is shown as %q", iso, sent)
	}
	choose := func(name, value string) {
		browser.Eval[bool](b, `(s => { s.focus(); s.value = "`+value+`"; s.dispatchEvent(new Event("change")); return true; })(document.getElementById("`+name+`"))`)
	}
	choose("zone", "Asia/Dubai")
	if now := text(); !strings.HasSuffix(now, "GST") || now[:13] == sent[:13] || !strings.Contains(browser.Eval[string](b, first+`.title`), sent) {
		t.Errorf("in Dubai: %q with the title %q", now, browser.Eval[string](b, first+`.title`))
	}
	choose("clock", "ago")
	ready(b, letters)
	if now := text(); !strings.HasSuffix(now, " ago") || !strings.HasSuffix(browser.Eval[string](b, first+`.title`), "GST") || browser.Eval[string](b, `document.getElementById("zone-name").textContent`) != "Asia/Dubai" {
		t.Errorf("on the next page: %q with the title %q", now, browser.Eval[string](b, first+`.title`))
	}
	browser.Eval[bool](b, `localStorage.setItem("zone", "Nowhere/Nothing"); localStorage.setItem("clock", "x"); true`)
	ready(b, path)
	if now := text(); now != sent {
		t.Errorf("with a zone that nobody knows: %q", now)
	}
}

// A printed page has its text, in dark on light, without controls; users who prefer reduced motion get none.
func TestBrowserMedia(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	b := openApp(t, bench)
	browser.Eval[bool](b, `localStorage.setItem("theme", "dark"); true`)
	ready(b, path)
	const shown = `[...document.querySelectorAll("a, button, select, input")].filter((e) => e.checkVisibility() && !e.closest("dd, li")).map((e) => e.textContent)`
	if browser.Eval[int](b, shown+`.length`) == 0 {
		t.Error("nothing can be clicked on the screen")
	}
	b.Media(emulation.SetEmulatedMediaParams{Media: "print"})
	if left := browser.Eval[[]string](b, shown); len(left) > 0 {
		t.Errorf("on paper there are %q", left)
	}
	is(b, `getComputedStyle(document.body).backgroundColor`, "rgb(255, 255, 255)")
	const motion = `[...document.querySelectorAll("a")].some((a) => getComputedStyle(a).transitionDuration !== "0s")`
	for value, want := range map[string]bool{"reduce": false, "no-preference": true} {
		b.Media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: value}}})
		is(b, motion, want)
	}
}

// keepViews puts views into the storage of the browser.
func keepViews(b *browser.Tab, views ...any) {
	b.T.Helper()
	text, err := json.Marshal(views)
	if err != nil {
		b.T.Fatal(err)
	}
	browser.Eval[bool](b, fmt.Sprintf(`localStorage.setItem("views", %q); true`, text))
}

const viewNames = `[...document.querySelectorAll("#views a")].map((a) => a.textContent)`

// openViews opens the list's menu of views.
func openViews(b *browser.Tab) {
	b.T.Helper()
	b.Do(chromedp.WaitVisible("#views"), chromedp.Click("#views summary"), chromedp.WaitVisible("#views form"))
}

// A list is saved under a name, by keyboard; the name stays text, and the view is found on the list and from any page.
func TestBrowserSavedViews(t *testing.T) {
	t.Parallel()
	b := openApp(t, newBench(t, local()))
	const name = `mine <img src=x onerror="document.title='owned'">`
	at := letters + "?engine=hmac&status=any"
	ready(b, at)
	if n := browser.Eval[int](b, `document.querySelectorAll("#views").length`); n != 1 {
		t.Fatalf("%d places for views", n)
	}
	openViews(b)
	b.Do(chromedp.Focus("#views input"))
	press(b, name, kb.Enter)
	until(b, `document.querySelectorAll("#views a").length === 1`)
	until(b, `document.getElementById("said").textContent === "The view is saved in this browser."`)
	if got := browser.Eval[[]string](b, viewNames); got[0] != name || browser.Eval[string](b, `document.title`) == "owned" || browser.Eval[int](b, `document.querySelectorAll("main img").length`) != 0 {
		t.Errorf("it is %q", got)
	}
	b.Accessible("views")
	ready(b, console.Root+"/tasks")
	if got := browser.Eval[[]string](b, viewNames); len(got) != 0 {
		t.Errorf("on another list: %q", got)
	}
	control(b, "k")
	b.Do(chromedp.WaitVisible("#palette"))
	press(b, "mine <img")
	goes(b, at, kb.Enter)
	if browser.Eval[string](b, `document.title`) == "owned" {
		t.Error("the name was no text in the palette")
	}
	openViews(b)
	b.Do(chromedp.Focus("#views li button"))
	press(b, kb.Enter)
	until(b, `document.querySelectorAll("#views a").length === 0 && document.activeElement.tagName === "SUMMARY" && localStorage.getItem("views") === "[]"`)
}

// Invalid entries in storage are not offered, and a page works with damaged storage.
func TestBrowserDamagedViews(t *testing.T) {
	t.Parallel()
	b := openApp(t, newBench(t, local()))
	ready(b, letters)
	view := func(name, at any) any { return map[string]any{"name": name, "at": at} }
	keepViews(b, view("good", letters+"?status=any"), view("elsewhere", "https://example.com"+letters), view("script", "javascript:alert(1)"), view("up", letters+"/../../../dlq"), view("host", "//example.com"+letters),
		view("no text", 7), view(7, letters), view("", letters), view("out of the console", "/api/dlq"), nil, 5, "text", view(fmt.Sprintf("%081d", 0), letters))
	ready(b, letters)
	if got := browser.Eval[[]string](b, viewNames); len(got) != 1 || got[0] != "good" {
		t.Errorf("offered are %q", got)
	}
	if got := browser.Eval[[]string](b, `import(document.querySelector('link[href$="views.js"]').href).then((m) => m.saved().map((v) => v.name))`); len(got) != 1 || got[0] != "good" {
		t.Errorf("offered anywhere are %q", got)
	}
	for _, damaged := range []string{`{`, `null`, `{"length": 3}`} {
		browser.Eval[bool](b, fmt.Sprintf(`localStorage.setItem("views", %q); true`, damaged))
		ready(b, letters)
		if got := browser.Eval[[]string](b, viewNames); len(got) != 0 {
			t.Errorf("%s: offered are %q", damaged, got)
		}
	}
}

// At most 50 views are kept; one of the same name replaces the other, and starts at the beginning of its list.
func TestBrowserManyViews(t *testing.T) {
	t.Parallel()
	b := openApp(t, newBench(t, local()))
	ready(b, letters)
	var all []any
	for i := range 60 {
		all = append(all, map[string]any{"name": fmt.Sprintf("view %02d", i), "at": letters + fmt.Sprintf("?instanceId=%d", i)})
	}
	keepViews(b, all...)
	ready(b, letters+"?status=any")
	openViews(b)
	b.Do(chromedp.Focus("#views input"))
	press(b, "one more", kb.Enter)
	until(b, `document.getElementById("said").textContent.includes("there are 50 already")`)
	if got := browser.Eval[[]string](b, viewNames); len(got) != 50 {
		t.Errorf("%d views", len(got))
	}
	browser.Eval[bool](b, `(() => { const f = document.querySelector("#views input"); f.value = ""; f.focus(); return true; })()`)
	press(b, "view 07", kb.Enter)
	until(b, `document.getElementById("said").textContent === "The view is saved in this browser."`)
	if at := browser.Eval[string](b, `JSON.parse(localStorage.getItem("views")).find((v) => v.name === "view 07").at`); at != letters+"?status=any" || browser.Eval[int](b, `JSON.parse(localStorage.getItem("views")).length`) != 50 {
		t.Errorf("it is %s", at)
	}
	of := browser.Eval[string](b, `import(document.querySelector('link[href$="views.js"]').href).then((m) => m.addressOf(location.origin + "/api/console/x?a=1&continuationToken=t&done=retry#m"))`)
	if of != "/api/console/x?a=1" {
		t.Errorf("the address of a list in its middle: %s", of)
	}
}

// watched is a server that records requests for news, and can answer them in place of the app.
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
		r.Header.Set("Cache-Control", "no-cache") // the app's clock advances, and the page's does not
	} else {
		status = 0
		if !strings.Contains(r.URL.Path, "/assets/") {
			select {
			case s.pages <- r.URL.Path:
			default: // no test waits for it
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

// answers sets the status for requests for news, 0 for the app's own answer.
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

// ownClock gives a page a frozen clock, and gives its long timers to the test: planned is the pending one.
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

// planned returns the milliseconds until the page polls again, 0 for never.
func planned(b *browser.Tab) int {
	b.T.Helper()
	return browser.Eval[int](b, `window.planned?.ms ?? 0`)
}

// fire lets the time pass that the page waits for, and waits until it waits again.
func fire(b *browser.Tab) {
	b.T.Helper()
	browser.Eval[bool](b, `(() => { const p = window.planned; window.planned = null; p.run(); return true; })()`)
	until(b, `window.planned`)
}

// A list polls at the chosen interval within the page's limits, less often without answers, and not while it is
// invisible.
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
		goes(b, letters, "q") // the page was reloaded
	}
	ready(b, letters+"/causes")
	hold("a page that costs more", 60_000)
	ready(b, console.Root+"/me")
	hold("a page that does not look", 0)
}

// The page of an operation refreshes itself in place, with the focus kept, and stops when the operation has ended.
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
	fire(b) // no news
	bench.Deliver()
	browser.Eval[bool](b, `window.planned.run(); true`)
	b.Do(chromedp.WaitVisible(`[data-status=Succeeded]`))
	if b.Focused() != "Dead letters since it began" || !browser.Eval[bool](b, `window.old`) {
		t.Errorf("the focus is at %q", b.Focused())
	}
	if said := browser.Eval[string](b, `document.getElementById("said").textContent`); !strings.Contains(said, "1 of 1 done") {
		t.Errorf("it said %q", said)
	}
	is(b, `document.querySelectorAll("main .copy").length`, 4)
	if ms := planned(b); ms != 0 {
		t.Errorf("it has ended, and looks in %d ms", ms)
	}
}

// Without scripts, the page of an operation polls as well.
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
	for range 2 { // the page, and its reload
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
