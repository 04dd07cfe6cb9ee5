package api

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// A history is downloaded without secrets, under a name that any system takes, and shows what the orchestration shows when it is opened.
func TestHistoryIsDownloadedAndOpened(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	const id = "an id/with\"signs ü"
	rec := b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"approval","id":"an id/with\"signs ü","input":{"item":"book","password":"hunter-1"},"correlationId":"c-1"}`)
	if rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
	b.tell(t, id, "/events/decision", "true")
	file := b.get(t, orchestrationPath(id)+"/history")
	if name := file.Header().Get("Content-Disposition"); file.Code != http.StatusOK || name != `attachment; filename="history-an_id_with_signs__.json"` {
		t.Fatalf("%d %s %s", file.Code, name, file.Body)
	}
	if text := file.Body.String(); strings.Contains(text, "hunter") || !strings.Contains(text, `"format": "roundhouse-history"`) || !strings.Contains(text, `"version": 1`) {
		t.Errorf("the file: %s", text)
	}
	if err := orchestrator.Replay(approval(), file.Body.Bytes()); err != nil {
		t.Errorf("replay: %v", err)
	}
	opened := data[openedHistory](t, b.send(t, http.MethodPost, openHistoryPath, file.Body.String()))
	live := b.shown(t, id)
	rounds := data[list[roundItem]](t, b.get(t, orchestrationPath(id)+"/rounds"))
	if diff := cmp.Diff(rounds.Items, opened.Rounds); diff != "" {
		t.Errorf("rounds (-live +file):\n%s", diff)
	}
	if o := opened.Orchestration; o.ID != id || o.Status != live.Status || string(o.Output) != string(live.Output) || string(o.Input) != string(live.Input) || o.CorrelationID != "c-1" || o.Calls != live.Calls || !o.EndedAt.Equal(live.EndedAt) {
		t.Errorf("%+v, want %+v", o, live)
	}
	kinds := map[string]int{}
	for _, i := range opened.Timeline {
		kinds[string(i.Kind)]++
	}
	if kinds["orchestration"] != 1 || kinds["call"] != 2 || kinds["message"] != 1 {
		t.Errorf("timeline: %v", kinds)
	}
	other := accesstest.Caller{Tenant: "red", Object: "mallory", AppRoles: []string{"keeper"}}
	for _, path := range []string{orchestrationPath(id), orchestrationPath("nobody")} {
		if rec := b.send(t, http.MethodGet, path+"/history", "", "X-MS-CLIENT-PRINCIPAL", other.Header()); rec.Code != http.StatusNotFound {
			t.Errorf("%s for another tenant: %d %s", path, rec.Code, rec.Body)
		}
	}
	if rec := b.get(t, orchestrationPath(id)+"/history?limit=1"); code(t, rec) != codeInvalidParameter {
		t.Errorf("%d", rec.Code)
	}
}

// What is no history, or too much of one, is refused.
func TestOpenHistoryRefuses(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for body, want := range map[string]string{
		``: codeNoHistory, `{}`: codeNoHistory, `{"id":"a","executions":[{"execution":1}]}`: codeNoHistory, `{"format":"roundhouse-history","version":7,"id":"a"}`: codeNewerSchema,
		`{"id":"` + strings.Repeat("x", MaxHistory) + `"}`: codeBodyTooLarge,
	} {
		if rec := b.send(t, http.MethodPost, openHistoryPath, body); code(t, rec) != want {
			t.Errorf("%.60s: %d %s", body, rec.Code, rec.Body)
		}
	}
}

// Of a long history the beginning is shown, and how much more there is.
func TestOpenHistoryIsBounded(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	rounds := `{"learned":[{"kind":"ExecutionStarted","at":1,"name":"x"}]}` + strings.Repeat(`,{"decided":[{"kind":"ActivityScheduled","at":2,"name":"y","task":1}]}`, maxOpened+9)
	opened := data[openedHistory](t, b.send(t, http.MethodPost, openHistoryPath, `{"id":"a","executions":[{"execution":1,"rounds":[`+rounds+`]}]}`))
	if len(opened.Rounds) != maxOpened || opened.EntriesLeft != 10 || len(opened.Timeline) != maxOpened || opened.ItemsLeft == 0 {
		t.Errorf("%d rounds, %d entries left; %d items, %d left", len(opened.Rounds), opened.EntriesLeft, len(opened.Timeline), opened.ItemsLeft)
	}
	large := `{"kind":"ActivityScheduled","at":2,"task":1,"payload":"` + strings.Repeat("x", 100<<10) + `"}`
	rounds = `{"learned":[{"kind":"ExecutionStarted","at":1,"name":"x"}]}` + strings.Repeat(`,{"decided":[`+large+`]}`, 40)
	opened = data[openedHistory](t, b.send(t, http.MethodPost, openHistoryPath, `{"id":"a","executions":[{"execution":1,"rounds":[`+rounds+`]}]}`))
	if len(opened.Rounds) != 22 || opened.EntriesLeft != 19 {
		t.Errorf("%d rounds, %d entries left", len(opened.Rounds), opened.EntriesLeft)
	}
}

// Whatever a file has in it, it is refused or can be shown.
func FuzzOpenedHistory(f *testing.F) {
	golden, err := os.ReadFile("../../orchestrator/orchestratortest/testdata/order.json")
	testenv.Check(f, err)
	f.Add(golden)
	for _, kind := range []string{"ExecutionStarted", "ActivityScheduled", "ChildScheduled", "EventRaised", "ExecutionContinued", "ExecutionSuspended", "ExecutionStalled", "AttemptFailed"} {
		f.Add([]byte(`{"id":"a","executions":[{"execution":1,"rounds":[{"learned":[{"kind":"ExecutionStarted","at":1}],"decided":[{"kind":"ActivityScheduled","at":2,"task":1}]},
			{"learned":[{"kind":"` + kind + `","at":3,"task":1,"undoes":-1,"failure":{"message":"x"},"origin":{}}],"decided":[{"kind":"` + kind + `","at":4,"task":-9,"failure":{"message":"x"}}]}]}]}`))
	}
	a := &api{now: time.Now}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := orchestrator.OpenHistory(text)
		if err != nil {
			return
		}
		if _, err := json.Marshal(a.openedOf(h)); err != nil {
			t.Errorf("what was opened cannot be shown: %v", err)
		}
	})
}
