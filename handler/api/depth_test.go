package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// nested returns JSON of so many levels.
func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// holder returns an orchestrator that waits for the event "decision", of any form, and returns its input and the
// event.
func holder() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("holder", func(ctx *orchestrator.Context, in any) (any, error) {
		_, err := orchestrator.Event[any](ctx, "decision").Await()
		return nil, err
	})
}

// readable checks that everything of an orchestration is readable, and that it ends on command.
func (b *outboxBench) readable(t *testing.T, id string) {
	t.Helper()
	b.drive(t)
	for _, path := range []string{"/" + id, "/" + id + "/rounds", "", "?status=Running"} {
		expect(t, b.get(t, orchestrationsPath+path), http.StatusOK, "", "GET %s", path)
	}
	if rec := b.tell(t, id, "/terminate", `{}`); rec.Code == http.StatusAccepted && b.shown(t, id).Status != orchestrator.Terminated {
		t.Errorf("%s does not end", id)
	}
}

// A value at the depth limit is accepted, stored and shown; a deeper one is refused, without effects. A request wraps
// a value in levels of its own, which count.
func TestDeepValuesAreRefused(t *testing.T) {
	t.Parallel()
	for door, tt := range map[string]struct {
		wraps int
		send  func(t *testing.T, b *outboxBench, id, value string) int
	}{
		"event": {0, func(t *testing.T, b *outboxBench, id, value string) int {
			b.holds(t, id)
			return b.tell(t, id, "/events/decision", value).Code
		}},
		"event that waits": {0, func(t *testing.T, b *outboxBench, id, value string) int {
			b.holds(t, id)
			return b.tell(t, id, "/events/later", value).Code
		}},
		"start": {1, func(t *testing.T, b *outboxBench, id, value string) int {
			rec := b.send(t, http.MethodPost, orchestrationsPath, fmt.Sprintf(`{"orchestrator":"holder","id":%q,"input":%s}`, id, value))
			if rec.Code != http.StatusAccepted {
				b.holds(t, id) // no other orchestration interferes
			}
			return rec.Code
		}},
		"answer to a task without a form": {1, func(t *testing.T, b *outboxBench, id, value string) int {
			task := b.ask(t, id, orchestrator.HumanTask{Name: "approve"})
			rec := b.act(t, task, "complete", `{"output":`+value+`}`, "")
			if d := data[taskDetail](t, b.get(t, task)); (d.Status == tasks.Completed) != (rec.Code == http.StatusOK) {
				t.Errorf("the task is %s after %d", d.Status, rec.Code)
			}
			return rec.Code
		}},
	} {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			b := newOutboxBench(t)
			for levels, want := range map[int]bool{payload.MaxDepth: true, payload.MaxDepth + 1: false, 9_998: false} {
				id := fmt.Sprintf("o-%d", levels)
				status := tt.send(t, b, id, nested(levels-tt.wraps))
				if taken := status == http.StatusAccepted || status == http.StatusOK; taken != want || !taken && status != http.StatusBadRequest {
					t.Errorf("%d levels: %d", levels, status)
				}
				b.readable(t, id)
			}
		})
	}
}

func (b *outboxBench) holds(t *testing.T, id string) {
	t.Helper()
	if rec := b.send(t, http.MethodPost, orchestrationsPath, fmt.Sprintf(`{"orchestrator":"holder","id":%q}`, id)); rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
}

// Every endpoint that reads a body reports the limit, for any other content of the body.
func TestDeepBodiesAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 1)
	b.holds(t, "held")
	names := strings.NewReplacer(":engine", "hmac", ":rowKey", "m", ":tenant", "acme", ":id", key(1).String(), ":orchestration", "held", ":event", "decision",
		":task", "1-1", ":operation", "none")
	b.refuse = func(c faults.Call) bool {
		if c.Target != catalog.DefaultTable { // which is written in the background
			t.Errorf("a refused request asks storage: %v", c)
		}
		return false
	}
	doors := 0
	for _, route := range Routes() {
		if route.Method == http.MethodGet || route.Method == http.MethodDelete {
			continue
		}
		doors++
		for _, levels := range []int{payload.MaxDepth + 1, 9_998} {
			path := names.Replace(route.Path)
			if path == openHistoryPath {
				levels += 50 // of the rounds
			}
			rec := b.send(t, route.Method, path, `{"x":`+nested(levels-1)+`}`)
			if rec.Code != http.StatusBadRequest || code(t, rec) != codeBodyTooDeep || !strings.Contains(rec.Body.String(), "500 levels") {
				t.Errorf("%s %s, %d levels: %d %.300s", route.Method, path, levels, rec.Code, rec.Body)
			}
		}
	}
	if doors < 20 {
		t.Errorf("%d doors", doors)
	}
}

// A history that the app has exported can be opened, however deep its values are.
func TestDeepHistoriesAreOpened(t *testing.T) {
	t.Parallel()
	for _, levels := range []int{1, payload.MaxDepth - 1, payload.MaxDepth} {
		b := newOutboxBench(t)
		b.holds(t, "deep")
		if rec := b.tell(t, "deep", "/events/decision", nested(levels)); rec.Code != http.StatusAccepted {
			t.Fatalf("%d levels: %d %s", levels, rec.Code, rec.Body)
		}
		file := b.get(t, orchestrationPath("deep")+"/history").Body.String()
		expect(t, b.send(t, http.MethodPost, openHistoryPath, file), http.StatusOK, "", "%d levels", levels)
	}
	expect(t, newOutboxBench(t).send(t, http.MethodPost, openHistoryPath, nested(2*payload.MaxDepth)), http.StatusBadRequest, codeBodyTooDeep, "too deep")
}

// Every endpoint that reads a body refuses a compressed one and names the remedy.
func TestEncodedBodies(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.holds(t, "held")
	for encoding, want := range map[string]int{"gzip": http.StatusUnsupportedMediaType, "Br": http.StatusUnsupportedMediaType, "identity, gzip": http.StatusUnsupportedMediaType, "identity": http.StatusAccepted, "": http.StatusAccepted} {
		rec := b.tell(t, "held", "/events/later", `{"a":1}`, "Content-Encoding", encoding)
		if rec.Code != want || want == http.StatusUnsupportedMediaType && (code(t, rec) != codeEncodedBody || rec.Header().Get("Accept-Encoding") != "identity" || !strings.Contains(rec.Body.String(), "Content-Encoding")) {
			t.Errorf("%q: %d %s", encoding, rec.Code, rec.Body)
		}
	}
	expect(t, b.send(t, http.MethodPost, openHistoryPath, "\x1f\x8b", "Content-Encoding", "gzip"), http.StatusUnsupportedMediaType, codeEncodedBody, "a history")
	expect(t, b.send(t, http.MethodPost, orchestrationsPath, "\x1f\x8b", "Content-Encoding", "x-gzip"), http.StatusUnsupportedMediaType, codeEncodedBody, "a start")
}
