package handler

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
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/logs/logstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Every line of a run has its ids, from any source: the orchestrator, an activity, the runtime, and the invocation,
// which is one line with the outcome of the message.
func TestLinesOfARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(nothingIsAway)
		var appLog *slog.Logger
		app := workApp(func(d *engine.Definition) {
			do := orchestrator.NewActivity("do", func(ctx context.Context, _ struct{}) (struct{}, error) {
				appLog.InfoContext(ctx, "line of an activity")
				return struct{}{}, nil
			})
			d.Operations, d.Versions = []orchestrator.AnyActivity{do}, nil
			d.Orchestrator = engine.Orchestrate("work", func(ctx *orchestrator.Context, _ engine.Request[struct{}]) (struct{}, error) {
				ctx.Logger().Info("line of an orchestrator")
				if _, err := do.Call(ctx, struct{}{}).Await(); err != nil {
					return struct{}{}, err
				}
				return struct{}{}, orchestrator.Permanent(errors.New("no more"))
			})
		})
		b := a.beginApp(t, app)
		appLog = b.logger
		testenv.OK(t, b.Start(t.Context()))
		const message = `{"correlationId":"c1","tenantId":"contoso","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`
		testenv.Must(a.queues.Send(t.Context(), "work-queue", []byte(message), 0))(t)
		b.deliver(a, "work-queue-trigger", "work-queue")
		ids := func(more map[string]any) map[string]any {
			all := map[string]any{"correlationId": "c1", "orchestrationId": "work-c1", "tenantId": "contoso", "trace_id": "0af7651916cd43dd8448eb211c80319c"}
			for k, v := range more {
				all[k] = v
			}
			return all
		}
		invocation := map[string]any{"function": "work-queue-trigger"}
		want := map[string]map[string]any{
			"line of an orchestrator": ids(nil), "line of an activity": ids(invocation),
			"invocation": ids(map[string]any{"function": "work-queue-trigger", "engine": "work", "fate": "dead-lettered", "level": "WARN", "outcome": "done", "attempt": 1.0}),
		}
		got := map[string]map[string]any{}
		lines := 0
		for line := range bytes.Lines(b.log.Bytes()) {
			var r map[string]any
			testenv.OK(t, json.Unmarshal(line, &r))
			msg := r["msg"].(string)
			if want[msg] == nil {
				if strings.Contains(string(line), "c1") && r["level"] != "DEBUG" {
					t.Errorf("another line about the message: %s", line)
				}
				continue
			}
			lines++
			got[msg] = map[string]any{}
			for key := range want[msg] {
				got[msg][key] = r[key]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || lines != len(want) {
			t.Errorf("%d lines (-want +got):\n%s\n%s", lines, diff, b.log)
		}
	})
}

// A secret in a sender's id is redacted in lines within its work, too.
func TestLinesWithin(t *testing.T) {
	t.Parallel()
	var out logstest.Output
	log, stop := newLog(&out, slog.LevelInfo)
	e := echo.New()
	queue := trigger.Queue{Queue: "q", Parameter: "message", Handle: func(ctx context.Context, _ engine.Delivery) error {
		log.InfoContext(ctx, "a line within")
		return nil
	}}
	testenv.OK(t, trigger.Mount(e, trigger.Config{Log: log, Queues: map[string]trigger.Queue{"work": queue}}))
	const secret = "hunter2hunter2"
	body := `{"Data":{"message":"hello"},"Metadata":{"Id":"password=` + secret + `"}}`
	e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/work", strings.NewReader(body)))
	stop()
	if n := logstest.Check(t, out.Bytes()); n != 2 || strings.Contains(out.String(), secret) {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
