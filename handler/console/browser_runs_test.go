package console_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

// Somebody starts a run in a real browser by keyboard alone, and opens a history that was downloaded; the pages that start, open and
// purge are as all pages are to be.
func TestBrowserRuns(t *testing.T) {
	t.Parallel()
	bench := newStarting(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	server := httptest.NewServer(bench.Host)
	t.Cleanup(server.Close)
	b := browser.Open(t, server.URL)
	b.Open(console.Root + "/?code=" + localKey)
	for _, step := range []string{"Orchestrations", "Start …", "store"} {
		b.TabTo(step)
		b.Enter()
	}
	browser.Eval[bool](b, `document.querySelector("[name=correlationId]").value = "by-hand"; document.querySelector("[name=f0]").value = "9007199254740993"; true`)
	b.TabTo("Start")
	b.Enter()
	if text := browser.Eval[string](b, `document.querySelector("[role=status]").textContent`); !strings.Contains(text, "its id is store-by-hand") {
		t.Fatalf("the page says %q", text)
	}
	bench.Deliver()
	bench.index()
	bench.damage(t, "store-by-hand")
	bench.Send("store-queue", `{"correlationId": "work-2", "input": {"why": "<script>document.title = 'owned'</script>", "deep": [[[1, {"n": 1}]]]}}`)
	bench.Deliver()
	openHistoryByFile(b, t, bench)
	b.Look(map[string]string{"start": console.Root + "/start", "startform": startStore, "startjson": startStore + "?as=json", "openhistory": openHistory, "run": runs + "/store-work-2", "damaged": runs + "/store-by-hand",
		"force": runs + "/store-by-hand/force-purge", "purge": purging, "list": runs + "?columns=status,tag,ended&since=hour"}, nil)
}

// openHistoryByFile chooses a file, and opens it.
func openHistoryByFile(b *browser.Tab, t *testing.T, bench bench) {
	t.Helper()
	status, text := bench.Do(http.MethodGet, "/api/orchestrations/store-work-2/history", "", func(r *http.Request) { r.Header.Set("x-functions-key", localKey) })
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	file := filepath.Join(t.TempDir(), "history.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Open(openHistory)
	b.Do(chromedp.SetUploadFiles(`input[type=file]`, []string{file}))
	b.TabTo("Open")
	b.Enter()
	if said := browser.Eval[string](b, `document.querySelector("[role=status]").textContent + document.querySelector(".tree").textContent`); !strings.Contains(said, "Offline:") || !strings.Contains(said, "why") {
		t.Errorf("the page says %q", said)
	}
	b.Accessible("opened")
}
