package localhost

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

func textLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, nil))
}

func queueBinding(queue string) map[string]any {
	return map[string]any{"type": "queueTrigger", "direction": "in", "name": "q", "queueName": queue, "dataType": "binary"}
}

func httpBindings(route string, methods ...string) []map[string]any {
	return []map[string]any{
		{"type": "httpTrigger", "direction": "in", "name": "req", "authLevel": "function", "route": route, "methods": methods},
		{"type": "http", "direction": "out", "name": "res"},
	}
}

// TestMessageToTheHandler follows a message from the queue to the handler process and to the next queue.
func TestMessageToTheHandler(t *testing.T) {
	t.Parallel()
	for name, chunked := range map[string]bool{"as Core Tools": false, "as Azure": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			a.config.Chunked = chunked
			a.host["extensions"] = map[string]any{"queues": map[string]any{"messageEncoding": "none"}}
			store := a.config.Queues.(*queues.Memory)
			a.function(t, "echo", queueBinding("work"), map[string]any{"type": "queue", "direction": "out", "name": "next", "queueName": "%NEXT%"})
			a.config.Env = []string{"NEXT=follow-up"}
			send(t, store, "work", `{"Id":"forged"}`)
			a.start(t)
			i := a.next(t)
			if i.Function != "echo" || i.Trigger != "queueTrigger" || i.DequeueCount != 1 || i.Outcome != Succeeded || i.Err != nil || i.Violation() != nil {
				t.Errorf("invocation %+v", i)
			}
			var got received
			testenv.OK(t, json.Unmarshal([]byte(a.output.wait(t, `"Header"`, 1)[0]), &got))
			if id := got.Header.Get("X-Azure-Functions-InvocationId"); id != i.ID || len(id) != 36 {
				t.Errorf("the handler saw invocation %q, the observer %q", id, i.ID)
			}
			if (got.Length < 0) != chunked {
				t.Errorf("Content-Length %d", got.Length)
			}
			var e struct {
				Data     struct{ Q []byte }
				Metadata struct{ ID, DequeueCount string }
			}
			testenv.OK(t, json.Unmarshal(got.Body, &e))
			if string(e.Data.Q) != `{"Id":"forged"}` || e.Metadata.ID != `"`+i.MessageID+`"` || e.Metadata.DequeueCount != "1" {
				t.Errorf("body %s", got.Body)
			}
			next, err := store.Receive(t.Context(), "follow-up", 1, time.Minute)
			if err != nil || len(next) != 1 || string(queues.Decode(next[0].Text)) != "to the next queue" {
				t.Errorf("output %v, %v", next, err)
			}
			if n := length(t, store, "work"); n != 0 {
				t.Errorf("%d messages left", n)
			}
		})
	}
}

// TestEmptyAnswerIsReportedAtOnce tests the deliberate difference to the real host, which would hang.
func TestEmptyAnswerIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	var log lockedBuilder
	a.config.Log = textLog(&log)
	a.host["extensions"] = map[string]any{"queues": map[string]any{"maxDequeueCount": 2}}
	store := a.config.Queues.(*queues.Memory)
	a.function(t, "empty", queueBinding("work"))
	send(t, store, "work", "dGV4dA==")
	a.start(t)
	for _, want := range []Outcome{Failed, Poisoned} {
		i := a.next(t)
		if v := i.Violation(); i.Outcome != want || v == nil || v.Rule != RuleEmptyBody || v.Function != "empty" {
			t.Errorf("invocation %+v, want %s for an empty body", i, want)
		}
	}
	if n := length(t, store, "work-poison"); n != 1 {
		t.Errorf("%d poison messages", n)
	}
	if text := log.String(); !strings.Contains(text, `"rule":"empty-body"`) || strings.Contains(text, "dGV4dA") {
		t.Errorf("log %s", text)
	}
}

type lockedBuilder struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuilder) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuilder) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestMessageOfAKilledHandlerComesAgain(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	store := a.config.Queues.(*queues.Memory)
	a.host["extensions"] = map[string]any{"queues": map[string]any{"messageEncoding": "none", "batchSize": 1, "newBatchThreshold": 0}}
	a.function(t, "hang", queueBinding("work"))
	send(t, store, "work", "text")
	host, _, _ := a.start(t)
	for attempt := range int64(2) {
		a.output.wait(t, "handler hangs", int(attempt)+1)
		testenv.OK(t, host.KillHandler())
		if i := a.next(t); i.DequeueCount != attempt+1 || i.Outcome != Failed {
			t.Errorf("invocation %+v", i)
		}
	}
	a.output.wait(t, "handler hangs", 3)
}

