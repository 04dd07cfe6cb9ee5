package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// A start waits for the requested time, and answers with the output, the status, or the polling address.
func TestStartAndWait(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path, input string
		status      int
		want        string // of the body, "" for a check-status answer
		after       time.Duration
	}{
		"completed":      {"Hello?timeout=30&pollingInterval=2", `"you"`, 200, `"hello you"`, 2 * time.Second},
		"by id":          {"Hello/mine?timeout=30&pollingInterval=2", `"you"`, 200, `"hello you"`, 2 * time.Second},
		"failed":         {"Hello?timeout=30&pollingInterval=2", `"nobody"`, 200, `"runtimeStatus":"Failed"`, 2 * time.Second},
		"goes on":        {"Gate?timeout=5&pollingInterval=2", `"in"`, 202, "", 5 * time.Second},
		"half a second":  {"Gate?timeout=0.5&pollingInterval=0.25", `"in"`, 202, "", 500 * time.Millisecond},
		"no time at all": {"Gate?timeout=0&pollingInterval=0", `"in"`, 202, "", 0},
		"for a day":      {"Gate?timeout=86400&pollingInterval=60", `"in"`, 202, "", DefaultTimeout - settle},
		"no interval":    {"Hello?timeout=30", `"you"`, 202, "", 0},
		"no number":      {"Hello?timeout=30&pollingInterval=x", `"you"`, 202, "", 0},
	} {
		testenv.Bubble(t, name, func(t *testing.T) {
			b := newBench(t)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for ctx.Err() == nil {
					b.deliver(context.WithoutCancel(ctx), t)
					select {
					case <-ctx.Done():
					case <-time.After(time.Second + time.Millisecond):
					}
				}
			}()
			begin := time.Now()
			rec := b.send(t, http.MethodPost, base+"/orchestrators/"+tt.path, tt.input)
			if rec.Code != tt.status || !strings.Contains(rec.Body.String(), tt.want) || (tt.want == "") != strings.Contains(rec.Body.String(), "statusQueryGetUri") {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
			testenv.Equal(t, "when it was answered", tt.after, time.Since(begin))
			stop()
			<-done
		})
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.begin(t, "Gate", "g", `"in"`)
		testenv.OK(t, errors.Join(b.runtime.Suspend(t.Context(), "g", "lunch"), b.runtime.Resume(t.Context(), "g", "back"), b.runtime.Raise(t.Context(), "g", "open", "guest", "")))
		b.drive(t)
		type event struct{ Type, Name, Input, Result, More string }
		read := func(query string) (events []event) {
			got := body[shown](t, b.send(t, http.MethodGet, base+"/instances/g?showHistory=true"+query, ""))
			if got.RuntimeStatus != orchestrator.Completed || string(got.Output) != `"hello guest"` {
				t.Fatalf("%+v", got)
			}
			for _, e := range got.HistoryEvents {
				if e.Timestamp.IsZero() || strings.HasPrefix(e.EventType, "Timer") == e.FireAt.IsZero() || (e.EventType == "SubOrchestrationInstanceCompleted") == e.ScheduledTime.IsZero() {
					t.Errorf("%+v", e)
				}
				events = append(events, event{e.EventType, e.FunctionName + e.Name, string(e.Input), string(e.Result), e.Reason + string(e.OrchestrationStatus)})
			}
			return events
		}
		want := []event{
			{"ExecutionStarted", "Gate", `"in"`, "", ""},
			{"ExecutionSuspended", "", "", "", "lunch"},
			{"ExecutionResumed", "", "", "", "back"},
			{"EventRaised", "open", `"guest"`, "", ""},
			{"TimerCreated", "", "", "", ""},
			{"TimerFired", "", "", "", ""},
			{"SubOrchestrationInstanceCompleted", "Hello", `"guest"`, `"hello guest"`, ""},
			{"ExecutionCompleted", "", "", `"hello guest"`, "Completed"},
		}
		byType := func(events []event, name string) (e event) {
			for _, one := range events {
				if one.Type == name {
					e = one
				}
			}
			return e
		}
		all := read("&showHistoryOutput=true")
		for _, w := range want {
			testenv.Equal(t, w.Type, w, byType(all, w.Type))
		}
		testenv.Equal(t, fmt.Sprintf("events: %+v", all), len(want), len(all))
		for _, e := range read("") {
			testenv.Equal(t, fmt.Sprintf("%+v shows its result", e), "", e.Result)
		}
		for _, e := range read("&showInput=false") {
			testenv.Equal(t, fmt.Sprintf("%+v shows its input", e), "", e.Input)
		}
	})
}

