package console_test

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/vibedata/roundhouse/handler/console"
)

// openApp opens a browser on an app, signed in.
func openApp(t *testing.T, bench bench) *browser {
	t.Helper()
	server := httptest.NewServer(bench.Host)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.open(console.Root + "/?code=" + localKey)
	return b
}

// ready goes to a page, and waits for its modules.
func (b *browser) ready(path string) {
	b.t.Helper()
	b.open(path)
	b.do(chromedp.WaitVisible("#choices"))
}

// press presses keys one after the other.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.do(chromedp.KeyEvent(key))
	}
}

// goes presses keys that lead to another page, waits for it and its modules, and holds where it is.
func (b *browser) goes(to string, keys ...string) {
	b.t.Helper()
	b.press(keys[:len(keys)-1]...)
	if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(keys[len(keys)-1])); err != nil {
		b.t.Fatalf("%q: %v", keys, err)
	}
	b.do(chromedp.WaitVisible("#choices"))
	if at := eval[string](b, `location.pathname + location.search`); at != to {
		b.t.Fatalf("%q led to %s, want %s", keys, at, to)
	}
}

// control presses a key with Ctrl.
func (b *browser) control(key string) {
	b.t.Helper()
	b.dispatch(input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: key, Code: "Key" + strings.ToUpper(key), Modifiers: 2})
}

// typed presses a key whose letter is written only if the page lets it, as a keyboard does.
func (b *browser) typed(key string) {
	b.t.Helper()
	b.dispatch(input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key})
}

func (b *browser) dispatch(down input.DispatchKeyEventParams) {
	b.t.Helper()
	up := down
	up.Type, up.Text = input.DispatchKeyEventTypeKeyUp, ""
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, event := range []input.DispatchKeyEventParams{down, up} {
			if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, event); err != nil {
				return err
			}
		}
		return nil
	}))
}

// until waits until an expression is true in the page.
func (b *browser) until(expression string) {
	b.t.Helper()
	eval[bool](b, `new Promise((done) => { const look = () => (`+expression+`) ? done(true) : requestAnimationFrame(look); look(); })`)
}

// A list says how much is new in a link, leaves its rows where they are, and waits when nobody looks; what is new stays text.
func TestBrowserNews(t *testing.T) {
	t.Parallel()
	bench := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	bench.bury(t, "work-1", "", "the vault answered 503")
	b := openApp(t, bench)
	eval[bool](b, `localStorage.setItem("every", "5"); true`)
	b.ready(letters)
	if chosen := eval[string](b, `document.getElementById("every").value`); chosen != "5" {
		t.Errorf("it looks every %s seconds", chosen)
	}
	const evil = `<img src=x onerror="document.title = 'owned'">`
	bench.bury(t, "work-2", "", evil)
	bench.bury(t, "work-3", "", evil)
	b.do(chromedp.WaitVisible("#news a"))
	if text := eval[string](b, `document.getElementById("news").textContent`); text != "2 new" {
		t.Errorf("it says %q", text)
	}
	if rows := eval[int](b, `document.querySelectorAll("main tbody tr").length`); rows != 1 {
		t.Errorf("%d rows: they have moved", rows)
	}
	axe, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	b.accessible("news", string(axe))
	b.tabTo("2 new")
	b.enter()
	if rows := eval[int](b, `document.querySelectorAll("main tbody tr").length`); rows != 3 || eval[string](b, `document.title`) == "owned" {
		t.Errorf("%d rows under the title %s", rows, eval[string](b, `document.title`))
	}
	if news := eval[string](b, `document.getElementById("news").textContent`); news != "" {
		t.Errorf("news of a new page: %s", news)
	}
}