func TestTimerOfAHost(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.function(t, "echo", map[string]any{"type": "timerTrigger", "direction": "in", "name": "t", "schedule": "0 0 0 1 1 *", "runOnStartup": true})
	host, _, _ := a.start(t)
	if i := a.next(t); i.Err != nil || i.Trigger != "timerTrigger" {
		t.Errorf("invocation %+v", i)
	}
	if i := a.invoke(t, host, "ECHO", "by hand"); i.Err != nil {
		t.Errorf("invocation %+v", i)
	}
	lines := a.output.wait(t, `"Header"`, 2)
	if strings.Contains(lines[0], "by hand") || !strings.Contains(lines[1], `"t":"\"by hand\""`) || !strings.Contains(lines[1], `"AdjustForDST":true`) {
		t.Errorf("bodies %s", lines)
	}
}

func TestOneBrokenFunctionDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.config.Queues = nil
	a.manual(t, "good")
	a.function(t, "blob", map[string]any{"type": "blobTrigger", "name": "b"})
	a.function(t, "queue", queueBinding("work"))
	a.function(t, "broken-route", httpBindings("{a}-{b}")...)
	a.write(t, "off/function.json", map[string]any{"disabled": true, "bindings": []any{map[string]any{"type": "manualTrigger", "name": "m"}}})
	host, _, _ := a.start(t)
	if i := a.invoke(t, host, "good", ""); i.Err != nil {
		t.Error(i.Err)
	}
	_, text := request(t, http.MethodGet, host.URL()+"/admin/functions", nil)
	var views []functionView
	testenv.OK(t, json.Unmarshal([]byte(text), &views))
	got := map[string]string{}
	for _, v := range views {
		got[v.Name] = strings.Join(v.Errors, "")
		if v.IsDisabled != (v.Name == "off") {
			t.Errorf("%s: disabled %v", v.Name, v.IsDisabled)
		}
	}
	for name, want := range map[string]string{"good": "", "off": "", "blob": "not supported", "queue": "not registered", "broken-route": "not supported"} {
		if err, ok := got[name]; !ok || !strings.Contains(err, want) || (err == "") != (want == "") {
			t.Errorf("%s: %q, want %q", name, err, want)
		}
	}
}

func TestAdmin(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.config.FunctionKey = "the-key"
	a.manual(t, "good")
	a.function(t, "hello", httpBindings("hello/{id}")...)
	a.write(t, "off/function.json", map[string]any{"disabled": true, "bindings": []any{map[string]any{"type": "manualTrigger", "name": "m"}}})
	host, _, _ := a.start(t)
	for _, test := range []struct {
		method, path, body string
		status             int
		contains           string
	}{
		{"GET", "/", "", 200, "running"},
		{"GET", "/nothing", "", 404, ""},
		{"GET", "/admin/host/status", "", 200, `"state":"Running"`},
		{"GET", "/admin/functions/GOOD", "", 200, `"name":"good"`},
		{"GET", "/admin/functions/hello", "", 200, host.URL() + "/api/hello/{id}"},
		{"GET", "/admin/functions/good/status", "", 200, `{}`},
		{"GET", "/admin/functions/none", "", 404, ""},
		{"POST", "/admin/functions/none", `{"input":""}`, 404, ""},
		{"POST", "/admin/functions/good", `text`, 400, ""},
		{"POST", "/admin/functions/hello", `{"input":""}`, 202, ""},
		{"POST", "/admin/functions/off", `{"input":""}`, 404, ""},
		{"POST", "/admin/functions/good", `{"input":1}`, 202, ""},
		{"GET", "/admin/host/drain/status", "", 200, `"state":"Disabled"`},
	} {
		send := func(key string) (int, string) {
			response, text := request(t, test.method, host.URL()+test.path, strings.NewReader(test.body),
				given("x-functions-key", key, "Content-Type", "application/json; charset=utf-8")...)
			return response.StatusCode, text
		}
		if status, text := send("the-key"); status != test.status || !strings.Contains(text, test.contains) {
			t.Errorf("%s %s: %d %s, want %d %q", test.method, test.path, status, text, test.status, test.contains)
		}
		for _, key := range []string{"", "another"} {
			if status, _ := send(key); strings.HasPrefix(test.path, "/admin") && status != http.StatusUnauthorized {
				t.Errorf("%s %s with key %q: %d", test.method, test.path, key, status)
			}
		}
	}
	if i := a.next(t); i.Function != "good" || i.Err != nil {
		t.Errorf("invocation %+v", i)
	}
}