func TestListPages(t *testing.T) {
	t.Parallel()
	b := filled(t)
	var ids []string
	var headers []string
	for range 10 {
		rec := b.send(t, http.MethodGet, base+"/instances?top=2", "", headers...)
		page := body[[]shown](t, rec)
		if len(page) == 0 || len(page) > 2 {
			t.Fatalf("a page of %d", len(page))
		}
		for _, i := range page {
			ids = append(ids, i.InstanceID)
		}
		next := rec.Header().Get(continuationHeader)
		if headers = []string{continuationHeader, next}; next == "" {
			break
		}
	}
	if len(ids) != 7 || ids[0] != "Pending" {
		t.Errorf("%v", ids)
	}
}

// The extension's own addresses work if the host forwards them, in any letter case.
func TestAddresses(t *testing.T) {
	t.Parallel()
	b := filled(t)
	for _, path := range []string{"/runtime/webhooks/durabletask/instances/Running", "/Runtime/WebHooks/DurableTask/Instances/Running", "/API/runtime/webhooks/durabletask/instances/Running/"} {
		rec := b.send(t, http.MethodGet, path, "", "X-MS-CLIENT-PRINCIPAL", person("home", "Roundhouse.Reader"))
		if location := rec.Header().Get("Location"); rec.Code != http.StatusAccepted || !strings.Contains(strings.ToLower(location), strings.ToLower(strings.TrimSuffix(path, "/"))) {
			t.Errorf("%s: %d %s", path, rec.Code, location)
		}
	}
	rec := b.send(t, http.MethodPost, "/runtime/webhooks/durabletask/orchestrators/Hello", `"you"`, "X-MS-CLIENT-PRINCIPAL", person("home", "Roundhouse.Operator"))
	if l := body[links](t, rec); !strings.HasPrefix(l.StatusQueryGetURI, "https://app.example.net/runtime/webhooks/durabletask/instances/") {
		t.Error(l.StatusQueryGetURI)
	}
}

// An engine decides about its starts.
func TestAdmission(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err    error
		status int
	}{
		"taken":     {nil, 202},
		"no engine": {engine.ErrNoEngine, 400},
		"refused":   {engine.ErrRefused, 400},
		"conflict":  {&engine.ConflictError{Engine: "Hello", RetryAfter: 1500 * time.Millisecond}, 409},
		"trouble":   {errors.New("secret"), 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			admit := func(_ context.Context, s orchestrator.Start) (orchestrator.Start, error) {
				s.ID = "the engine's"
				return s, tt.err
			}
			b.echo = echo.New()
			testenv.OK(t, Register(b.echo, Config{Runtime: b.runtime, Admit: admit, Door: b.door(), Log: slog.New(slog.NewTextHandler(&b.log, nil))}))
			rec := b.send(t, http.MethodPost, base+"/orchestrators/Hello", `"you"`)
			if rec.Code != tt.status || strings.Contains(rec.Body.String(), "secret") {
				t.Fatalf("%d %s", rec.Code, rec.Body)
			}
			if tt.status == 202 && body[links](t, rec).ID != "the engine's" {
				t.Error(rec.Body)
			}
			if tt.status == 409 && rec.Header().Get("Retry-After") != "2" {
				t.Error(rec.Header())
			}
			testenv.Equal(t, fmt.Sprintf("something is logged: %s", b.log.String()), tt.status == 500, b.log.Len() > 0)
		})
	}
	b := newBench(t)
	if err := Register(echo.New(), Config{Door: b.door()}); err == nil {
		t.Error("it needs no runtime")
	}
	if err := Register(echo.New(), Config{Runtime: b.runtime}); err == nil {
		t.Error("it needs no door")
	}
}

