package handler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/urlpath"
	"github.com/vibedata/roundhouse/orchestrator"
)

// waitingApp returns an app that waits for the event "go/on", and has a page that shows its path parameter.
func waitingApp() handler.App {
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		pass := orchestrator.NewActivity("pass", func(_ context.Context, in string) (string, error) { return in, nil })
		run := func(ctx *orchestrator.Context, _ engine.Request[struct{}]) (string, error) {
			event, err := orchestrator.Event[string](ctx, "go/on").Await()
			if err != nil {
				return "", err
			}
			return pass.Call(ctx, event).Await()
		}
		return []engine.Definition{{Name: "wait", Queue: "wait-queue", Orchestrator: engine.Orchestrate("wait", run), Operations: []orchestrator.AnyActivity{pass},
			Endpoints: []engine.Endpoint{{Function: "page", Route: "pages/{name}", Methods: []string{http.MethodGet}, Anonymous: true,
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.PathValue("name")) })}}}}, nil
	}}
}

// The host's proxy changes a slash in a path, and the request still reaches its own target, by both APIs and for
// endpoints of engines: never another one.
func TestIDsInPaths(t *testing.T) {
	t.Parallel()
	for _, proxied := range []bool{false, true} {
		way := func(path string) string { return path }
		if proxied {
			way = func(path string) string { return strings.ReplaceAll(path, "%2F", "%252F") }
		}
		synctest.Test(t, func(t *testing.T) {
			h := handlertest.New(t, waitingApp(), nil)
			for _, id := range []string{"a/b", "a%2Fb", "a%252Fb"} { // each id is the proxy's form of the previous one
				body := fmt.Sprintf(`{"orchestrator": "wait", "correlationId": %q, "input": {"instanceId": "i"}}`, id)
				status, answer := h.Do(http.MethodPost, "/api/orchestrations", body)
				if status != http.StatusAccepted {
					t.Fatal(status, answer)
				}
			}
			h.Deliver()
			for _, id := range []string{"a/b", "a%2Fb", "a%252Fb"} {
				escaped := urlpath.Escape("wait-" + id)
				status, answer := h.Do(http.MethodGet, way("/api/runtime/webhooks/durabletask/instances/"+escaped), "")
				var shown struct{ InstanceID string }
				if err := json.Unmarshal([]byte(answer), &shown); err != nil || status != http.StatusAccepted || shown.InstanceID != "wait-"+id {
					t.Errorf("%s: %d %s", id, status, answer)
				}
				event := "/api/orchestrations/" + escaped + "/events/" + url.PathEscape("go/on")
				answers(t, h, http.StatusAccepted, `"wait-`+id+`"`, http.MethodPost, way(event), `"`+id+`"`)
				h.Deliver()
				if out := h.Outcome("wait-" + id); string(out.Output) != `"`+id+`"` {
					t.Errorf("%s: %s %s", id, out.Status, out.Output)
				}
				if status, answer := h.Do(http.MethodGet, way("/api/pages/"+urlpath.Escape(id)), ""); status != http.StatusOK || answer != id {
					t.Errorf("%s: %d %s", id, status, answer)
				}
			}
		})
	}
}

// The links of an answer work through the proxy, with any characters in the id.
func TestLinksThroughTheProxy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := handlertest.New(t, waitingApp(), nil)
		for _, id := range []string{"a/../b", "a%2Fb", "50%", "a+b", "~:@"} {
			status, answer := h.Do(http.MethodPost, "/api/runtime/webhooks/durabletask/orchestrators/wait", fmt.Sprintf(`{"correlationId": %q, "instanceId": "i"}`, id))
			var links struct{ StatusQueryGetURI string }
			if err := json.Unmarshal([]byte(answer), &links); err != nil || status != http.StatusAccepted {
				t.Fatal(status, answer)
			}
			link := links.StatusQueryGetURI[strings.Index(links.StatusQueryGetURI, "/api/"):]
			for _, path := range []string{link, strings.ReplaceAll(link, "%2F", "%252F")} {
				status, answer := h.Do(http.MethodGet, path, "")
				if status != http.StatusAccepted || !strings.Contains(answer, `"instanceId":"wait-`+id+`"`) {
					t.Errorf("%s at %s: %d %s", id, path, status, answer)
				}
			}
		}
	})
}

// Every function that answers GET answers HEAD, with the status of GET.
func TestHead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := handlertest.New(t, waitingApp(), nil)
		asked := 0
		for name, f := range h.Manifest().Functions {
			trigger := f.Bindings[0]
			if gets := slices.Contains(trigger.Methods, "get"); gets != slices.Contains(trigger.Methods, "head") {
				t.Errorf("%s: %s", name, trigger.Methods)
			} else if !gets {
				continue
			}
			path := "/api/" + strings.NewReplacer("{runtime}", "runtime", "/{*path}", "", "{name}", "x").Replace(trigger.Route)
			status, _ := h.Do(http.MethodGet, path, "")
			if head, _ := h.Do(http.MethodHead, path, ""); head != status {
				t.Errorf("%s: %d, GET %d", path, head, status)
			}
			asked++
		}
		if asked < 20 {
			t.Errorf("%d functions", asked)
		}
	})
}

// Waiting requests are answered before the host's timeout: two seconds later the host kills the handler, with all its
// work.
func TestWaitsEndBeforeTheHostGivesUp(t *testing.T) {
	t.Parallel()
	for functionTimeout, most := range map[string]time.Duration{"00:01:00": 30 * time.Second, "00:03:00": 150 * time.Second, "-1": 220 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := handlertest.New(t, waitingApp(), map[string]string{"AzureFunctionsJobHost__functionTimeout": functionTimeout})
			begin := time.Now()
			status, answer := h.Do(http.MethodPost, "/api/runtime/webhooks/durabletask/orchestrators/wait?timeout=86400&pollingInterval=5", "")
			if took := time.Since(begin); status != http.StatusAccepted || took > most || took < most/2 {
				t.Errorf("functionTimeout %s: %d %s, after %s", functionTimeout, status, answer, took)
			}
		})
	}
}

// answers sends a request, and checks the status of the answer and a text in it.
func answers(t *testing.T, h interface {
	Do(method, path, body string, as ...func(*http.Request)) (int, string)
}, status int, says, method, path, body string, as ...func(*http.Request)) {
	t.Helper()
	if got, answer := h.Do(method, path, body, as...); got != status || !strings.Contains(answer, says) {
		t.Errorf("%s %s: %d, want %d with %q: %.1000s", method, path, got, status, says, answer)
	}
}
