package trigger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// records is a readable log.
type records struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

func mount(t *testing.T, c Config) (*echo.Echo, *records) {
	t.Helper()
	logged := &records{}
	c.Log = slog.New(slog.NewJSONHandler(logged, nil))
	e := echo.New()
	testenv.OK(t, Mount(e, c))
	return e, logged
}

func queueConfig(handle QueueHandler) Config {
	return Config{Queues: map[string]Queue{"rotate": {Queue: "hmac-rotation-queue", Parameter: "message", Handle: handle}}}
}

// invoke sends an invocation as the host does, without a network.
func invoke(e *echo.Echo, function, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/"+function, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set(invocationIDHeader, testInvocation)
	rec := httptest.NewRecorder()
	e.ServeHTTP(rec, req)
	return rec
}

// errorText checks that the answer fails the invocation for the host, and returns its text.
func errorText(t *testing.T, rec *httptest.ResponseRecorder, status int) string {
	t.Helper()
	testenv.Equal(t, fmt.Sprintf("status: %s", rec.Body), status, rec.Code)
	testenv.Equal(t, "content type", "application/json", rec.Header().Get("Content-Type"))
	var answer map[string]string
	if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil || len(answer) != 1 {
		t.Fatalf("answer %q: %v", rec.Body, err)
	}
	return answer["error"]
}

func succeeded(t *testing.T, rec *httptest.ResponseRecorder) {
	t.Helper()
	if rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != "application/json" {
		t.Errorf("answer %d, %q", rec.Code, rec.Header().Get("Content-Type"))
	}
	var answer map[string]any
	testenv.OK(t, json.Unmarshal(rec.Body.Bytes(), &answer))
	testenv.Equal(t, "answer", map[string]any{"Outputs": map[string]any{}, "Logs": []any{}, "ReturnValue": nil}, answer)
}

var goodBody = body(quoted(b64("hi")), hostMetadata)

func TestReadiness(t *testing.T) {
	t.Parallel()
	e, logged := mount(t, Config{})
	rec := httptest.NewRecorder()
	e.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	if rec.Code != http.StatusOK || rec.Body.String() != `{"status":"ready"}` || logged.String() != "" {
		t.Errorf("answer %d %q, log %q", rec.Code, rec.Body, logged)
	}
}

func TestQueueInvocation(t *testing.T) {
	t.Parallel()
	var got engine.Delivery
	e, logged := mount(t, queueConfig(func(_ context.Context, d engine.Delivery) error {
		got = d
		return nil
	}))
	succeeded(t, invoke(e, "rotate", goodBody))
	testenv.Equal(t, "delivery", delivery("hi"), got)

	var record map[string]any
	if err := json.Unmarshal([]byte(logged.String()), &record); err != nil {
		t.Fatalf("log %q: %v", logged, err)
	}
	if _, ok := record["durationMs"].(float64); !ok {
		t.Errorf("no duration in %v", record)
	}
	delete(record, "time")
	delete(record, "durationMs")
	want := map[string]any{
		"level": "INFO", "msg": "invocation", "invocationId": testInvocation, "function": "rotate",
		"messageId": "800ae4b3-bdd2-4c08-badd-f08e5a34b865", "dequeueCount": 3.0, "outcome": "done",
	}
	testenv.Equal(t, "log record", want, record)
}

func TestTimerInvocation(t *testing.T) {
	t.Parallel()
	var got TimerDelivery
	e, logged := mount(t, Config{Timers: map[string]Timer{"sweep": {Parameter: "timer", Handle: func(_ context.Context, d TimerDelivery) error {
		got = d
		return nil
	}}}})
	succeeded(t, invoke(e, "sweep", `{"Data":{"timer":{"ScheduleStatus":{"Next":"2026-11-21T05:41:00+00:00"},"IsPastDue":true}},"Metadata":{}}`))
	want := TimerDelivery{Function: "sweep", InvocationID: testInvocation, ScheduledAt: time.Date(2026, 11, 21, 5, 41, 0, 0, time.UTC), IsPastDue: true}
	testenv.Equal(t, "delivery", want, got)
	if !strings.Contains(logged.String(), `"scheduledAt":"2026-11-21T05:41:00Z"`) {
		t.Errorf("log %q", logged)
	}
	succeeded(t, invoke(e, "sweep", `{"Data":{"timer":{"ScheduleStatus":null,"IsPastDue":false}},"Metadata":{}}`))
	if n := strings.Count(logged.String(), "scheduledAt"); n != 1 { // the second would be in the year 1
		t.Errorf("log %q", logged)
	}
	errorText(t, invoke(e, "sweep", `{"Data":{}}`), http.StatusInternalServerError)
}