// The keys lead through rows, to the filter and to sections; they do nothing in fields, with Ctrl, and when they are switched off.
func TestBrowserKeys(t *testing.T) {
	t.Parallel()
	bench := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	bench.bury(t, "work-2", "", "the vault answered 504")
	b := openApp(t, bench)
	b.ready(letters)
	row := func() int {
		return eval[int](b, `[...document.querySelectorAll("main tbody tr")].indexOf(document.activeElement.closest("tr"))`)
	}
	for _, step := range []struct {
		key string
		at  int
	}{{"j", 0}, {"j", 1}, {"j", 1}, {"k", 0}, {"k", 0}} {
		if b.press(step.key); row() != step.at {
			t.Errorf("%s led to row %d, want %d", step.key, row(), step.at)
		}
	}
	if outline := eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
		t.Error("nobody sees which row has the focus")
	}
	eval[bool](b, `const box = document.createElement("input"); box.type = "checkbox"; box.name = "selected"; document.activeElement.closest("tr").cells[0].prepend(box); true`)
	if b.press("x"); !eval[bool](b, `document.querySelector("[name=selected]").checked`) {
		t.Error("x has not selected the row")
	}
	b.typed("/")
	if at := eval[string](b, `document.activeElement.name`); at != "instanceId" {
		t.Errorf("/ led to %q", at)
	}
	if b.press("j", "?", "g", "d"); eval[string](b, `document.activeElement.value`) != "j?gd" || eval[bool](b, `document.getElementById("help").open`) {
		t.Errorf("in a field, the keys write %q", eval[string](b, `document.activeElement.value`))
	}
	b.ready(path)
	b.goes(path+"/retry", "r")
	b.ready(path)
	b.goes(path+"/expire", "e")
	b.ready(path)
	eval[bool](b, `document.querySelector("[data-key=r]").outerHTML = '<button type="button" disabled data-key="r" aria-describedby="why">Retry</button><span id="why">You may not.</span>'; true`)
	b.press("r")
	b.until(`document.getElementById("said").textContent === "You may not."`)
	b.goes(console.Root+"/orchestrations", "g", "o")
	b.goes(letters+"/causes", "g", "d")
	b.press("?")
	b.do(chromedp.WaitVisible("#help"))
	axe, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	b.accessible("help", string(axe))
	b.press("j", kb.Escape)
	b.until(`!document.getElementById("help").open`)
	b.do(chromedp.SetValue("#keys", "off"))
	eval[bool](b, `document.getElementById("keys").dispatchEvent(new Event("change")); document.activeElement.blur(); true`)
	if b.press("?"); eval[bool](b, `document.getElementById("help").open`) {
		t.Error("the keys are off, and ? still shows them")
	}
	b.ready(letters)
	if b.press("j"); row() != -1 {
		t.Error("the keys are off, and on again on the next page")
	}
}

// The palette finds pages, what the page does, and ids, by keyboard; its list is one for screen readers, too.
func TestBrowserPalette(t *testing.T) {
	t.Parallel()
	bench := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	b := openApp(t, bench)
	axe, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	opened := func() {
		b.t.Helper()
		b.control("k")
		b.do(chromedp.WaitVisible("#palette"))
		b.until(`document.activeElement.id === "palette-text"`)
	}
	b.ready(path)
	opened()
	for _, scheme := range []string{"light", "dark"} {
		b.prefer(scheme)
		b.accessible("palette, "+scheme, string(axe))
		b.picture("palette-" + scheme)
	}
	b.do(chromedp.EmulateViewport(360, 740))
	if width := eval[int](b, `document.documentElement.scrollWidth`); width > 360 {
		t.Errorf("with the palette, the page is %d wide on a screen of 360", width)
	}
	b.do(chromedp.EmulateViewport(1280, 800))
	marked := `document.getElementById(document.getElementById("palette-text").getAttribute("aria-activedescendant"))`
	first := eval[string](b, marked+`.textContent`)
	b.press(kb.ArrowDown)
	if second := eval[string](b, marked+`.textContent`); second == first || eval[string](b, marked+`.getAttribute("aria-selected")`) != "true" {
		t.Errorf("the arrow leads from %q to %q", first, second)
	}
	if b.press(kb.ArrowUp, kb.ArrowUp); eval[int](b, `[...document.querySelectorAll("[role=option]")].indexOf(`+marked+`)`) != eval[int](b, `document.querySelectorAll("[role=option]").length - 1`) {
		t.Error("up from the first is not the last")
	}
	b.control("k")
	b.until(`!document.getElementById("palette").open`)
	for text, to := range map[string]string{"otbx": console.Root + "/outbox", "retr": path + "/retry"} {
		b.ready(path)
		opened()
		b.goes(to, append(strings.Split(text, ""), kb.Enter)...)
	}
	id := strings.TrimPrefix(path, letters+"/")
	for up, to := range []string{path, console.Root + "/orchestrations/" + strings.ReplaceAll(id, "/", "%2F"), console.Root + "/timeline?correlationId=" + strings.ReplaceAll(id, "/", "%2F")} {
		b.ready(console.Root)
		opened()
		b.do(chromedp.SendKeys("#palette-text", id))
		for range up + 1 {
			b.press(kb.ArrowUp)
		}
		b.goes(to, kb.Enter)
	}
	b.ready(console.Root)
	opened()
	b.do(chromedp.SendKeys("#palette-text", `<img src=x onerror="document.title='owned'">`))
	b.until(`document.querySelectorAll("[role=option]").length === 3`)
	if eval[int](b, `document.querySelectorAll("#palette img").length`) != 0 {
		t.Error("what was typed is no text")
	}
}

