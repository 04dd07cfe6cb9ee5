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

// The line of an invocation has what its handler has told of the work, and the lines within it have what is known by then. An error
// makes it a warning, also when the message is acknowledged.
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
	testenv.Check(t, Mount(e, Config{Log: log, Queues: map[string]Queue{"work": {Queue: "q", Parameter: "item", Handle: handle}}}))
	const id = "0d0d5a39-7f0c-4e58-8d0a-7c7f4f5f0b02"
	for _, body := range []string{"good", "bad"} {
		r := httptest.NewRequest(http.MethodPost, "/work", strings.NewReader(`{"Data": {"item": "`+body+`"}}`))
		r.Header.Set(invocationIDHeader, id)
		e.ServeHTTP(httptest.NewRecorder(), r)
	}
	var got []map[string]any
	for line := range bytes.Lines(out.Bytes()) {
		var r map[string]any
		testenv.Check(t, json.Unmarshal(line, &r))
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
	testenv.Diff(t, want, got, "-want +got")
}
