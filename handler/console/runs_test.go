package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
)

const (
	runsAPI = "/api/orchestrations"
	runID   = "hmac-rotation-7"
)

// runData is one orchestration as in the API.
func runData(more map[string]any) map[string]any {
	d := map[string]any{"id": runID, "orchestrator": "hmac", "version": "2", "status": "Running", "correlationId": "rotation-7", "parentId": "yearly-2026", "execution": 2, "stateVersion": 9,
		"waitingFor": "Timer", "waitingUntilUtc": "2026-11-26T17:00:00Z", "createdAtUtc": "2026-11-26T13:00:00Z", "updatedAtUtc": "2026-11-26T13:41:00Z", "tag": "order-12",
		"attempt": 2, "round": 4, "lastExecutedBy": "node-a", "customStatus": map[string]any{"step": 3}, "input": map[string]any{"days": 7}, "calls": 3,
		"waits": []any{map[string]any{"kind": "Timer", "scheduledAtUtc": "2026-11-26T13:40:00Z"},
			map[string]any{"kind": "Orchestration", "name": "notify", "childId": "notify-1", "attempts": 2, "scheduledAtUtc": "2026-11-26T13:41:00Z"}},
		"pendingEvents": []any{"approval"}, "lastError": map[string]any{"message": "status 503", "code": "VaultDown"}}
	for name, value := range more {
		d[name] = value
	}
	return d
}

func roundsData() string {
	return `{"items": [
		{"execution": 2, "round": 1, "learned": [{"kind": "ExecutionStarted", "atUtc": "2026-11-26T13:00:00Z", "name": "hmac", "payload": {"n": 9007199254740993}}],
			"decided": [{"kind": "ActivityScheduled", "atUtc": "2026-11-26T13:00:01Z", "name": "store", "call": 1, "payloadBytes": 200000}]},
		{"execution": 2, "round": 2, "learned": [{"kind": "AttemptFailed", "atUtc": "2026-11-26T13:05:00Z", "name": "store", "attempt": 1, "dueAtUtc": "2026-11-26T13:10:00Z", "failure": {"message": "status 503"}}],
			"decided": [{"kind": "OrchestrationScheduled", "atUtc": "2026-11-26T13:41:00Z", "name": "notify", "childId": "notify-1", "payloadInBlob": true}]}],
		"continuationToken": "later"}`
}

func failedRun() map[string]any {
	return runData(map[string]any{"status": "Failed", "endedAtUtc": "2026-11-26T13:30:00Z", "waitingFor": nil, "waitingUntilUtc": nil, "waits": []any{}, "pendingEvents": []any{}, "parentId": nil,
		"failure": map[string]any{"message": "the vault answered 503", "code": "VaultDown", "permanent": true}, "inputBytes": 200_000, "input": nil})
}

func suspendedRun() map[string]any { return runData(map[string]any{"status": "Suspended"}) }

// runs is an API with one orchestration, and others in its list.
func runs(of map[string]any) answers {
	timeline := strings.TrimSuffix(strings.TrimSpace(typical()["/api/timeline/rotation-7"].(string)), "]}") + `,
		{"id": "9", "atUtc": "2026-11-26T13:42:00Z", "kind": "orchestration", "engine": "notify", "orchestration": {"id": "notify-0", "parentId": "hmac-rotation-7", "status": "Completed"}},
		{"id": "10", "atUtc": "2026-11-26T13:43:00Z", "endedAtUtc": "2026-11-26T13:44:00Z", "kind": "call", "engine": "hmac", "call": {"orchestrationId": "hmac-rotation-7", "type": "Activity", "name": "store", "status": "Completed"}}]}`
	return typical().with(answers{
		runsAPI:                                map[string]any{"items": []any{of, failedRun()}, "continuationToken": "next page"},
		runsAPI + "/" + runID:                  of,
		runsAPI + "/" + runID + "/rounds":      roundsData(),
		runsAPI + "/" + runID + "/suspend":     map[string]any{},
		runsAPI + "/" + runID + "/events/done": map[string]any{},
		"/api/timeline/rotation-7":             timeline,
	})
}

