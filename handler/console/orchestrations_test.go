package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
)

const (
	runsAPI = "/api/orchestrations"
	runID   = "hmac-rotation-7"
)

// runData is one orchestration as the API has it.
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

// hostileRuns has data that is meant to do harm.
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

// A command is offered where the state allows it and whoever looks may send it, and is shown as disabled with the reason elsewhere.
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

// What a form sends reaches the API: by the method and at the path of the command, with the form's key, the reason, and numbers of
// the value as they were typed.
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
			a := &bodies{answers: answers{"/api/me": operator(), path: map[string]any{}}}
			form := url.Values{"key": {"form-1"}, "etag": {"v9"}, "reason": {"as asked"}, "name": {"done?x"}, "value": {`{"n": ` + number + `}`}}
			link := orchestrationLink("a/b?c")
			rec := send(t, restoring(newConsole(t, a, access.Control{EasyAuth: true})), link+"/"+c.name, form)
			want := link + "?done=" + c.name
			if c.name == "purge" {
				want = orchestrationsPath + "?done=purged"
			}
			if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != want {
				t.Fatalf("%d to %s: %s", rec.Code, rec.Header().Get("Location"), rec.Body)
			}
			match := ""
			if c.name == "purge" {
				match = "v9"
			}
			if got, want := a.got, fmt.Sprintf("%s %s form-1 %s %s", method, path, match, body); got != want {
				t.Errorf("the API got %q, want %q", got, want)
			}
		})
	}
}

// bodies notes the last request that the API got besides who asks.
type bodies struct {
	answers
	got string
}

// ServeHTTP implements [http.Handler].
func (b *bodies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/me" {
		text := make([]byte, max(r.ContentLength, 0))
		_, _ = r.Body.Read(text)
		b.got = fmt.Sprintf("%s %s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("If-Match"), text)
	}
	b.answers.ServeHTTP(w, r)
}

// An event that cannot be sent is asked for again, with what was typed and under the same key, and the API is not told.
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
			a := &bodies{answers: runs(runData(nil))}
			rec := send(t, newConsole(t, a, access.Control{EasyAuth: true}), orchestrationLink(runID)+"/raise", form)
			text := rec.Body.String()
			if rec.Code != http.StatusBadRequest || !strings.Contains(text, `role="alert"`) || !strings.Contains(text, `name="key" value="form-1"`) || strings.Contains(text, "<b>") {
				t.Errorf("%d %s", rec.Code, text)
			}
			if strings.HasPrefix(a.got, http.MethodPost) {
				t.Errorf("the API got %q", a.got)
			}
		})
	}
	a := &bodies{answers: runs(runData(nil))}
	rec := send(t, newConsole(t, a, access.Control{EasyAuth: true}), orchestrationLink(runID)+"/raise", url.Values{"name": {"done"}})
	if rec.Code != http.StatusSeeOther || !strings.HasSuffix(a.got, " null") {
		t.Errorf("an event without a value: %d, %q", rec.Code, a.got)
	}
}

// Long rounds and large values are cut, and the page says so.
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

// A command can be copied into a shell as it is shown, or is not shown.
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

// What the address of a page filters by, and the place that it goes on at, reach the API.
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
