package handler_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// payloadMarker is in every payload, and nowhere else.
const payloadMarker = "platypus of the payloads"

// With encryption on, no payload is ever in clear in any table, blob or queue: engine messages, spilled payloads,
// failing activities, events, human tasks, dead letters and their retries, the outbox, continue-as-new, unreadable
// messages. The answers of the API show the payloads.
func TestNoPayloadInClear(t *testing.T) {
	t.Parallel()
	plain := payloadRun(t, "")
	// The test can fail: without encryption, payloads are in all these places.
	for _, place := range []string{
		"container engine-messages", "container orchestrations", "container outbox", "queue orchestration-activities", "queue orchestration-signals",
		"queue work-queue", "table engineDlq column ErrorMessage", "table engineDlq column OriginalMessage", "table engineDlq column ResolutionNotes",
		"table engineHistory column Error", "table engineHistory column Input", "table engineHistory column Output", "table orchestrations column CustomStatus",
		"table orchestrations column Data", "table orchestrations column Form", "table orchestrations column LastErrorJson", "table orchestrations column Note",
		"table orchestrations column Output", "table orchestrations column Payload", "table outbox column Error", "table outbox column Payload",
	} {
		if !slices.Contains(plain, place) {
			t.Errorf("without encryption, the scenario brings no payload to %s; it does to:\n%s", place, strings.Join(plain, "\n"))
		}
	}
	// Data for receivers stays in clear.
	testenv.Equal(t, "in clear with encryption", []string{"container outbox-claims", "queue partner"}, payloadRun(t, "payloads"))
}

// payloadRun runs the scenario, and returns the places of clear payloads.
func payloadRun(t *testing.T, key string) (places []string) {
	t.Helper()
	// It is outside of the bubble, and closes connections: the time of a bubble does not advance while it waits for
	// the network.
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no "+payloadMarker, http.StatusBadRequest)
	}))
	refuses.Config.SetKeepAlivesEnabled(false)
	defer refuses.Close()
	synctest.Test(t, func(t *testing.T) {
		seen := newRecorder(payloadMarker)
		outbox := fmt.Sprintf(`{"destinations": {"queue": {"queue": {"queue": "partner"}}, "http": {"http": {"url": %q, "allow": ["127.0.0.0/8"], "allowPlaintext": true}}},
			"routes": [{"eventType": "work.done.*", "destination": "queue"}, {"eventType": "*", "destination": "http"}]}`, refuses.URL)
		h := handlertest.NewWith(t, payloadApp(), map[string]string{"ROUNDHOUSE_PAYLOAD_KEY": key, "ROUNDHOUSE_OUTBOX": outbox}, func(c *handler.Config) { watch(c, seen.look) })
		scenario := &payloadScenario{t, h}
		scenario.messages()
		scenario.waits()
		scenario.failures()
		scenario.shows()
		places = seen.places()
		if seen.seen < 500 {
			t.Errorf("only %d values were written", seen.seen)
		}
	})
	return places
}

// payloadScenario is a sequence of requests to the app.
type payloadScenario struct {
	*testing.T
	h *handlertest.Host
}