// hostileRuns has malicious data.
func hostileRuns() answers {
	id := evil + "/..%2F"
	of := runData(map[string]any{"id": id, "orchestrator": turning, "version": evil, "status": evil, "correlationId": evil, "parentId": "../" + evil, "waitingFor": evil, "tag": turning, "lastExecutedBy": evil,
		"customStatus": evil, "input": map[string]any{"text": "</pre>" + evil}, "output": turning, "errorCode": evil, "lastError": map[string]any{"message": evil + turning, "code": evil},
		"waits": []any{map[string]any{"kind": evil, "name": turning, "childId": evil}}, "pendingEvents": []any{evil, turning}, "late": true})
	event := map[string]any{"kind": evil, "name": turning, "childId": "//evil.example/", "reason": evil, "payload": huge, "atUtc": "9999-12-31T00:00:00Z", "failure": map[string]any{"message": turning}}
	return hostile().with(answers{
		runsAPI:                        map[string]any{"items": []any{of}, "continuationToken": evil},
		runsAPI + "/" + id:             of,
		runsAPI + "/" + id + "/rounds": map[string]any{"items": []any{map[string]any{"execution": 1, "round": 1, "learned": []any{event}, "decided": []any{event}}}, "continuationToken": evil},
	})
}

// orchestrationPages are the pages of orchestrations, and of each command to one.
func orchestrationPages() map[string]shown {
	one := orchestrationLink(runID)
	evilOne := orchestrationLink(Text(evil + "/..%2F"))
	pages := map[string]shown{
		"orchestrations_empty":    at(nothing(), orchestrationsPath, 200),
		"orchestrations_filtered": at(nothing(), orchestrationsPath+"?status=Stalled&idPrefix=it%27s", 200),
		"orchestrations_end":      at(nothing(), orchestrationsPath+"?continuationToken=x", 200),
		"orchestrations_typical":  at(runs(runData(nil)), orchestrationsPath+"?status=Running&orchestrator=hmac&continuationToken=x&done=purged", 200),
		"orchestrations_hostile":  at(hostileRuns(), orchestrationsPath+"?"+url.Values{"idPrefix": {evil}, "tag": {"a&b=c"}, "status": {evil}}.Encode(), 200),
		"orchestrations_wrong":    at(typical().with(answers{runsAPI: refusal{400, "InvalidParameter", "Use a time such as 2026-11-21."}}), orchestrationsPath+"?fromDate=soon", 400),
		"orchestration_typical":   at(runs(runData(nil)), one+"?done=suspend", 200),
		"orchestration_failed":    at(runs(failedRun()).with(answers{"/api/me": reader()}), one+"?continuationToken=x", 200),
		"orchestration_alone": at(nothing().with(answers{"/api/me": someone("sam@example.com", access.OrchestrationsRead), runsAPI + "/" + runID: map[string]any{"id": runID, "orchestrator": "hmac", "status": "Pending", "correlationId": "c"},
			runsAPI + "/" + runID + "/rounds": refusal{503, "ServiceUnavailable", "Storage did not answer in time."}}), one, 200),
		"orchestration_hostile":   at(hostileRuns(), evilOne, 200),
		"orchestration_none":      at(nothing(), one, 404),
		"command_raise_hostile":   at(hostileRuns(), evilOne+"/raise", 200),
		"command_suspend_reader":  at(runs(runData(nil)).with(answers{"/api/me": reader()}), one+"/suspend", 200),
		"command_suspend_stalled": at(runs(runData(map[string]any{"status": "Stalled"})), one+"/suspend", 200),
		"command_suspend_ended":   at(runs(failedRun()), one+"/suspend", 200),
	}
	of := map[string]map[string]any{"resume": suspendedRun(), "rewind": failedRun(), "restart": failedRun(), "purge": failedRun()}
	for _, c := range commands() {
		run := of[c.name]
		if run == nil {
			run = runData(nil)
		}
		pages["command_"+c.name+"_typical"] = at(runs(run), one+"/"+c.name, 200)
	}
	pages["orchestrations_columns"] = at(runs(runData(map[string]any{"endedAtUtc": "2026-11-26T13:30:00Z"})), orchestrationsPath+"?columns=status,tag,ended&since=today", 200)
	return pages
}

