package console_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

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

// openViews opens what the list has of views.
func openViews(b *browser.Tab) {
	b.T.Helper()
	b.Do(chromedp.WaitVisible("#views"), chromedp.Click("#views summary"), chromedp.WaitVisible("#views form"))
}

// A list is saved under a name, by keyboard, which stays text whatever it is, and is found again on the list and from any page.
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

// What storage holds that is no view is not offered, and a page works with storage that is damaged.
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

// There are 50 views at most; one of the same name takes the place of the other, and is of the list from its beginning on.
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
