package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

// operation starts an operation on nothing, and gives the address of its page when it has ended.
func (b bench) operation(t *testing.T) string {
	t.Helper()
	path := b.started(t, "/api/dlq/expire", `{"instanceId": "nothing", "olderThanDays": 0}`)
	b.Deliver() // or its page would ask again while it is looked at
	return path
}

// started starts one by the API, and gives the address of its page.
func (b bench) started(t *testing.T, path, body string) string {
	t.Helper()
	var answer struct{ Data struct{ ID string } }
	status, text := b.Do(http.MethodPost, path, body, func(r *http.Request) {
		r.Header.Set("x-functions-key", localKey)
		r.Header.Set("Content-Type", "application/json")
	})
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusAccepted {
		t.Fatalf("%d: %s: %v", status, text, err)
	}
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
	b := browser.Open(t, server.URL)
	b.Open(console.Root + "/?code=" + localKey)
	b.Open(letters + "?engine=store")
	for _, step := range []string{"Retry all of the filter", "Retry all 2"} {
		b.TabTo(step)
		b.Enter()
	}
	if text := browser.Eval[string](b, `document.querySelector("[role=status]").textContent`); !strings.Contains(text, "0 of 2 done") {
		t.Errorf("the page says %q", text)
	}
	bench.Deliver()
	b.Do(chromedp.WaitVisible(`[data-status=Succeeded]`))
	if text := browser.Eval[string](b, `document.querySelector("main").textContent`); !strings.Contains(text, "2 of 2 done") || strings.Contains(text, "asks again") {
		t.Errorf("the page says %s", text)
	}
}