// A command is offered where the state allows it and the user may send it, and is otherwise disabled with the reason.
func TestCommandsByState(t *testing.T) {
	t.Parallel()
	ended := "2026-11-26T13:30:00Z"
	for name, test := range map[string]struct {
		status, ended string
		offered       string
	}{
		"pending":    {"Pending", "", "suspend cancel terminate raise"},
		"running":    {"Running", "", "suspend cancel terminate raise"},
		"suspended":  {"Suspended", "", "resume cancel terminate raise"},
		"retrying":   {"Retrying", "", "suspend resume cancel terminate raise"},
		"stalled":    {"Stalled", "", "suspend resume cancel terminate raise"},
		"completed":  {"Completed", ended, "restart purge"},
		"failed":     {"Failed", ended, "rewind restart purge"},
		"terminated": {"Terminated", ended, "restart purge"},
		"canceled":   {"Canceled", ended, "restart purge"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := map[string]any{"status": test.status}
			if test.ended != "" {
				more["endedAtUtc"] = test.ended
			}
			a := runs(runData(more))
			link := orchestrationLink(runID)
			operators, readers := newConsole(t, a, access.Control{}), newConsole(t, a.with(answers{"/api/me": reader()}), access.Control{})
			text, read := get(t, operators, link).Body.String(), get(t, readers, link).Body.String()
			for _, c := range commands() {
				want := strings.Contains(" "+test.offered+" ", " "+c.name+" ")
				anchor := `href="` + link + "/" + c.name + `"`
				disabled := `disabled aria-describedby="why-` + c.name + `"`
				if got := strings.Contains(text, anchor); got != want || got == strings.Contains(text, disabled) {
					t.Errorf("%s is offered: %v, want %v", c.name, got, want)
				}
				if strings.Contains(read, anchor) || !strings.Contains(read, disabled) {
					t.Errorf("%s is offered to a reader", c.name)
				}
				if asks := strings.Contains(get(t, operators, link+"/"+c.name).Body.String(), `<form method="post"`); asks != want {
					t.Errorf("the page of %s has a form: %v, want %v", c.name, asks, want)
				}
			}
			if n := strings.Count(read, "<code>"+string(access.OrchestrationsCommand)+"</code>"); n != 6 {
				t.Errorf("a reader is told %d times which permission commands need", n)
			}
		})
	}
}

// A form's values reach the API: by the method and at the path of the command, with the form's key, the reason, and
// numbers as typed.
func TestCommandForms(t *testing.T) {
	t.Parallel()
	const number = "123456789012345678901234567890"
	for _, c := range commands() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			method, path, body := http.MethodPost, runsAPI+"/a/b?c/"+c.name, `{"reason":"as asked"}`
			switch c.name {
			case "raise":
				path, body = runsAPI+"/a/b?c/events/done?x", `{"n":`+number+`}`
			case "purge":
				method, path, body = http.MethodDelete, runsAPI+"/a/b?c", ""
			}
			a := &calls{answers: answers{"/api/me": operator(), path: map[string]any{}}}
			form := url.Values{"key": {"form-1"}, "etag": {"v9"}, "reason": {"as asked"}, "name": {"done?x"}, "value": {`{"n": ` + number + `}`}}
			link := orchestrationLink("a/b?c")
			to, of := link+"?done="+c.name, ""
			if c.name == "purge" {
				to, of = orchestrationsPath+"?done=purged", "v9"
			}
			rec := a.sentBy(t, at(nil, link+"/"+c.name, 303).sends(form), fmt.Sprintf(`%s %s key "form-1" of %q: %s`, method, path, of, body))
			if got := rec.Header().Get("Location"); got != to {
				t.Errorf("to %s, want %s", got, to)
			}
		})
	}
}

// An invalid event leads back to the form, with the entered values and the same key, and no request is sent.
func TestEventFormAsksAgain(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]url.Values{
		"no name":         {"key": {"form-1"}, "value": {"1"}},
		"no JSON":         {"key": {"form-1"}, "name": {"done"}, "value": {`yes <b>`}},
		"two values":      {"key": {"form-1"}, "name": {"done"}, "value": {"1 2"}},
		"a cut-off value": {"key": {"form-1"}, "name": {"done"}, "value": {`{"a":`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := (&calls{answers: runs(runData(nil))}).sentBy(t, at(nil, orchestrationLink(runID)+"/raise", 400).sends(form), "")
			if text := rec.Body.String(); !strings.Contains(text, `role="alert"`) || !strings.Contains(text, `name="key" value="form-1"`) || strings.Contains(text, "<b>") {
				t.Errorf("%s", text)
			}
		})
	}
	form := at(nil, orchestrationLink(runID)+"/raise", 303).sends(url.Values{"name": {"done"}})
	(&calls{answers: runs(runData(nil))}).sentBy(t, form, "POST "+runsAPI+"/"+runID+`/events/done key "" of "": null`)
}

