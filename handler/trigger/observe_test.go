package trigger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/logs"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// Observe is called for every invocation of an existing function, by a host or not, with the result.
func TestObserve(t *testing.T) {
	t.Parallel()
	var told []Observed
	handle := func(_ context.Context, d engine.Delivery) error {
		switch string(d.Body) {
		case "bad":
			return errors.New("no")
		case "panic":
			panic("oh")
		}
		return nil
	}
	c := Config{Queues: map[string]Queue{"work": {Queue: "q", Parameter: "item", Handle: handle}},
		Timers:  map[string]Timer{"tick": {Parameter: "timer", Handle: func(context.Context, TimerDelivery) error { return ErrIdle }}},
		Observe: func(_ context.Context, o Observed) { o.Took = min(o.Took, 0); told = append(told, o) }}
	e := echo.New()
	testenv.OK(t, Mount(e, c))
	for _, call := range []struct{ function, body string }{
		{"work", `{"Data": {"item": "good"}}`}, {"work", `{"Data": {"item": "bad"}}`}, {"work", `{"Data": {"item": "panic"}}`},
		{"tick", `{"Data": {"timer": {}}}`}, {"made-up", `{}`},
	} {
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/"+call.function, strings.NewReader(call.body)))
	}
	testenv.OK(t, NewDirect(c).Run(t.Context(), "work", c.Queues["work"], engine.Delivery{Body: []byte("good")}))
	want := []Observed{{Function: "work", Outcome: "done"}, {Function: "work", Outcome: "retry"}, {Function: "work", Outcome: "panicked"}, {Function: "tick", Outcome: "idle"},
		{Function: "work", Outcome: "done", Direct: true}}
	testenv.Equal(t, "", want, told)
}

// The line of an invocation has its handler's fields, and the lines within it have the fields known at that time. An
// error makes it a warning, also when the message is acknowledged.
func TestAbout(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(logs.Within(slog.NewJSONHandler(&out, nil), About))
	handle := func(ctx context.Context, d engine.Delivery) error {
		tell := func(attrs ...slog.Attr) {
			e := ctx.Value(aboutKey{}).(*about)
			e.add(attrs...)
		}
		tell(slog.String("correlationId", "c1"), slog.String("messageId", "its own"))
		log.InfoContext(ctx, "within")
		tell(slog.String("fate", "dead-lettered"), slog.String("error", "it is \xff"), slog.Int64("durationMs", -1))
		log.InfoContext(ctx, "within")
		if string(d.Body) == "bad" {
			return errors.New("no")
		}
		return nil
	}
	e := echo.New()
	testenv.OK(t, Mount(e, Config{Log: log, Queues: map[string]Queue{"work": {Queue: "q", Parameter: "item", Handle: handle}}}))
	const id = "0d0d5a39-7f0c-4e58-8d0a-7c7f4f5f0b02"
	for _, body := range []string{"good", "bad"} {
		r := httptest.NewRequest(http.MethodPost, "/work", strings.NewReader(`{"Data": {"item": "`+body+`"}}`))
		r.Header.Set(invocationIDHeader, id)
		e.ServeHTTP(httptest.NewRecorder(), r)
	}
	var got []map[string]any
	for line := range bytes.Lines(out.Bytes()) {
		var r map[string]any
		testenv.OK(t, json.Unmarshal(line, &r))
		if took, ok := r["durationMs"].(float64); ok && took < 0 {
			t.Errorf("the handler's duration took the place of the invocation's: %s", line)
		}
		delete(r, "time")
		delete(r, "durationMs")
		got = append(got, r)
	}
	line := func(level, msg string, more map[string]any) map[string]any {
		r := map[string]any{"level": level, "msg": msg, "function": "work", "invocationId": id, "messageId": "its own", "dequeueCount": 1.0, "correlationId": "c1"}
		for k, v := range more {
			r[k] = v
		}
		return r
	}
	within := line("INFO", "within", nil)
	want := []map[string]any{within, within, line("WARN", "invocation", map[string]any{"outcome": "done", "fate": "dead-lettered", "error": "it is \ufffd"}),
		within, within, line("ERROR", "invocation", map[string]any{"outcome": "retry", "fate": "dead-lettered", "error": "no"})}
	testenv.Equal(t, "-want +got", want, got)
}