func TestHandlerThatDoesNotSucceed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, outcome, answer string
		handle                QueueHandler
	}{
		{"error", "retry", "vault is sealed", func(context.Context, engine.Delivery) error { return errors.New("vault is sealed") }},
		{"panic", "panicked", errPanic.Error(), func(context.Context, engine.Delivery) error { panic("oh") }},
		{"run-time panic", "panicked", errPanic.Error(), func(_ context.Context, d engine.Delivery) error {
			_ = d.Body[len(d.Body)]
			return nil
		}},
		{"panic with nil", "panicked", errPanic.Error(), func(context.Context, engine.Delivery) error { panic(nil) }},
		{"goroutine ended", "retry", errGone.Error(), func(context.Context, engine.Delivery) error {
			runtime.Goexit()
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, logged := mount(t, queueConfig(tt.handle))
			testenv.Equal(t, "answer", tt.answer, errorText(t, invoke(e, "rotate", goodBody), http.StatusInternalServerError))
			if !strings.Contains(logged.String(), `"outcome":"`+tt.outcome+`"`) {
				t.Errorf("no outcome %q in the log:\n%s", tt.outcome, logged)
			}
			testenv.Equal(t, fmt.Sprintf("the log has a stack: %s", logged), tt.outcome == "panicked", strings.Contains(logged.String(), "trigger_test.go"))
		})
	}
}

func TestInvocationThatDoesNotReachAHandler(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, function, body string
		status               int
		want                 string
	}{
		{"unknown function", "nobody", goodBody, http.StatusNotFound, `no queue or timer function is registered as "nobody"`},
		{"function in another case", "Rotate", goodBody, http.StatusNotFound, `registered as "Rotate"`},
		{"malformed", "rotate", `{"Data":`, http.StatusInternalServerError, "decode the invocation: the body is not an invocation in JSON (8 bytes)"},
		{"too large", "rotate", body(quoted(strings.Repeat("A", 4096)), `{}`), http.StatusRequestEntityTooLarge, "request body too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := queueConfig(func(context.Context, engine.Delivery) error {
				t.Error("the handler was called")
				return nil
			})
			c.MaxBody = 4096
			e, logged := mount(t, c)
			if got := errorText(t, invoke(e, tt.function, tt.body), tt.status); !strings.Contains(got, tt.want) {
				t.Errorf("answer %q, want %q in it", got, tt.want)
			}
			if !strings.Contains(logged.String(), testInvocation) {
				t.Errorf("the log does not name the invocation:\n%s", logged)
			}
		})
	}
}

// The host sends its bodies chunked wherever it is not run by Core Tools.
func TestChunkedBody(t *testing.T) {
	t.Parallel()
	got := make(chan engine.Delivery, 1)
	e, _ := mount(t, queueConfig(func(_ context.Context, d engine.Delivery) error {
		got <- d
		return nil
	}))
	srv := httptest.NewServer(e)
	defer srv.Close()
	// A body of a type unknown to net/http has no length.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/rotate", io.MultiReader(strings.NewReader(goodBody)))
	testenv.OK(t, err)
	client := srv.Client()
	res, err := client.Do(req)
	testenv.OK(t, err)
	defer res.Body.Close()
	if req.ContentLength != 0 || res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("length %d, status %d, %q", req.ContentLength, res.StatusCode, res.Header.Get("Content-Type"))
	}
	testenv.Equal(t, "delivery", delivery("hi"), <-got)
}

func TestBudgetEndsTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		c := queueConfig(func(ctx context.Context, _ engine.Delivery) error {
			<-ctx.Done()
			return fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx))
		})
		c.Budget = time.Minute
		e, logged := mount(t, c)
		got := errorText(t, invoke(e, "rotate", goodBody), http.StatusInternalServerError)
		if want := "context deadline exceeded: " + ErrBudget.Error(); got != want {
			t.Errorf("answer %q, want %q", got, want)
		}
		testenv.Equal(t, "how long it took", time.Minute, time.Since(started))
		if !strings.Contains(logged.String(), `"outcome":"retry"`) {
			t.Error(logged)
		}
	})
}

