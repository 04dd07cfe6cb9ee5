package console_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

// Somebody finds a poller and resets it in a real browser, by keyboard alone; the pages of pollers are as all pages are to be.
func TestBrowserPollers(t *testing.T) {
	t.Parallel()
	bench := newPolled(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	bench.Tick("poller-orders-timer", time.Now())
	bench.Tick("poller-lost-timer", time.Now())
	server := httptest.NewServer(bench.Host)
	t.Cleanup(server.Close)
	b := browser.Open(t, server.URL)
	b.Open(console.Root + "/?code=" + localKey)
	for _, step := range []string{"Pollers", "orders", "Reset to a place …"} {
		b.TabTo(step)
		b.Enter()
	}
	b.TabTo("INPUT")
	b.Do(chromedp.KeyEvent("1"))
	b.TabTo("Reset to a place")
	b.Enter()
	if text := browser.Eval[string](b, `document.querySelector("[role=status]").textContent`); !strings.Contains(text, "goes on behind the place") || bench.state(t).Cursor().Value != "1" {
		t.Errorf("the page says %q, and the poller is at %s", text, bench.state(t).Cursor())
	}
	bench.hold(t)
	const orders = pollerList + "/orders"
	pages := map[string]string{"pollers": pollerList, "poller": orders, "poller-lag": orders + "?lag=now", "poller-failing": pollerList + "/lost?lag=now"}
	for _, act := range []string{"reset-to-cursor", "reset-to-checkpoint", "reset-to-beginning", "clone-checkpoint", "retire"} {
		pages["poller-"+act] = orders + "/" + act
	}
	b.Look(pages, nil)
}