// Long rounds and large values are cut, with a notice.
func TestLargeOrchestrations(t *testing.T) {
	t.Parallel()
	var events []any
	for n := range maxRoundRows {
		events = append(events, map[string]any{"kind": "ActivityScheduled", "name": fmt.Sprint("a", n), "payload": strings.Repeat("ש", 60_000/maxRoundRows*100)})
	}
	a := runs(runData(map[string]any{"output": strings.Repeat("<", 100_000)})).with(answers{
		runsAPI + "/" + runID + "/rounds": list(map[string]any{"execution": 1, "round": 1, "learned": events, "decided": events[:7]}),
	})
	text := get(t, newConsole(t, a, access.Control{}), orchestrationLink(runID)).Body.String()
	if !strings.Contains(text, "7 more of these rounds are not shown") || !strings.Contains(text, "these are its first 64.0 KiB") || strings.Contains(text, "\uFFFD") || len(text) > 1<<20 {
		t.Errorf("%d bytes", len(text))
	}
}

// A command can be copied into a shell as displayed, or is not displayed.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]Text{
		"hmac-1":          "roundhouse orchestration show --rounds hmac-1",
		"it's; rm -rf $x": `roundhouse orchestration show --rounds 'it'\''s; rm -rf $x'`,
		"--all":           "roundhouse orchestration show --rounds -- --all",
		"a\u202eb":        "",
		"a\nb":            "",
		"שלום":            "roundhouse orchestration show --rounds 'שלום'",
	} {
		if got := orchestrationLine("show", id, "--rounds"); got != want {
			t.Errorf("%q: %s, want %s", id, got, want)
		}
	}
}

// The filter and the position in the address of a page reach the API.
func TestOrchestrationPagesGoOn(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		orchestrationsPath + "?status=Failed&idPrefix=a&continuationToken=x&more=y": runsAPI + "?continuationToken=x&idPrefix=a&status=Failed",
		orchestrationLink(runID) + "?continuationToken=x":                           runsAPI + "/" + runID + "/rounds?continuationToken=x&limit=20",
	} {
		a := &calls{answers: runs(runData(nil))}
		get(t, newConsole(t, a, access.Control{}), target)
		var got []string
		for _, r := range a.got {
			got = append(got, r.URL.RequestURI())
		}
		if !slices.Contains(got, want) {
			t.Errorf("%s: the API got %q, and not %s", target, got, want)
		}
	}
}

// A view with a relative time keeps its meaning: the API receives the current absolute time.
func TestSince(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"since=hour":                     "fromDate=2026-11-26T13%3A00%3A00Z",
		"since=today&status=Failed":      "fromDate=2026-11-26T00%3A00%3A00Z&status=Failed",
		"since=week":                     "fromDate=2026-11-19T14%3A00%3A00Z",
		"since=hour&fromDate=2026-11-01": "fromDate=2026-11-01",
		"columns=tag":                    "",
	} {
		a := &calls{answers: nothing()}
		rec := get(t, newConsole(t, a, access.Control{EasyAuth: true}), orchestrationsPath+"?"+query)
		if rec.Code != http.StatusOK || len(a.got) != 1 || a.got[0].URL.RawQuery != want {
			t.Errorf("%s: %d, and the API got %v", query, rec.Code, a.got[0].URL)
		}
	}
	rec := get(t, newConsole(t, nothing(), access.Control{EasyAuth: true}), orchestrationsPath+"?since=ever")
	if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "Use hour, today or week") {
		t.Errorf("%d", rec.Code)
	}
	p := orchestrationsPage{Filter: orchestrationFilterOf(url.Values{"since": {"hour"}, "status": {"Running"}}), now: goldenNow()}
	if got := p.Purge(); got != purgePath+"?fromDate=2026-11-26T13%3A00%3A00Z" {
		t.Errorf("what is purged of it is %s", got)
	}
	running := get(t, newConsole(t, nothing(), access.Control{EasyAuth: true}), orchestrationsPath+"?since=hour&status=Running")
	if want := "roundhouse orchestration list --status=Running --from=2026-11-26T13:00:00Z"; !strings.Contains(running.Body.String(), want) {
		t.Errorf("the command is not %s", want)
	}
}