// do sends a request, and expects an answer without an error.
func (s *payloadScenario) do(method, path string, body any) string {
	s.Helper()
	text, err := json.Marshal(body)
	testenv.OK(s, err)
	if body == nil {
		text = nil
	}
	status, answer := s.h.Do(method, path, string(text))
	if status >= 300 {
		s.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}

// later advances the time for timers and requeued messages.
func (s *payloadScenario) later() {
	for range 8 {
		time.Sleep(time.Minute)
		s.h.Deliver()
		s.h.Tick("outbox-sweep-timer", time.Now())
	}
}

func (s *payloadScenario) intake(correlation, do, text string) {
	s.Helper()
	s.do(http.MethodPost, "/api/work", map[string]any{"correlationId": correlation, "tenantId": "contoso", "input": payloadInput{do, text}})
	s.h.Deliver()
}

// messages sends runs that end by themselves, whose messages come by the intake, or from outside, or are large.
func (s *payloadScenario) messages() {
	s.intake("all", "all", payloadMarker)
	s.intake("large", "echo", strings.Repeat(payloadMarker+" ", 3000))
	s.intake("fan", "fan", payloadMarker)
	s.h.Send("work-queue", `{"correlationId": "foreign", "input": {"do": "all", "text": "`+payloadMarker+`"}}`)
	s.later()
	for _, id := range []string{"all", "large", "fan", "foreign"} {
		if out := s.h.Outcome("work-" + id); out.Status != orchestrator.Completed || !strings.Contains(string(out.Output), payloadMarker) {
			s.Errorf("%s: %s %v", id, out.Status, out.Failure)
		}
	}
}

// waits starts a run that waits for an event and a human task, and one over the API.
func (s *payloadScenario) waits() {
	s.intake("waits", "wait", payloadMarker)
	s.do(http.MethodPost, "/api/orchestrations/work-waits/events/go", payloadMarker)
	s.do(http.MethodPost, "/api/orchestrations/work-waits/suspend", map[string]string{"reason": payloadMarker})
	s.do(http.MethodPost, "/api/orchestrations/work-waits/events/unread", strings.Repeat(payloadMarker, 4000))
	s.do(http.MethodPost, "/api/orchestrations/work-waits/resume", map[string]string{"reason": payloadMarker})
	s.later()
	var list struct {
		Data struct {
			Items []struct{ OrchestrationID, TaskID string }
		}
	}
	if err := json.Unmarshal([]byte(s.do(http.MethodGet, "/api/tasks", nil)), &list); err != nil || len(list.Data.Items) != 1 {
		s.Fatalf("%+v, %v", list, err)
	}
	task := "/api/tasks/" + url.PathEscape(list.Data.Items[0].OrchestrationID) + "/" + list.Data.Items[0].TaskID
	if answer := s.do(http.MethodGet, task, nil); strings.Count(answer, payloadMarker) < 2 {
		s.Errorf("the task shows neither payload nor form: %s", answer)
	}
	s.do(http.MethodPost, task+"/assign", map[string]any{"assignee": "ann", "note": payloadMarker})
	s.do(http.MethodPost, task+"/complete", map[string]any{"output": payloadInput{Text: payloadMarker}, "note": payloadMarker})
	s.later()
	if out := s.h.Outcome("work-waits"); out.Status != orchestrator.Completed {
		s.Errorf("%+v", out)
	}
	s.do(http.MethodPost, "/api/orchestrations", map[string]any{"orchestrator": "work", "id": "work-started", "input": map[string]any{"input": payloadInput{"echo", payloadMarker}}})
	s.later()
	if out := s.h.Outcome("work-started"); string(out.Output) != `"`+payloadMarker+`"` {
		s.Errorf("%+v", out)
	}
}

// failures sends messages that are dead-lettered, and handles them.
func (s *payloadScenario) failures() {
	s.intake("refused", "refuse", payloadMarker)
	s.intake("failed", "fail", payloadMarker)
	s.h.Send("work-queue", `{"correlationId": "bad", "input": {"other": "`+payloadMarker+`"}}`)
	s.h.Send("work-queue", "no JSON, "+payloadMarker)
	s.later()
	letters := s.letters()
	if len(letters) != 4 {
		s.Fatalf("%d dead letters: %+v", len(letters), letters)
	}
	place := letterPath(letters["refused"])
	if answer := s.do(http.MethodGet, place, nil); strings.Count(answer, payloadMarker) < 2 {
		s.Errorf("the dead letter shows neither message nor error: %s", answer)
	}
	s.do(http.MethodPost, place+"/retry", nil)
	s.later()
	s.do(http.MethodPost, "/api/dlq/retry", map[string]any{"engine": "work"})
	s.later()
	s.later()
	again := s.letters()
	if again["failed"].RetryCount == 0 || again["refused"].RetryCount == 0 {
		s.Errorf("the retries have not failed again: %+v", again)
	}
	s.do(http.MethodPatch, letterPath(again["failed"]), map[string]string{"status": "Resolved", "resolutionNotes": payloadMarker})
	// An event that its receiver refuses, with an error text.
	s.intake("tell", "tell", payloadMarker)
	s.later()
	if dead := s.h.DeadLetters("outbox"); len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, payloadMarker) {
		s.Errorf("dead letters of the outbox: %+v", dead)
	}
}

// letters returns the newest dead letters, by correlation id, "" for those with a derived one.
func (s *payloadScenario) letters() map[string]engine.DeadLetter {
	found := map[string]engine.DeadLetter{}
	for _, l := range s.h.DeadLetters("work") {
		id := l.CorrelationID
		if !slices.Contains([]string{"refused", "failed", "bad"}, id) {
			id = ""
		}
		if _, newer := found[id]; !newer {
			found[id] = l
		}
	}
	return found
}

func letterPath(l engine.DeadLetter) string {
	return "/api/dlq/" + l.Engine + "/" + url.PathEscape(l.RowKey)
}

// shows requests everything that shows payloads.
func (s *payloadScenario) shows() {
	entry := s.h.History("work")[0]
	for _, path := range []string{"/api/orchestrations/work-all", "/api/orchestrations/work-all/rounds", "/api/orchestrations/work-refused",
		"/api/history/work/" + url.PathEscape(entry.RowKey), "/api/workflow/outbox/" + "contoso/" + s.dead()} {
		if answer := s.do(http.MethodGet, path, nil); !strings.Contains(answer, payloadMarker) {
			s.Errorf("%s does not show it: %s", path, answer)
		}
	}
	for _, path := range []string{"/api/history", "/api/dlq", "/api/dlq/groups", "/api/dlq/counts", "/api/orchestrations", "/api/orchestrations?status=Completed", "/api/tasks",
		"/api/workflow/outbox", "/api/workflow/outbox?status=dead&tenant=contoso", "/api/timeline/all", "/api/metrics", "/api/health/full"} {
		if status, answer := s.h.Do(http.MethodGet, path, ""); status >= 300 {
			s.Errorf("%s: %d %s", path, status, answer)
		}
	}
}

// dead returns the id of the event that its receiver has refused.
func (s *payloadScenario) dead() string {
	var list struct {
		Data struct{ Items []struct{ ID string } }
	}
	answer := s.do(http.MethodGet, "/api/workflow/outbox?status=dead&tenant=contoso", nil)
	if err := json.Unmarshal([]byte(answer), &list); err != nil || len(list.Data.Items) != 1 {
		s.Fatalf("%s", answer)
	}
	return list.Data.Items[0].ID
}