// TestAdminWithoutAKey covers the answers without a key, and the refusals before the function is looked up.
func TestAdminWithoutAKey(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.config.FunctionKey = "the-key"
	a.manual(t, "good")
	host, _, _ := a.start(t)
	for _, test := range []struct {
		method, path, key, contentType string
		status                         int
	}{
		{"GET", "/admin/host/ping", "", "", 200},
		{"GET", "/admin/host/keys", "", "", 404},
		{"PUT", "/admin/host/status", "", "", 404},
		{"GET", "/admin", "", "", 404},
		{"GET", "/admin/host/status", "", "", 401},
		{"POST", "/admin/functions/good", "the-key", "", 415},
		{"POST", "/admin/functions/good", "the-key", "text/plain", 415},
		{"GET", "/runtime/webhooks/x", "", "", 401},
		{"GET", "/runtime/webhooks/x", "the-key", "", 404},
	} {
		response, text := request(t, test.method, host.URL()+test.path, strings.NewReader("{}"),
			given("x-functions-key", test.key, "Content-Type", test.contentType)...)
		if response.StatusCode != test.status || text != "" {
			t.Errorf("%+v: %d %s", test, response.StatusCode, text)
		}
		if got := response.Header.Get("Www-Authenticate"); (got == "Bearer") != (test.status == 401) {
			t.Errorf("%+v: WWW-Authenticate %q", test, got)
		}
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	store := a.config.Queues.(*queues.Memory)
	a.function(t, "hang", queueBinding("work"))
	send(t, store, "work", "dGV4dA==")
	host, _, _ := a.start(t)
	a.output.wait(t, "handler hangs", 1)
	for range 2 {
		if response, _ := request(t, http.MethodPost, host.URL()+"/admin/host/drain", nil); response.StatusCode != http.StatusAccepted {
			t.Errorf("drain: %d", response.StatusCode)
		}
	}
	_, status := request(t, http.MethodGet, host.URL()+"/admin/host/drain/status", nil)
	if !strings.Contains(status, `"InProgress"`) || !strings.Contains(status, `"outstandingInvocations":1`) {
		t.Errorf("status %s", status)
	}
	testenv.OK(t, host.KillHandler())
	a.next(t)
	_, status = request(t, http.MethodGet, host.URL()+"/admin/host/drain/status", nil)
	if diff := cmp.Diff(`{"state":"Completed","outstandingInvocations":0,"outstandingRetries":0}`, strings.TrimSpace(status)); diff != "" {
		t.Error(diff)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*app)
		want   string
	}{
		"no script root":  {func(a *app) { a.config.ScriptRoot = "" }, "ScriptRoot is required"},
		"several values":  {func(a *app) { a.config.Port, a.config.KillGrace = -1, -1 }, "KillGrace -1ns is negative"},
		"visibility":      {func(a *app) { a.config.Visibility = time.Millisecond }, "Visibility"},
		"missing root":    {func(a *app) { a.config.ScriptRoot = filepath.Join(a.root, "none") }, "FUNCTIONS_WORKER_RUNTIME"},
		"another runtime": {func(a *app) { a.config.Env = []string{runtimeSetting + "=node"} }, "set it to custom"},
		"time zone":       {func(a *app) { a.config.Env = []string{"WEBSITE_TIME_ZONE=Nowhere/Else"} }, "WEBSITE_TIME_ZONE"},
		"missing handler": {func(a *app) {
			a.config.Env = []string{"AzureFunctionsJobHost__customHandler__description__defaultExecutablePath=none",
				"AzureFunctionsJobHost__customHandler__description__arguments__0=x"}
		}, "find the handler"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			a.write(t, "host.json", a.host)
			test.change(a)
			if _, err := New(a.config); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestRunFailsWhereItCannot(t *testing.T) {
	t.Parallel()
	t.Run("handler that does not start", func(t *testing.T) {
		t.Parallel()
		a := newApp(t)
		a.manual(t, "good")
		a.config.Env = []string{"AzureFunctionsJobHost__customHandler__description__defaultExecutablePath=none"}
		_, end := a.launch(t)
		if err := <-end.ended; err == nil || !strings.Contains(err.Error(), "start the handler") {
			t.Errorf("Run: %v", err)
		}
	})
	t.Run("port that is taken", func(t *testing.T) {
		t.Parallel()
		first := newApp(t)
		host, _, _ := first.start(t) // without functions it is ready without a handler
		if host.HandlerPID() != 0 {
			t.Error("a handler was started for no function")
		}
		second := newApp(t)
		second.config.Port = host.port
		_, end := second.launch(t)
		if err := <-end.ended; err == nil || !strings.Contains(err.Error(), "another host") {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestObserverOfAnInvocationWithoutViolation(t *testing.T) {
	t.Parallel()
	if v := (Invocation{Err: errors.New("other")}).Violation(); v != nil {
		t.Errorf("violation %v", v)
	}
}