// A damaged instance is listed by its status, without payloads, among the others; a command for it is not accepted,
// and a purge by filter skips it.
func TestDamagedInstance(t *testing.T) {
	t.Parallel()
	b := filled(t)
	lost := tables.Delete(tables.Key{Partition: "Completed", Row: "r-00000001-00000001"}, "")
	testenv.OK(t, b.tables.Apply(t.Context(), "orchestrations", lost))
	shownAs := map[string]shown{}
	for _, query := range []string{"", "&showInput=false"} {
		rec := b.send(t, http.MethodGet, base+"/instances?top=100"+query, "")
		if rec.Code != http.StatusOK {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		for _, i := range body[[]shown](t, rec) {
			shownAs[i.InstanceID] = i
		}
		if i := shownAs["Completed"]; len(shownAs) != 7 || i.RuntimeStatus != "Completed" || string(i.Output) != "null" || i.Name == "" {
			t.Errorf("%d instances; %+v", len(shownAs), i)
		}
	}
	if i := shownAs["Failed"]; string(i.Output) == "null" {
		t.Errorf("another one has lost its output: %+v", i)
	}
	for _, r := range []struct{ method, path string }{{http.MethodGet, ""}, {http.MethodPost, "/terminate"}, {http.MethodPost, "/rewind"}, {http.MethodPost, "/restart?restartWithNewInstanceId=false"}, {http.MethodDelete, ""}} {
		if rec := b.send(t, r.method, base+"/instances/Completed"+r.path, ""); rec.Code != http.StatusInternalServerError && rec.Code != http.StatusGone {
			t.Errorf("%s %s: %d %s", r.method, r.path, rec.Code, rec.Body)
		}
	}
	rec := b.send(t, http.MethodDelete, base+"/instances?createdTimeFrom=2000-01-01T00:00:00Z", "")
	if rec.Code != http.StatusOK || strings.Contains(rec.Body.String(), `:0`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if _, err := b.runtime.Status(t.Context(), "Completed"); err != nil {
		t.Error(err)
	}
}

// A body at the depth limit is accepted; a deeper one is refused, with the limit, and does no harm.
func TestDeepBodies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.begin(t, "Gate", "gate", `"in"`)
	for _, door := range []string{"/orchestrators/Hello/", "/instances/gate/raiseEvent/unread"} {
		for levels, status := range map[int]int{payload.MaxDepth: http.StatusAccepted, payload.MaxDepth + 1: http.StatusBadRequest, 9_998: http.StatusBadRequest} {
			target := base + door
			if strings.HasSuffix(door, "/") {
				target += "deep"
			}
			rec := b.send(t, http.MethodPost, target, strings.Repeat("[", levels)+strings.Repeat("]", levels), "Content-Type", "application/json")
			if rec.Code != status && rec.Code != http.StatusConflict || status == http.StatusBadRequest && !strings.Contains(rec.Body.String(), "500 levels") {
				t.Errorf("%s, %d levels: %d %.300s", door, levels, rec.Code, rec.Body)
			}
			b.drive(t)
		}
	}
	if rec := b.send(t, http.MethodPost, base+"/instances/gate/raiseEvent/unread", "\x1f\x8b", "Content-Type", "application/json", "Content-Encoding", "gzip"); rec.Code != http.StatusUnsupportedMediaType || !strings.Contains(rec.Body.String(), "Content-Encoding") {
		t.Errorf("a compressed body: %d %s", rec.Code, rec.Body)
	}
	for _, path := range []string{"/instances", "/instances/gate", "/instances/deep?showHistory=true"} {
		if rec := b.send(t, http.MethodGet, base+path, ""); rec.Code >= http.StatusBadRequest {
			t.Errorf("%s: %d %.300s", path, rec.Code, rec.Body)
		}
	}
	if rec := b.send(t, http.MethodPost, base+"/instances/gate/terminate", ""); rec.Code != http.StatusAccepted {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
	if s, err := b.runtime.Status(t.Context(), "gate"); err != nil || s.Status != orchestrator.Terminated {
		t.Errorf("%s, %v", s.Status, err)
	}
}

// The host repeats a request without a body when the handler dies during it, with the same invocation id. At any
// point, the repeat changes nothing; a new request does.
func TestRepeatsByTheHost(t *testing.T) {
	t.Parallel()
	const first, second = "0b8a4a62-7df5-4f4e-9a3c-3a6ad4cf2f11", "5e0d7c3b-17a9-4a4e-8d55-9f3f6f4ad1c7"
	for _, path := range []string{
		"/orchestrators/Hello", "/orchestrators/Hello/mine", "/instances/Completed/restart",
		"/instances/Completed/restart?restartWithNewInstanceId=false", "/instances/Failed/rewind",
	} {
		testenv.Bubble(t, path, func(t *testing.T) { repeat(t, path, first, second) })
	}
}

func repeat(t *testing.T, path, first, second string) {
	t.Helper()
	after := func(invocations ...string) []string {
		b := filled(t)
		for _, id := range invocations {
			if rec := b.send(t, http.MethodPost, base+path, "", "X-Azure-Functions-InvocationId", id); rec.Code != http.StatusAccepted {
				t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
			}
			b.drive(t)
		}
		return b.executions(t)
	}
	once, repeated, twice := after(first), after(first, first), after(first, second)
	testenv.Equal(t, fmt.Sprintf("%s: a repeat makes a difference", path), once, repeated)
	if cmp.Equal(once, twice) {
		t.Errorf("%s: another request makes no difference: %s", path, once)
	}
}

// executions lists the orchestrations with their numbers of executions.
func (b *bench) executions(t *testing.T) (all []string) {
	t.Helper()
	found, _, err := b.runtime.List(t.Context(), orchestrator.Filter{}, 100, "")
	testenv.OK(t, err)
	for _, s := range found {
		all = append(all, fmt.Sprint(s.ID, " ", s.Execution))
	}
	slices.Sort(all)
	return all
}