// Columns are in the address, and stay there with filters, views and pages; at least one is displayed.
func TestColumns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": usualColumns, "nothing": usualColumns, "tag,status": "status,tag", "work,work,<b>": "work", usualColumns + ",tag": "orchestrator,status,waits,created,changed,tag,work",
	} {
		if got := strings.Join(columnsOf(text), ","); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	p := orchestrationsPage{Filter: orchestrationFilterOf(url.Values{"status": {"Failed"}}), columns: columnsOf("tag"), now: time.Now()}
	links := map[string]string{}
	for _, c := range p.Columns() {
		links[c.Key] = c.Link
	}
	if links["tag"] != "" || links["ended"] != orchestrationsPath+"?columns=ended%2Ctag&status=Failed" {
		t.Errorf("%v", links)
	}
	if got := p.Chips()[0].Without; got != orchestrationsPath+"?columns=tag" {
		t.Errorf("without the filter: %s", got)
	}
	for _, v := range p.Views() {
		if v.Name == "Running" && v.Link != orchestrationsPath+"?columns=tag&status=Running" || v.Current {
			t.Errorf("%+v", v)
		}
	}
}

const openAPI = "/api/orchestrations/history/open"

// opened is the API's answer about a history with the data of a page.
func opened(run map[string]any, timeline any, rounds any, left int) map[string]any {
	return map[string]any{"orchestration": run, "timeline": timeline, "rounds": rounds, "entriesLeft": left, "itemsLeft": left}
}

