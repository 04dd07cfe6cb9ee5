package browser

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"

	"github.com/chromedp/chromedp"
)

//go:embed axe/axe.min.js
var axe string

const (
	// small is the width of the smallest supported screen, and wide that of others.
	small, wide = 360, 1280
	// everyRule are the accessibility rules for pages, and colorRules those of them that depend on the theme.
	everyRule  = `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]`
	colorRules = `{type: "rule", values: ["color-contrast", "link-in-text-block"]}`
)

// unreachable lists the controls of a page that the Tab key does not reach, or that do not show their focus.
const unreachable = `(() => {
  const had = document.activeElement, bad = [], shown = document.querySelector("dialog[open]") ?? document;
  for (const e of shown.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")) {
    if (e.disabled || !e.checkVisibility()) continue;
    e.focus({focusVisible: true, preventScroll: true});
    if (document.activeElement !== e || e.tabIndex < 0) bad.push("no focus: " + e.outerHTML.slice(0, 200));
    else if (getComputedStyle(e).outlineStyle === "none") bad.push("no outline: " + e.outerHTML.slice(0, 200));
  }
  document.activeElement.blur();
  if (had !== document.body) had.focus({preventScroll: true});
  return bad;
})()`

// tooWide lists the innermost elements beyond the right edge of the screen.
const tooWide = `[...document.querySelectorAll("main *, header *")].filter((e) => e.childElementCount === 0 &&
  e.getBoundingClientRect().right > innerWidth).slice(0, 3).map((e) => e.outerHTML.slice(0, 200))`

// violation is a finding of axe-core in a page.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// Accessible checks the page with axe-core's rules of WCAG 2.2, levels A and AA, and of good practice.
func (b *Tab) Accessible(name string) {
	b.T.Helper()
	b.holdRules(name, everyRule)
}

func (b *Tab) holdRules(name, rules string) {
	b.T.Helper()
	if !Eval[bool](b, `!!window.axe`) {
		Eval[bool](b, axe+"; true")
	}
	var found []violation
	text := Eval[string](b, `axe.run(document, {runOnly: `+rules+`}).then(r => JSON.stringify(r.violations))`)
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		b.T.Fatal(err)
	}
	for _, v := range found {
		b.T.Errorf("%s: %s: %s: %.600v", name, v.ID, v.Help, v.Nodes)
	}
}

// Look opens pages, by their names, and checks each with Shown. seen is called with each page as it is shown, and
// "light", "dark" or "small"; it may be nil.
func (b *Tab) Look(pages map[string]string, seen func(name, how string)) {
	b.T.Helper()
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		b.Open(pages[name])
		b.Shown(name, seen)
	}
	b.Silent()
}

// Shown checks that the open page is accessible in both themes and by keyboard, fits a small screen, and has run no
// script of its data, which would set the title of the document to "owned". The rules that do not depend on colors are
// checked in one theme.
func (b *Tab) Shown(name string, seen func(name, how string)) {
	b.T.Helper()
	if seen == nil {
		seen = func(string, string) {}
	}
	b.Prefer("light")
	b.Accessible(name)
	for _, bad := range Eval[[]string](b, unreachable) {
		b.T.Errorf("%s, by keyboard: %s", name, bad)
	}
	seen(name, "light")
	b.Prefer("dark")
	b.holdRules(name+", dark", colorRules)
	seen(name, "dark")
	b.Do(chromedp.EmulateViewport(small, 740))
	seen(name, "small")
	b.Fits(name)
	b.Prefer("light")
}

// Fits checks that the open page fits a small screen, and has run no script of its data.
func (b *Tab) Fits(name string) {
	b.T.Helper()
	b.Do(chromedp.EmulateViewport(small, 740))
	if width := Eval[int](b, `document.documentElement.scrollWidth`); width > small {
		b.T.Errorf("%s is %d wide on a screen of %d: %q", name, width, small, Eval[[]string](b, tooWide))
	}
	if title := Eval[string](b, `document.title`); title == "owned" {
		b.T.Errorf("%s: a script of the data has run", name)
	}
	b.Do(chromedp.EmulateViewport(wide, 800))
}

// Silent checks that the browser has reported no error so far.
func (b *Tab) Silent() {
	b.T.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		b.T.Errorf("the browser complains: %q", slices.Compact(slices.Sorted(slices.Values(b.complaints))))
	}
}
