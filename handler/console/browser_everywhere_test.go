package console_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

// ready goes to a page, and waits for its modules.
func ready(b *browser.Tab, path string) {
	b.T.Helper()
	b.Open(path)
	b.Do(chromedp.WaitVisible("#choices"))
}

// press presses keys one after the other.
func press(b *browser.Tab, keys ...string) {
	b.T.Helper()
	for _, key := range keys {
		b.Do(chromedp.KeyEvent(key))
	}
}

// goes presses keys that lead to another page, waits for it and its modules, and holds where it is.
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

// A list says how much is new in a link, leaves its rows where they are, and waits when nobody looks; what is new stays text.
func TestBrowserNews(t *testing.T) {
	t.Parallel()
	bench := newBench(t, local())
	bench.bury(t, "work-1", "", "the vault answered 503")
	b := openApp(t, bench)
	browser.Eval[bool](b, `localStorage.setItem("every", "5"); true`)
	ready(b, letters)
	if chosen := browser.Eval[string](b, `document.getElementById("every").value`); chosen != "5" {
		t.Errorf("it looks every %s seconds", chosen)
	}
	const evil = `<img src=x onerror="document.title = 'owned'">`
	bench.bury(t, "work-2", "", evil)
	bench.bury(t, "work-3", "", evil)
	b.Do(chromedp.WaitVisible("#news a"))
	if text := browser.Eval[string](b, `document.getElementById("news").textContent`); text != "2 new" {
		t.Errorf("it says %q", text)
	}
	if rows := browser.Eval[int](b, `document.querySelectorAll("main tbody tr").length`); rows != 1 {
		t.Errorf("%d rows: they have moved", rows)
	}
	b.Accessible("news")
	b.TabTo("2 new")
	b.Enter()
	if rows := browser.Eval[int](b, `document.querySelectorAll("main tbody tr").length`); rows != 3 || browser.Eval[string](b, `document.title`) == "owned" {
		t.Errorf("%d rows under the title %s", rows, browser.Eval[string](b, `document.title`))
	}
	if news := browser.Eval[string](b, `document.getElementById("news").textContent`); news != "" {
		t.Errorf("news of a new page: %s", news)
	}
}

// The keys lead through rows, to the filter and to sections; they do nothing in fields, with Ctrl, and when they are switched off.
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
	if at := browser.Eval[string](b, `document.activeElement.name`); at != "instanceId" {
		t.Errorf("/ led to %q", at)
	}
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

// The palette finds pages, what the page does, and ids, by keyboard; its list is one for screen readers, too.
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

// What a page says of itself is copied, or selected where the browser gives no clipboard; both are announced.
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
		if got := browser.Eval[string](b, `window.copied`); got != text {
			t.Errorf("%s: %q, want %q", what, got, text)
		}
	}
	ready(b, path)
	browser.Eval[bool](b, `Object.defineProperty(navigator, "clipboard", {value: undefined}); document.execCommand = () => false; true`) // as on plain http
	b.TabTo("Copy the id")
	press(b, kb.Enter)
	until(b, `document.getElementById("said").textContent.includes("is selected")`)
	if got := browser.Eval[string](b, `getSelection().toString()`); got != want["the id"] {
		t.Errorf("%q is selected", got)
	}
}

// Times are as somebody has chosen them, on the next page as well, with the other way in the title.
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

// On paper there is what the page says, in dark on light, and nothing to click; who asks for less motion gets none.
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
	if back := browser.Eval[string](b, `getComputedStyle(document.body).backgroundColor`); back != "rgb(255, 255, 255)" {
		t.Errorf("the paper is %s", back)
	}
	const motion = `[...document.querySelectorAll("a")].some((a) => getComputedStyle(a).transitionDuration !== "0s")`
	for value, want := range map[string]bool{"reduce": false, "no-preference": true} {
		b.Media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: value}}})
		if got := browser.Eval[bool](b, motion); got != want {
			t.Errorf("%s: something moves: %v", value, got)
		}
	}
}
