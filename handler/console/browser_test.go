package console_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

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
	b := browser.Open(t, server.URL)
	if status := b.Open(console.Root + "/?code=" + localKey); status != 200 || browser.Eval[string](b, `location.href`) != server.URL+console.Root {
		t.Fatalf("signed in: %d at %s", status, browser.Eval[string](b, `location.href`))
	}
	retryByKeyboard(b, bench, path)
	restartByKeyboard(b, bench)
	chooseTheme(b)
	pages := map[string]string{"home": console.Root, "causes": letters + "/causes", "letters": letters + "?status=any&correlationId=work-2", "letter": path, "hostile": hostile, "retry": hostile + "/retry",
		"expire": hostile + "/expire", "timeline": console.Root + "/timeline?correlationId=work-1", "search": console.Root + "/timeline", "nowhere": console.Root + "/nothing", "outside": console.Root + "?code=wrong",
		"orchestrations": runs, "orchestrations-filtered": runs + "?status=Stalled&idPrefix=it", "orchestration": runs + "/store-work-1", "orchestration-hostile": waiting, "suspend": waiting + "/suspend", "raise": waiting + "/raise",
		"not-now": waiting + "/purge",
		"bulk":    letters + "/retry?engine=store", "operation": operation, "outbox": console.Root + "/outbox", "event": event, "skip": event + "/skip"}
	b.Look(pages, nil)
}

// retryByKeyboard goes from the first page to the dead letter, and sends its message again.
func retryByKeyboard(b *browser.Tab, bench bench, path string) {
	b.Do(chromedp.KeyEvent(kb.Tab))
	if has := b.Focused(); has != "Skip to the content" {
		b.T.Errorf("the first stop is %q", has)
	}
	for _, step := range []string{"the vault answered 503", "the vault answered 503", "Retry …"} {
		b.TabTo(step)
		b.Enter()
	}
	if at := browser.Eval[string](b, `location.pathname`); at != path+"/retry" {
		b.T.Fatalf("it led to %s", at)
	}
	b.TabTo("Retry")
	b.Enter()
	if text := browser.Eval[string](b, `document.querySelector("[role=status]").textContent`); !strings.Contains(text, "was sent again") {
		b.T.Errorf("the page says %q", text)
	}
	bench.Deliver()
	b.Do(chromedp.Reload())
	if text := browser.Eval[string](b, `document.body.textContent`); !strings.Contains(text, "Succeeded") {
		b.T.Error("the page does not say that it succeeded")
	}
	b.TabTo("Timeline of work-1")
	b.Enter()
	if bars := browser.Eval[int](b, `document.querySelectorAll("svg rect").length`); bars == 0 {
		b.T.Error("the timeline has no bars")
	}
}

// chooseTheme chooses a theme, which stays for other pages, and goes back to that of the system.
func chooseTheme(b *browser.Tab) {
	back := func() string { return browser.Eval[string](b, `getComputedStyle(document.body).backgroundColor`) }
	b.Prefer("light")
	b.Open(console.Root)
	light := back()
	for n, want := range []string{"system", "light", "dark"} {
		b.TabTo("Theme: " + want)
		b.Do(chromedp.KeyEvent(" "))
		if n == 1 && back() == light {
			b.T.Error("dark is as light")
		}
	}
	b.TabTo("Theme: system")
	b.Do(chromedp.KeyEvent(" "))
	b.Do(chromedp.KeyEvent(" "))
	b.Open(letters)
	if theme := browser.Eval[string](b, `document.documentElement.dataset.theme`); theme != "dark" || back() == light {
		b.T.Errorf("on the next page the theme is %q", theme)
	}
	browser.Eval[bool](b, `localStorage.clear(); true`)
	b.Open(letters)
	if back() != light {
		b.T.Error(fmt.Errorf("without a choice, it is not the system's: %s", back()))
	}
}
