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

// small is the width of the smallest screen that pages are made for.
const small = 360

// violation is something that axe-core finds in a page.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// Accessible holds the page against what axe-core knows of WCAG 2.2, levels A and AA, and of good practice.
func (b *Tab) Accessible(name string) {
	b.T.Helper()
	Eval[bool](b, axe+"; true")
	var found []violation
	text := Eval[string](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => JSON.stringify(r.violations))`)
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		b.T.Fatal(err)
	}
	for _, v := range found {
		b.T.Errorf("%s: %s: %s: %.600v", name, v.ID, v.Help, v.Nodes)
	}
}

// Look holds pages, by their names: each is accessible in both themes, fits a small screen, and keeps to its policy, whatever its data
// is. A script of the data that runs is to set the title of the document to "owned". seen is called with each page as it is
// shown, and "light", "dark" or "small"; nil leaves that.
func (b *Tab) Look(pages map[string]string, seen func(name, how string)) {
	b.T.Helper()
	if seen == nil {
		seen = func(string, string) {}
	}
	names := slices.Sorted(maps.Keys(pages))
	for _, scheme := range []string{"light", "dark"} {
		b.Prefer(scheme)
		for _, name := range names {
			b.Open(pages[name])
			b.Accessible(name + ", " + scheme)
			seen(name, scheme)
			if title := Eval[string](b, `document.title`); title == "owned" {
				b.T.Errorf("%s: a script of the data has run", name)
			}
		}
	}
	b.Do(chromedp.EmulateViewport(small, 740))
	for _, name := range names {
		b.Open(pages[name])
		seen(name, "small")
		if width := Eval[int](b, `document.documentElement.scrollWidth`); width > small {
			b.T.Errorf("%s is %d wide on a screen of %d", name, width, small)
		}
	}
	b.Silent()
}

// Silent holds that the browser has not complained of a page so far.
func (b *Tab) Silent() {
	b.T.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		b.T.Errorf("the browser complains: %q", slices.Compact(slices.Sorted(slices.Values(b.complaints))))
	}
}
