package trigger

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

var errMissing = errors.New("storage is missing")

// readyAfter returns a program that becomes ready some time after now.
func readyAfter(d time.Duration) func(context.Context) error {
	at := time.Now().Add(d)
	return func(ctx context.Context) error {
		select {
		case <-time.After(time.Until(at)):
			return nil
		case <-ctx.Done():
			return errMissing
		}
	}
}

const timerBody = `{"Data":{"timer":{"ScheduleStatus":null,"IsPastDue":false}},"Metadata":{}}`

// An invocation before the program is ready waits for it. A message that has waited too long uses up no attempt if it
// can be requeued; otherwise the answer is 503, as for timers, which wait longer.
func TestInvocationsWaitForTheProgram(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		function string
		ready    time.Duration
		putBack  error // of a queue with a requeue; nil for success
		status   int
		outcome  string
		took     time.Duration
		budget   time.Duration
	}{
		{"message in time", "rotate", 29 * time.Second, nil, http.StatusOK, "done", 29 * time.Second, 0},
		{"message too early", "rotate", time.Hour, nil, http.StatusOK, "put back", queuePatience, 0},
		{"message that cannot be put back", "rotate", time.Hour, errors.New("no queue"), http.StatusServiceUnavailable, "not ready", queuePatience, 0},
		{"message of another queue", "wake", time.Hour, nil, http.StatusServiceUnavailable, "not ready", queuePatience, 0},
		{"message with a small budget", "rotate", time.Hour, nil, http.StatusOK, "put back", 5 * time.Second, 10 * time.Second},
		{"timer in time", "tick", 4*time.Minute - time.Second, nil, http.StatusOK, "done", 4*time.Minute - time.Second, 0},
		{"timer too early", "tick", time.Hour, nil, http.StatusServiceUnavailable, "not ready", 4 * time.Minute, 0},
	} {
		testenv.Bubble(t, tt.name, func(t *testing.T) {
			began := time.Now()
			var handled, back int
			handle := func(ctx context.Context, _ engine.Delivery) error {
				handled++
				if until, ok := ctx.Deadline(); !ok || until.Sub(began) != DefaultBudget {
					t.Errorf("the budget ends %v after the invocation came", until.Sub(began))
				}
				return nil
			}
			c := Config{Ready: readyAfter(tt.ready), Budget: tt.budget,
				Queues: map[string]Queue{
					"rotate": {Queue: "q", Parameter: "message", Handle: handle, PutBack: func(context.Context, engine.Delivery, time.Duration) error { back++; return tt.putBack }},
					"wake":   {Queue: "w", Parameter: "message", Handle: handle},
				},
				Timers: map[string]Timer{"tick": {Parameter: "timer", Handle: func(context.Context, TimerDelivery) error { handled++; return nil }}},
			}
			e, logged := mount(t, c)
			body := goodBody
			if tt.function == "tick" {
				body = timerBody
			}
			rec := invoke(e, tt.function, body)
			if rec.Code != tt.status || time.Since(began) != tt.took || !strings.Contains(logged.String(), `"outcome":"`+tt.outcome+`"`) {
				t.Errorf("%d after %v: %s\n%s", rec.Code, time.Since(began), rec.Body, logged)
			}
			if (handled == 1) != (tt.outcome == "done") || back > 1 || tt.function == "rotate" && (back == 1) == (handled == 1) {
				t.Errorf("handled %d times, put back %d times", handled, back)
			}
			if tt.status == http.StatusServiceUnavailable && !strings.Contains(rec.Body.String(), errMissing.Error()) {
				t.Errorf("the answer does not say why: %s", rec.Body)
			}
		})
	}
}

