package console_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

// An operation is found in the list, paused and resumed by keyboard alone; both pages are as all pages are to be.
func TestBrowserOperations(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey}
	bench := newBench(t, settings)
	for _, id := range []string{"work-1", "work-2"} {
		bench.bury(t, id, "", "the vault answered 503")
	}
	bench.mended.Store(true)
	path := bench.started(t, "/api/dlq/retry", `{"engine": "store", "canary": 1, "canarySeconds": 3600}`)
	bench.Deliver() // the first is sent, and it waits for what comes of that
	server := httptest.NewServer(bench.Host)
	t.Cleanup(server.Close)
	bench.Restart(settings, func(*handler.Config) {})
	b := browser.Open(t, server.URL)
	b.Open(console.Root + "/?code=" + localKey)
	for _, step := range []string{"Operations", "retry dead letters", "Pause"} {
		b.TabTo(step)
		b.Enter()
	}
	bench.Deliver()
	b.Do(chromedp.WaitVisible(`[data-status=Paused]`))
	b.Look(map[string]string{"operations": console.Root + "/operations", "operations-filter": console.Root + "/operations?status=Open&by=x", "operation-paused": path}, nil)
	b.Open(path)
	b.TabTo("Resume")
	b.Enter()
	bench.Deliver()
	b.Do(chromedp.WaitVisible(`[data-status=Running]`))
	b.TabTo("Cancel the operation")
	b.Enter()
	bench.Deliver()
	b.Do(chromedp.WaitVisible(`[data-status=Canceled]`))
	if text := browser.Eval[string](b, `document.querySelector("main").textContent`); strings.Contains(text, "Pause") || !strings.Contains(text, "1 done") {
		t.Errorf("the page says %s", text)
	}
}