// part returns a member of a document.
func member(document any, name string) json.RawMessage {
	text, ok := document.(string)
	if !ok {
		raw, _ := json.Marshal(document)
		text = string(raw)
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal([]byte(text), &all)
	return all[name]
}

// upload sends files of a form, by the names of its fields.
func upload(t *testing.T, h http.Handler, target string, fields ...[2]string) *httptest.ResponseRecorder {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, f := range fields {
		part, err := w.CreateFormFile(f[0], "history.json")
		if err == nil {
			_, err = part.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return sendBody(t, h, target, w.FormDataContentType(), &body)
}

// historyPages are the page that asks for a history, and the pages that show one.
func historyPages() map[string]shown {
	typicalRun, evilRun := runs(runData(nil)), hostileRuns()
	evilID := evil + "/..%2F"
	opens := func(answer any, sent string, status int) shown {
		return at(answers{"/api/me": operator(), openAPI: answer}, openPath, status).uploads([2]string{"file", sent}, [2]string{"text", ""})
	}
	return map[string]shown{
		"openhistory_shown": opens(opened(runData(nil), member(typicalRun["/api/timeline/rotation-7"], "items"), member(roundsData(), "items"), 3), "{}", 200),
		"openhistory_hostile": opens(opened(evilRun[runsAPI+"/"+evilID].(map[string]any), member(evilRun["/api/timeline/"+evil], "items"),
			member(evilRun[runsAPI+"/"+evilID+"/rounds"], "items"), 0), "{}", 200),
		"openhistory_refused":     opens(refusal{422, "NotAHistory", "The file is no history of an orchestration: " + evil}, "{}", 422),
		"openhistory_nothing":     opens(refusal{422, "NotAHistory", ""}, "", 400),
		"openhistory_typical":     at(answers{"/api/me": operator()}, openPath, 200),
		"openhistory_participant": at(answers{"/api/me": approver()}, openPath, 403),
	}
}

// A history reaches the API unchanged, as a file or as a text; one that is too large does not.
func TestHistoryIsSentAsItIs(t *testing.T) {
	t.Parallel()
	const text = `{"id": "a",  "n": 123456789012345678901234567890, "<": "\u003c"}`
	for name, test := range map[string]struct {
		field, text string
		status      int
	}{
		"a file":      {"file", text, 200},
		"a text":      {"text", text, 200},
		"another":     {"other", text, 400},
		"the largest": {"file", strings.Repeat("x", api.MaxHistory), 200},
		"larger":      {"file", strings.Repeat("x", api.MaxHistory+1), 400},
		"far larger":  {"file", strings.Repeat("x", maxUpload+1), 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, want := &calls{answers: answers{"/api/me": operator(), openAPI: opened(runData(nil), nil, nil, 0)}}, ""
			if test.status == 200 {
				want = "POST " + openAPI + ` key "" of "": ` + test.text
			}
			a.sentBy(t, at(nil, openPath, test.status).uploads([2]string{test.field, test.text}), want)
		})
	}
}

// A download is a file for the browser to save, under the API's name.
func TestDownload(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != runsAPI+"/"+runID+"/history" {
			runs(runData(nil)).ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Disposition", `attachment; filename="history-x.json"`)
		_, _ = w.Write([]byte(`{"n": 1.10}`))
	})
	rec := get(t, newConsole(t, h, access.Control{EasyAuth: true}), orchestrationLink(runID)+"/history")
	if head := rec.Header(); rec.Code != 200 || rec.Body.String() != `{"n": 1.10}` || head.Get("Content-Disposition") != `attachment; filename="history-x.json"` || head.Get("Content-Type") != "application/json" || head.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %s", rec.Code, head, rec.Body)
	}
	refused := runs(runData(nil)).with(answers{runsAPI + "/" + runID + "/history": refusal{422, "HistoryTooLarge", "The history has 9 MiB."}})
	rec = get(t, newConsole(t, refused, access.Control{EasyAuth: true}), orchestrationLink(runID)+"/history")
	if rec.Code != 422 || rec.Header().Get("Content-Disposition") != "" || !strings.Contains(rec.Body.String(), "The history has 9 MiB.") || !strings.Contains(rec.Body.String(), "Back to the orchestration") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// purgePages are the pages of this file.
func purgePages() map[string]shown {
	one, evilOne := orchestrationLink(runID)+"/force-purge", orchestrationLink(Text(evil+"/..%2F"))+"/force-purge"
	damaged := nothing().with(answers{runsAPI + "/" + runID: refusal{500, damagedCode, "What is stored of the orchestration is damaged."}})
	few := nothing().with(answers{runsAPI: list(failedRun(), runData(nil), runData(map[string]any{"status": "Completed", "endedAtUtc": "2026-11-26T13:59:59Z"}))})
	return map[string]shown{
		"purge_empty":   at(nothing(), purgePath, 200),
		"purge_typical": at(few, purgePath+"?orchestrator=hmac&status=Failed&fromDate=2026-11-01", 200),
		"purge_before":  at(few, purgePath+"?endedBefore=2026-11-26T13:45:00Z", 200),
		"purge_many":    at(runs(failedRun()), purgePath, 200),
		"purge_reader":  at(few.with(answers{"/api/me": reader()}), purgePath, 200),
		"purge_tag":     at(few, purgePath+"?tag=order-12", 400),
		"purge_wrong":   at(few, purgePath+"?endedBefore=soon", 400),
		"purge_refused": at(few.with(answers{runsAPI: refusal{400, "InvalidParameter", "toDate: " + evil}}), purgePath+"?toDate=x", 400),
		"purge_hostile": at(few, purgePath+"?"+url.Values{"orchestrator": {evil}, "idPrefix": {"a&b=c"}, "status": {evil}}.Encode(), 200),
		"force_typical": at(damaged, one, 200),
		"force_reader":  at(damaged.with(answers{"/api/me": reader()}), one, 200),
		"force_running": at(runs(runData(nil)), one, 200),
		"force_hostile": at(hostileRuns(), evilOne, 200),
		"force_refused": at(runs(runData(nil)).with(answers{runsAPI + "/" + runID: refusal{400, "InvalidParameter", "reason: A forced purge needs a reason."}}), one, 400).
			sends(url.Values{"reason": {"no <b> backup"}}),
		"orchestration_torn": at(damaged, orchestrationLink(runID), 500),
	}
}
