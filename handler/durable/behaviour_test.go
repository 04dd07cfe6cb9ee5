package durable

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// A start waits for as long as it is asked to, and answers with the output, where it stands, or where to look.
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
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
				if after := time.Since(begin); after != tt.after {
					t.Errorf("after %s, want %s", after, tt.after)
				}
				stop()
				<-done
			})
		})
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.begin(t, "Gate", "g", `"in"`)
		testenv.Check(t, errors.Join(b.runtime.Suspend(t.Context(), "g", "lunch"), b.runtime.Resume(t.Context(), "g", "back"), b.runtime.Raise(t.Context(), "g", "open", "guest", "")))
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
			testenv.Diff(t, w, byType(all, w.Type), "%s", w.Type)
		}
		if len(all) != len(want) {
			t.Errorf("%+v", all)
		}
		for _, e := range read("") {
			if e.Result != "" {
				t.Errorf("%+v shows its result", e)
			}
		}
		for _, e := range read("&showInput=false") {
			if e.Input != "" {
				t.Errorf("%+v shows its input", e)
			}
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

// Clients that use the address of the extension itself are served where a host lets them through, in any letters.
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
			testenv.Check(t, Register(b.echo, Config{Runtime: b.runtime, Admit: admit, Door: b.door(), Log: slog.New(slog.NewTextHandler(&b.log, nil))}))
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
			if logged := b.log.Len() > 0; logged != (tt.status == 500) {
				t.Errorf("log: %s", b.log.String())
			}
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