// A handler that ignores its context is answered in time; its late actions have no effect.
func TestOverrun(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func() error{
		"returns late": func() error { return nil },
		"panics late":  func() error { panic("too late") },
	} {
		testenv.Bubble(t, name, func(t *testing.T) {
			started := time.Now()
			release := make(chan struct{})
			e, logged := mount(t, queueConfig(func(context.Context, engine.Delivery) error {
				<-release
				return late()
			}))
			got := errorText(t, invoke(e, "rotate", goodBody), http.StatusInternalServerError)
			if got != errOverrun.Error() {
				t.Errorf("answer %q", got)
			}
			testenv.Equal(t, "how long it took", DefaultBudget+DefaultGrace, time.Since(started))
			if !strings.Contains(logged.String(), `"outcome":"overran"`) {
				t.Error(logged)
			}
			close(release)
			synctest.Wait()
			testenv.Equal(t, fmt.Sprintf("the log has the panic: %s", logged), name == "panics late", strings.Contains(logged.String(), `"panic":"too late"`))
		})
	}
}

func TestHangingUpEndsTheContext(t *testing.T) {
	t.Parallel()
	e, _ := mount(t, queueConfig(func(ctx context.Context, _ engine.Delivery) error {
		<-ctx.Done()
		return ctx.Err()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/rotate", strings.NewReader(goodBody))
	rec := httptest.NewRecorder()
	e.ServeHTTP(rec, req)
	testenv.Equal(t, "answer", context.Canceled.Error(), errorText(t, rec, http.StatusInternalServerError))
}

func TestErrorTextIsBoundedAndClean(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, err, want string }{
		{"connection string", "dial AccountName=a;AccountKey=Zm9v/+==;EndpointSuffix=x", "dial AccountName=a;AccountKey=[redacted];EndpointSuffix=x"},
		{"signed URL", "GET https://a/q?sv=1&sig=abc%2F&se=2", "GET https://a/q?sv=1&sig=[redacted]&se=2"},
		{"header", "Authorization: Bearer eyJ.a.b", "Authorization: Bearer [redacted]"},
		{"function key", "https://a/api/dlq?code=k3y==", "https://a/api/dlq?code=[redacted]"},
		{"nothing to hide", "design=3: not found", "design=3: not found"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"long", strings.Repeat("x", 5000), strings.Repeat("x", maxErrorText) + "..."},
		{"cut inside a character", strings.Repeat("x", maxErrorText-1) + "\u00e9", strings.Repeat("x", maxErrorText-1) + "\uFFFD..."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, logged := mount(t, queueConfig(func(context.Context, engine.Delivery) error { return errors.New(tt.err) }))
			testenv.Equal(t, "answer", tt.want, errorText(t, invoke(e, "rotate", goodBody), http.StatusInternalServerError))
			var record struct{ Error string }
			if err := json.Unmarshal([]byte(logged.String()), &record); err != nil || record.Error != tt.want {
				t.Errorf("log %q: %v", logged, err)
			}
		})
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	handleQueue := func(context.Context, engine.Delivery) error { return nil }
	handleTimer := func(context.Context, TimerDelivery) error { return nil }
	c := Config{
		Queues: map[string]Queue{
			"good":  {Queue: "q", Parameter: "m", Handle: handleQueue},
			"a/b":   {Queue: "q", Parameter: "m", Handle: handleQueue},
			"host":  {Queue: "q", Parameter: "m", Handle: handleQueue},
			"empty": {},
			"both":  {Queue: "q", Parameter: "m", Handle: handleQueue},
		},
		Timers: map[string]Timer{
			"both": {Parameter: "t", Handle: handleTimer},
			"none": {Parameter: "t"},
		},
		Budget: -1,
	}
	e := echo.New()
	err := Mount(e, c)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"a/b"`, `"host"`, `queue function "empty"`, `timer function "none"`, `"both": registered as`, "must not be negative"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "good") || len(e.Routes()) != 0 {
		t.Errorf("error %v, routes %v", err, e.Routes())
	}
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
}