// What a page says of itself is copied, or selected where the browser gives no clipboard; both are announced.
func TestBrowserCopy(t *testing.T) {
	t.Parallel()
	bench := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	b := openApp(t, bench)
	key := strings.TrimPrefix(path, letters+"/store/")
	want := map[string]string{"the id": "store/" + key, "the command": "roundhouse dlq show store " + key,
		"the curl command": `curl -H "x-functions-key: $ROUNDHOUSE_KEY" ` + b.url + "/api/machine/dlq/store/" + key, "the link": b.url + path}
	for what, text := range want {
		b.ready(path + "?done=retried")
		eval[bool](b, `Object.defineProperty(navigator, "clipboard", {value: {writeText: (text) => { window.copied = text; return Promise.resolve(); }}}); true`)
		b.tabTo("Copy " + what)
		b.press(kb.Enter)
		b.until(`document.getElementById("said").textContent === "Copied ` + what + `."`)
		if got := eval[string](b, `window.copied`); got != text {
			t.Errorf("%s: %q, want %q", what, got, text)
		}
	}
	b.ready(path)
	eval[bool](b, `Object.defineProperty(navigator, "clipboard", {value: undefined}); document.execCommand = () => false; true`) // as on plain http
	b.tabTo("Copy the id")
	b.press(kb.Enter)
	b.until(`document.getElementById("said").textContent.includes("is selected")`)
	if got := eval[string](b, `getSelection().toString()`); got != want["the id"] {
		t.Errorf("%q is selected", got)
	}
}

// Times are as somebody has chosen them, on the next page as well, with the other way in the title.
func TestBrowserTimes(t *testing.T) {
	t.Parallel()
	bench := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	b := openApp(t, bench)
	b.ready(path)
	const first = `document.querySelector("main time")`
	text := func() string { return eval[string](b, first+`.textContent`) }
	sent, iso := text(), eval[string](b, first+`.dateTime`)
	if !strings.HasSuffix(sent, " UTC") || !strings.HasPrefix(iso, strings.Replace(sent[:19], " ", "T", 1)) {
		t.Errorf("%s is shown as %q", iso, sent)
	}
	choose := func(name, value string) {
		eval[bool](b, `(s => { s.focus(); s.value = "`+value+`"; s.dispatchEvent(new Event("change")); return true; })(document.getElementById("`+name+`"))`)
	}
	choose("zone", "Asia/Dubai")
	if now := text(); !strings.HasSuffix(now, "GST") || now[:13] == sent[:13] || !strings.Contains(eval[string](b, first+`.title`), sent) {
		t.Errorf("in Dubai: %q with the title %q", now, eval[string](b, first+`.title`))
	}
	choose("clock", "ago")
	b.ready(letters)
	if now := text(); !strings.HasSuffix(now, " ago") || !strings.HasSuffix(eval[string](b, first+`.title`), "GST") || eval[string](b, `document.getElementById("zone-name").textContent`) != "Asia/Dubai" {
		t.Errorf("on the next page: %q with the title %q", now, eval[string](b, first+`.title`))
	}
	eval[bool](b, `localStorage.setItem("zone", "Nowhere/Nothing"); localStorage.setItem("clock", "x"); true`)
	b.ready(path)
	if now := text(); now != sent {
		t.Errorf("with a zone that nobody knows: %q", now)
	}
}

// On paper there is what the page says, in dark on light, and nothing to click; who asks for less motion gets none.
func TestBrowserMedia(t *testing.T) {
	t.Parallel()
	bench := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	b := openApp(t, bench)
	eval[bool](b, `localStorage.setItem("theme", "dark"); true`)
	b.ready(path)
	media := func(p emulation.SetEmulatedMediaParams) {
		t.Helper()
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, p); err != nil {
			t.Fatal(err)
		}
	}
	const shown = `[...document.querySelectorAll("a, button, select, input")].filter((e) => e.checkVisibility() && !e.closest("dd, li")).map((e) => e.textContent)`
	if eval[int](b, shown+`.length`) == 0 {
		t.Error("nothing can be clicked on the screen")
	}
	media(emulation.SetEmulatedMediaParams{Media: "print"})
	if left := eval[[]string](b, shown); len(left) > 0 {
		t.Errorf("on paper there are %q", left)
	}
	if back := eval[string](b, `getComputedStyle(document.body).backgroundColor`); back != "rgb(255, 255, 255)" {
		t.Errorf("the paper is %s", back)
	}
	const motion = `[...document.querySelectorAll("a")].some((a) => getComputedStyle(a).transitionDuration !== "0s")`
	for value, want := range map[string]bool{"reduce": false, "no-preference": true} {
		media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: value}}})
		if got := eval[bool](b, motion); got != want {
			t.Errorf("%s: something moves: %v", value, got)
		}
	}
}
