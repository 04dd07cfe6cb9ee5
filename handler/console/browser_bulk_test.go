package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/vibedata/roundhouse/handler/console"
)

// operation starts an operation on nothing, and gives the address of its page.
func (b bench) operation(t *testing.T) string {
	t.Helper()
	var answer struct{ Data struct{ ID string } }
	status, text := b.Do(http.MethodPost, "/api/dlq/expire", `{"instanceId": "nothing", "olderThanDays": 0}`, func(r *http.Request) {
		r.Header.Set("x-functions-key", localKey)
		r.Header.Set("Content-Type", "application/json")
	})
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusAccepted {
		t.Fatalf("%d: %s: %v", status, text, err)
	}
	b.Deliver() // or its page would ask again while it is looked at
	return console.Root + "/operations/" + answer.Data.ID
}

// All of a cause are sent again by keyboard alone, and the page of the operation asks again by itself until it has ended.
func TestBrowserRetryAll(t *testing.T) {
	t.Parallel()
	bench := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	for _, id := range []string{"work-1", "work-2"} {
		bench.bury(t, id, "", "the vault answered 503")
	}
	bench.mended.Store(true)
	server := httptest.NewServer(bench.Host)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.open(console.Root + "/?code=" + localKey)
	b.open(letters + "?engine=store")
	for _, step := range []string{"Retry all of the filter", "Retry all 2"} {
		b.tabTo(step)
		b.enter()
	}
	if text := eval[string](b, `document.querySelector("[role=status]").textContent`); !strings.Contains(text, "0 of 2 done") {
		t.Errorf("the page says %q", text)
	}
	bench.Deliver()
	b.do(chromedp.WaitVisible(`[data-status=Succeeded]`))
	if text := eval[string](b, `document.querySelector("main").textContent`); !strings.Contains(text, "2 of 2 done") || strings.Contains(text, "asks again") {
		t.Errorf("the page says %s", text)
	}
}
