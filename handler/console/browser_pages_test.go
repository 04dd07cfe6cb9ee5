package console

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/browser"
)

// Each page that has a golden file, and each with data that is meant to do harm, is accessible in both themes, fits a small screen, keeps to its
// policy and can be used by keyboard. Pages are asked for once, and opened as they were answered.
func TestBrowserPages(t *testing.T) {
	t.Parallel()
	var page atomic.Pointer[httptest.ResponseRecorder]
	files := newConsole(t, nothing(), access.Control{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, Root+"/assets/") {
			files.ServeHTTP(w, r)
			return
		}
		rec := page.Load()
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	b := browser.Open(t, server.URL)
	for _, pages := range areas() {
		for _, name := range slices.Sorted(maps.Keys(pages)) {
			if strings.Contains(name, "hostile") || isGolden(goldenFile(name)) {
				page.Store(pages[name].ask(t))
				b.Open(Root + "/" + name)
				b.Shown(name, nil)
			}
		}
	}
	b.Silent()
}
