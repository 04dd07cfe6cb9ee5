package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Every line of a run has its ids, whoever logs it: the orchestrator, an activity, the runtime, and the invocation, which is one line
// with what became of the message.
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
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		const message = `{"correlationId":"c1","tenantId":"contoso","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`
		if _, err := a.queues.Send(t.Context(), "work-queue", []byte(message), 0); err != nil {
			t.Fatal(err)
		}
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
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
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