// A message that cannot be requeued because storage does not answer continues to wait: the host could not requeue it
// either.
func TestAMessageThatCannotBePutBackWaits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ready    time.Duration
		outage   time.Duration
		outcome  string
		status   int
		took     time.Duration
		putBacks int
	}{
		"program in time":      {95 * time.Second, time.Hour, "done", http.StatusOK, 95 * time.Second, 3},
		"queue before program": {time.Hour, 70 * time.Second, "put back", http.StatusOK, 90 * time.Second, 3},
		"neither":              {time.Hour, time.Hour, "not ready", http.StatusServiceUnavailable, 100 * time.Second, 4},
	} {
		testenv.Bubble(t, name, func(t *testing.T) {
			began := time.Now()
			putBacks := 0
			c := Config{Ready: readyAfter(tt.ready), Budget: 100 * time.Second, Queues: map[string]Queue{"rotate": {Queue: "q", Parameter: "message",
				Handle: func(context.Context, engine.Delivery) error { return nil },
				PutBack: func(context.Context, engine.Delivery, time.Duration) error {
					if putBacks++; time.Since(began) < tt.outage {
						return queues.ErrOutcomeUnknown
					}
					return nil
				}}}}
			e, logged := mount(t, c)
			rec := invoke(e, "rotate", goodBody)
			if rec.Code != tt.status || time.Since(began) != tt.took || putBacks != tt.putBacks || !strings.Contains(logged.String(), `"outcome":"`+tt.outcome+`"`) {
				t.Errorf("%d after %v, put back %d times: %s\n%s", rec.Code, time.Since(began), putBacks, rec.Body, logged)
			}
		})
	}
}

// The host's probe does not wait for the program.
func TestTheProbeAnswersAtOnce(t *testing.T) {
	t.Parallel()
	e, _ := mount(t, Config{Ready: func(ctx context.Context) error { <-ctx.Done(); return errMissing }})
	rec := httptest.NewRecorder()
	e.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	testenv.Equal(t, "status", http.StatusOK, rec.Code)
}

// An occurrence without work is logged at debug level. A manual run does not claim to be the next occurrence.
func TestLogOfTimers(t *testing.T) {
	t.Parallel()
	const scheduled = `{"Data":{"timer":{"ScheduleStatus":{"Next":"2026-11-21T05:41:00+00:00"}}},"Metadata":{"sys":{"UtcNow":"2026-11-21T05:41:00.08Z"}}}`
	for _, tt := range []struct {
		name, body  string
		level       slog.Level
		err         error
		want, never string
	}{
		{"scheduled", scheduled, slog.LevelInfo, nil, `"scheduledAt":"2026-11-21T05:41:00Z"`, "byHand"},
		{"a moment too early", strings.Replace(scheduled, "05:41:00.08Z", "05:40:59.3Z", 1), slog.LevelInfo, nil, `"scheduledAt":"2026-11-21T05:41:00Z"`, "byHand"},
		{"by hand", strings.Replace(scheduled, "05:41:00.08Z", "05:12:00Z", 1), slog.LevelInfo, nil, `"byHand":true,"nextAt":"2026-11-21T05:41:00Z"`, "scheduledAt"},
		{"without a status", timerBody, slog.LevelInfo, nil, `"outcome":"done"`, "scheduledAt"},
		{"idle", timerBody, slog.LevelInfo, ErrIdle, "", "invocation"},
		{"idle, for who debugs", timerBody, slog.LevelDebug, ErrIdle, `"outcome":"idle"`, "error"},
		{"failed", timerBody, slog.LevelInfo, errMissing, `"error":"storage is missing"`, "scheduledAt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			logged := &records{}
			e := echo.New()
			timer := Timer{Parameter: "timer", Handle: func(context.Context, TimerDelivery) error { return tt.err }}
			testenv.OK(t, Mount(e, Config{Timers: map[string]Timer{"tick": timer}, Log: slog.New(slog.NewJSONHandler(logged, &slog.HandlerOptions{Level: tt.level}))}))
			if rec := invoke(e, "tick", tt.body); (rec.Code == http.StatusOK) != (tt.err == nil || errors.Is(tt.err, ErrIdle)) {
				t.Errorf("status %d", rec.Code)
			}
			if got := logged.String(); !strings.Contains(got, tt.want) || strings.Contains(strings.ReplaceAll(got, "invocationId", ""), tt.never) {
				t.Errorf("want %q and no %q in:\n%s", tt.want, tt.never, got)
			}
		})
	}
}
