package console

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/handler/access"
)

const (
	taskT1 = tasksPath + "/store-work-1/1-1"
	// decision is a schema with every kind of form field.
	decision1 = `{"type": "object", "required": ["approved", "action"], "additionalProperties": false, "properties": {
		"approved": {"type": "boolean", "title": "Start the update"},
		"action": {"enum": ["wait", "retire", 3, null], "description": "What is done with the key"},
		"days": {"type": "integer", "minimum": 1, "default": 7},
		"ticket": {"type": "string", "maxLength": 40},
		"notes": {"type": "string", "maxLength": 2000, "default": "none"}}}`
)

// asker is a user with the permissions of one without roles.
func approver() map[string]any {
	p := someone("ada@example.com", access.Participant.Permissions()...)
	p["appRoles"] = []string{"Approver"}
	return p
}

func taskData(more map[string]any) map[string]any {
	d := map[string]any{"orchestrationId": "store-work-1", "taskId": "1-1", "name": "approve update", "engine": "store", "correlationId": "work-1", "status": "Created", "roles": []any{"approver"},
		"createdAtUtc": "2026-11-26T12:00:00Z", "changedAtUtc": "2026-11-26T12:00:00Z", "dueAtUtc": "2026-11-26T13:00:00Z", "payload": map[string]any{"version": 2}, "form": json.RawMessage(decision1),
		"events": []any{map[string]any{"event": "created", "atUtc": "2026-11-26T12:00:00Z", "roles": []any{"owner"}},
			map[string]any{"event": "escalated", "atUtc": "2026-11-26T12:30:00Z", "roles": []any{"approver"}}}}
	for name, value := range more {
		d[name] = value
	}
	return d
}

func heldTask() map[string]any {
	return taskData(map[string]any{"status": "Assigned", "assignee": "t/bo", "assigneeName": "bo@example.com", "dueAtUtc": "2026-11-27T13:00:00Z", "roles": []any{}})
}

func endedTask() map[string]any {
	return taskData(map[string]any{"status": "Completed", "assignee": "t/o", "assigneeName": "ada@example.com", "endedAtUtc": "2026-11-26T13:00:00Z", "endedBy": "t/o", "endedByName": "ada@example.com",
		"output": json.RawMessage(`{"approved":true,"days":9007199254740993}`), "events": []any{
			map[string]any{"event": "completed", "atUtc": "2026-11-26T13:00:00Z", "by": "t/o", "byName": "ada@example.com", "assignee": "t/o", "roles": []any{}, "note": "looks right"}}})
}

func hostileTask() map[string]any {
	schema := `{"type": "object", "required": ["` + `<script>alert(1)` + `"], "properties": {"<script>alert(1)": {"type": "string", "title": "</label><script>alert(2)</script>", "description": "\u202e'\"><img src=x onerror=alert(3)>", "default": "\u202e"},
		"f0": {"enum": ["</option><script>alert(4)</script>", 123456789012345678901234567890]}, "f1": {"type": "number", "default": 9007199254740993}}}`
	return taskData(map[string]any{"orchestrationId": "a/../b?" + evil, "taskId": "1-1", "name": evil + turning, "engine": evil, "correlationId": evil, "tenantId": turning, "status": evil, "roles": []any{evil, turning},
		"assignee": evil, "assigneeName": turning, "payload": json.RawMessage(huge), "form": json.RawMessage(schema), "events": []any{
			map[string]any{"event": evil, "atUtc": "0001-01-01T00:00:00Z", "byName": evil, "assigneeName": turning, "roles": []any{evil}, "note": evil + turning}}})
}

func tasksOf(who map[string]any, task map[string]any) answers {
	link := strings.TrimPrefix(row("tasks", task["orchestrationId"].(string), "1-1"), "")
	path, err := url.PathUnescape(link)
	if err != nil {
		panic(err)
	}
	return answers{"/api/me": who, "/api/tasks": map[string]any{"items": []any{task}, "continuationToken": "next page"}, path: task}
}

// taskPages are the pages of this file.
func taskPages() map[string]shown {
	form := url.Values{"key": {"key-that-was-sent"}, "etag": {"v0"}, "f0": {"1"}, "f1": {"2"}, "f2": {"9007199254740993"}, "f3": {"T-1"}, "f4": {"first\r\nsecond <b>"}, "note": {"seen & done"}}
	few := url.Values{"f2": {"many"}, "f1": {"17"}, "f4": {"kept"}}
	refused := func(by refusal, act string, form url.Values) shown {
		path, _, _ := strings.Cut(act, "?")
		return at(tasksOf(approver(), taskData(nil)).with(answers{"/api/tasks/store-work-1/1-1/" + path: by}), taskT1+"/"+act, by.status).refused(by.code).sends(form)
	}
	open := taskData(map[string]any{"status": "Assigned", "assignee": "t/o", "assigneeName": "ada@example.com"})
	strange := hostileTask()
	strange["status"] = "Created"
	evilTask := taskItem{OrchestrationID: Text("a/../b?" + evil), TaskID: "1-1"}.Link()
	none := answers{"/api/me": approver(), "/api/tasks": list()}
	return map[string]shown{
		"tasks_empty":           at(none, tasksPath, 200),
		"tasks_claim":           at(none, tasksPath+"?view=claim", 200),
		"tasks_typical":         at(tasksOf(approver(), open), tasksPath+"?view=all&status=Assigned&continuationToken=x", 200),
		"tasks_hostile":         at(tasksOf(approver(), hostileTask()), tasksPath+"?view=%3Cscript%3E&role=%22%3E%3Cscript%3E", 200),
		"tasks_wrong":           at(none.with(answers{"/api/tasks": refusal{400, "InvalidParameter", "dueBefore: use a time."}}), tasksPath+"?dueBefore=soon", 400),
		"task_typical":          at(tasksOf(approver(), taskData(nil)), taskT1+"?done=released", 200),
		"task_held":             at(tasksOf(approver(), heldTask()), taskT1, 200),
		"task_ended":            at(tasksOf(approver(), endedTask()), taskT1, 200),
		"task_hostile":          at(tasksOf(hostile()["/api/me"].(map[string]any), hostileTask()), evilTask+"?done=%3Cscript%3E", 200),
		"task_none":             at(none, taskT1, 404),
		"task_claim":            at(tasksOf(approver(), taskData(nil)), taskT1+"/claim", 200),
		"task_release":          at(tasksOf(approver(), open), taskT1+"/release", 200),
		"task_assign":           at(tasksOf(approver(), open), taskT1+"/assign", 200),
		"task_assign_blocked":   at(tasksOf(approver(), heldTask()), taskT1+"/assign", 200),
		"task_complete":         at(tasksOf(approver(), open), taskT1+"/complete", 200),
		"task_complete_json":    at(tasksOf(approver(), open), taskT1+"/complete?as=json", 200),
		"task_complete_any":     at(tasksOf(approver(), taskData(map[string]any{"form": nil, "payload": nil})), taskT1+"/complete", 200),
		"task_complete_schema":  at(tasksOf(approver(), taskData(map[string]any{"form": json.RawMessage(`{"type": "array"}`)})), taskT1+"/complete", 200),
		"task_complete_hostile": at(tasksOf(operator(), strange), evilTask+"/complete", 200),
		"task_refused_answer":   refused(refusal{422, "InvalidTaskOutput", "the task's form does not allow it"}, "complete", form),
		"task_refused_taken":    refused(refusal{409, "TaskTaken", "The task is Assigned since 2026-11-26T13:00:00Z, by bo@example.com."}, "claim", form),
		"task_refused_changed":  refused(refusal{412, "PreconditionFailed", "The task is not any more what If-Match names."}, "complete", form),
		"task_refused_here":     refused(refusal{422, "InvalidTaskOutput", ""}, "complete", few),
		"task_refused_json":     refused(refusal{422, "InvalidTaskOutput", ""}, "complete?as=json", url.Values{"output": {"not </textarea><b> JSON"}}),
		"task_refused_assignee": refused(refusal{400, "InvalidParameter", "assignee: Say to whom the task is given."}, "assign", url.Values{"assigneeName": {"Bo"}, "note": {"why"}}),
	}
}

// send sends a form to a console like its own page.
func send(t *testing.T, h http.Handler, target string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	return sendBody(t, h, target, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

func sendBody(t *testing.T, h http.Handler, target, contentType string, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, body)
	r.Host = "app.example"
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	rec := httptest.NewRecorder()
	restoring(h).ServeHTTP(rec, r)
	return rec
}

// The largest answer that the API accepts fits a form, in any encoding; a larger one is refused without a request.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{64 << 10: http.StatusSeeOther, 300 << 10: http.StatusBadRequest} {
		a := tasksOf(approver(), taskData(nil)).with(answers{"/api/tasks/store-work-1/1-1/complete": map[string]any{}})
		output := `"` + strings.Repeat("é", size/2-1) + `"`
		rec := send(t, newConsole(t, a, access.Control{EasyAuth: true}), taskT1+"/complete?as=json", url.Values{"output": {output}})
		if rec.Code != want {
			t.Errorf("%d bytes: %d", len(output), rec.Code)
		}
	}
}

// The input becomes JSON of the schema's types, numbers as written, and empty values are omitted.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		form url.Values
		want string // "" for an error
	}{
		"everything":    {url.Values{"f0": {"1"}, "f1": {"2"}, "f2": {" 9007199254740993 "}, "f3": {"a\"b"}, "f4": {"x\r\ny"}}, `{"approved":false,"action":3,"days":9007199254740993,"ticket":"a\"b","notes":"x\ny"}`},
		"nothing":       {url.Values{}, `{}`},
		"yes":           {url.Values{"f0": {"0"}, "f1": {"3"}}, `{"approved":true,"action":null}`},
		"a choice less": {url.Values{"f0": {"2"}}, ""},
		"no number":     {url.Values{"f2": {"7, 8"}}, ""},
		"a truth value": {url.Values{"f2": {"true"}}, ""},
		"only a blank":  {url.Values{"f2": {" "}}, ""},
	} {
		fields, ok := fieldsOf(json.RawMessage(decision1))
		if !ok {
			t.Fatal("no form")
		}
		enter(fields, test.form)
		got, ok := documentOf(fields)
		if ok != (test.want != "") || ok && string(got) != test.want {
			t.Errorf("%s: %s, %v", name, got, ok)
		}
	}
}

// A form is made only of supported schemas.
func TestForm(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(`"a": {"type": "string"}, `, 3)
	for schema, want := range map[string][]string{
		`{"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "number"}, "c": {"type": "string", "maxLength": 9}, "d": {"type": "boolean"}}}`: {"text b", "number a", "line c", "choice d"},
		`{"type": "object", "properties": {` + many + `"b": {"type": "integer"}}}`:                                                                                {"text a", "number b"},
		``:                   nil,
		`true`:               nil,
		`{}`:                 nil,
		`{"type": "object"}`: nil,
		`{"type": "array", "properties": {"a": {"type": "string"}}}`:                     nil,
		`{"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": []}`:       nil,
		`{"type": "object", "properties": {"a": {"type": "string", "not": {}}}}`:         nil,
		`{"type": "object", "properties": {"a": {"type": ["string", "null"]}}}`:          nil,
		`{"type": "object", "properties": {"a": {"type": "object"}}}`:                    nil,
		`{"type": "object", "properties": {"a": {"enum": [{"x": 1}]}}}`:                  nil,
		`{"type": "object", "properties": {"a": {"$ref": "#"}}}`:                         nil,
		`{"type": "object", "properties": {"a": true}}`:                                  nil,
		`{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}`: nil,
		`{"type": "object", "properties": {` + manyFields(maxFields+1) + `}}`:            nil,
	} {
		fields, ok := fieldsOf(json.RawMessage(schema))
		var got []string
		for _, f := range fields {
			got = append(got, f.Kind+" "+string(f.Label))
		}
		if diff := cmp.Diff(want, got); diff != "" || ok != (want != nil) {
			t.Errorf("%.100s: %v %s", schema, ok, diff)
		}
	}
}

func manyFields(n int) string {
	var all []string
	for range n {
		all = append(all, `"`+strings.Repeat("a", len(all)+1)+`": {"type": "string"}`)
	}
	return strings.Join(all, ",")
}

const startStore = startPath + "/store"

// engineData is the API's answer about an engine whose input has a schema.
func engineData(more map[string]any) map[string]any {
	d := map[string]any{"name": "store", "queue": "store-queue", "function": "store-queue-trigger", "version": "2", "operations": []any{"keep", "notify"}, "singleton": "tenant", "maxAttempts": 5, "keep": "720h0m0s",
		"inputSchema": json.RawMessage(decision1), "example": map[string]any{"operation": "keep", "instanceId": "instance-1", "tenantId": "contoso", "input": json.RawMessage(`{"days":9007199254740993}`)}}
	for name, value := range more {
		d[name] = value
	}
	return d
}

func enginesOf(who map[string]any, engines ...any) answers {
	return answers{"/api/me": who, "/api/engines": map[string]any{"engines": engines, "names": []any{"store"}}}
}

func hostileEngine() map[string]any {
	schema := hostileTask()["form"]
	return engineData(map[string]any{"name": evil, "queue": turning, "version": evil, "operations": []any{evil, turning}, "singleton": evil, "inputSchema": schema,
		"example": map[string]any{"operation": evil, "instanceId": turning, "tenantId": evil, "input": json.RawMessage(huge)}})
}

// startPages are the pages of this file.
func startPages() map[string]shown {
	form := url.Values{"key": {"key-that-was-sent"}, "operation": {"keep"}, "instanceId": {"i & 1"}, "tenantId": {"contoso"}, "correlationId": {"<b>"}, "f0": {"1"}, "f1": {"2"}, "f2": {"9007199254740993"}}
	refused := func(by refusal, form url.Values, query string) shown {
		return at(enginesOf(operator(), engineData(nil)).with(answers{"/api/orchestrations": by}), startStore+query, by.status).refused(by.code).sends(form)
	}
	plain := engineData(map[string]any{"inputSchema": nil, "singleton": ""})
	bare := engineData(map[string]any{"inputSchema": json.RawMessage(`{"type": "array"}`), "singleton": "instance", "example": nil})
	evilEngine := engineItem{Name: Text(evil)}.Link()
	return map[string]shown{
		"start_empty":            at(enginesOf(operator()), startPath, 200),
		"start_typical":          at(enginesOf(operator(), engineData(nil), plain, bare), startPath, 200),
		"start_reader":           at(enginesOf(reader(), engineData(nil)), startPath, 200),
		"start_hostile":          at(enginesOf(operator(), hostileEngine()), startPath, 200),
		"startform_typical":      at(enginesOf(operator(), engineData(nil)), startStore, 200),
		"startform_json":         at(enginesOf(operator(), engineData(nil)), startStore+"?as=json", 200),
		"startform_any":          at(enginesOf(operator(), plain), startStore, 200),
		"startform_schema":       at(enginesOf(operator(), bare), startStore, 200),
		"startform_reader":       at(enginesOf(reader(), engineData(nil)), startStore, 200),
		"startform_hostile":      at(enginesOf(operator(), hostileEngine()), evilEngine, 200),
		"startform_hostile_any":  at(enginesOf(operator(), hostileEngine()), evilEngine+"?as=json", 200),
		"startform_none":         at(enginesOf(operator()), startStore, 404),
		"startform_refused":      refused(refusal{409, "InstanceLocked", "Another run has the instance."}, form, ""),
		"startform_refused_key":  refused(refusal{422, keyReused, "The Idempotency-Key belongs to another request."}, form, ""),
		"startform_refused_here": refused(refusal{422, "InvalidRequestBody", ""}, url.Values{"f2": {"many"}, "f4": {"kept"}}, ""),
		"startform_refused_json": refused(refusal{422, "InvalidRequestBody", ""}, url.Values{"input": {"not </textarea><b> JSON"}}, "?as=json"),
	}
}

// The API receives the input in its own form: empty values are omitted, and numbers stay as written.
func TestStartBody(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		query string
		form  url.Values
		want  string
	}{
		"everything": {"", url.Values{"operation": {"keep"}, "instanceId": {"i-1"}, "tenantId": {"contoso"}, "correlationId": {"c-1"}, "f0": {"0"}, "f2": {"9007199254740993"}},
			`{"correlationId":"c-1","input":{"input":{"approved":true,"days":9007199254740993},"instanceId":"i-1","operation":"keep","tenantId":"contoso"},"orchestrator":"store"}`},
		"nothing":       {"", url.Values{}, `{"input":{"input":{}},"orchestrator":"store"}`},
		"JSON":          {"?as=json", url.Values{"input": {" [123456789012345678901234567890] "}}, `{"input":{"input":[123456789012345678901234567890]},"orchestrator":"store"}`},
		"no JSON given": {"?as=json", url.Values{"input": {""}}, `{"input":{},"orchestrator":"store"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &calls{answers: enginesOf(operator(), engineData(nil)).with(answers{"/api/orchestrations": map[string]any{"id": "a/b", "correlationId": "c-1"}})}
			test.form.Set("key", "form-1")
			rec := a.sentBy(t, at(nil, startStore+test.query, 303).sends(test.form), `POST /api/orchestrations key "form-1" of "": `+test.want)
			if to := rec.Header().Get("Location"); to != orchestrationsPath+"/a%252Fb?done=start" && to != orchestrationsPath+"/a%2Fb?done=start" {
				t.Errorf("to %s", to)
			}
		})
	}
}

func nodesData(more ...any) map[string]any {
	return map[string]any{"continuationToken": "next page", "items": append([]any{
		map[string]any{"node": "node-b", "host": "worker-2/17", "version": "8f1c2e", "state": "alive", "sinceUtc": "2026-11-26T10:00:00Z", "seenUtc": "2026-11-26T13:59:50Z", "inHand": 3},
		map[string]any{"node": "node-a", "host": "worker-1/17", "version": "7d0b1a", "state": "taken", "sinceUtc": "2026-11-26T08:00:00Z", "seenUtc": "2026-11-26T09:00:00Z", "takenBy": "node-b", "takenAtUtc": "2026-11-26T10:01:00Z"},
	}, more...)}
}

func auditData(more map[string]any) map[string]any {
	d := map[string]any{"id": "1", "atUtc": "2026-11-26T13:00:00Z", "principal": "t/o", "name": "ada@example.com", "kind": "person", "permission": "tasks.act", "action": "complete", "target": "tasks/store-work-1/1-1",
		"door": "https", "outcome": "Done", "before": "Assigned, t/o", "after": "Completed", "reason": "looks right"}
	for name, value := range more {
		d[name] = value
	}
	return d
}

func scheduleData(more map[string]any) map[string]any {
	d := map[string]any{"engine": "store", "schedule": "nightly", "item": "blue", "cron": "0 0 3 * * *", "source": "engine", "spread": "1h0m0s", "nextAtUtc": "2026-11-27T03:00:00Z", "dueAtUtc": "2026-11-26T03:00:00Z",
		"sentAtUtc": "2026-11-26T03:00:02Z", "messages": 2, "correlationId": "work-1", "result": "Succeeded"}
	for name, value := range more {
		d[name] = value
	}
	return d
}

func instanceData(more map[string]any) map[string]any {
	d := map[string]any{"instanceId": "blue-1", "tenantId": "blue", "ring": "canary", "version": "2.1", "registryVersion": 9007199254740993, "lock": map[string]any{"held": false},
		"document": map[string]any{"instanceId": "blue-1", "version": "2.1"}}
	for name, value := range more {
		d[name] = value
	}
	return d
}

func drainedInstance() map[string]any {
	return instanceData(map[string]any{"own": true, "tablesInUse": map[string]any{"history": "history"}, "lock": map[string]any{"held": true, "jobId": "drain/t/o", "drainedBy": "t/o", "untilUtc": "2026-11-26T15:00:00Z"}})
}

// platformPages are the pages of this file.
func platformPages() map[string]shown {
	evilSchedule := scheduleData(map[string]any{"engine": "a/../b", "schedule": evil, "item": turning, "cron": evil, "source": evil, "spread": evil, "correlationId": evil, "result": evil, "error": turning, "failures": 3})
	evilInstance := instanceData(map[string]any{"instanceId": "a/../b?" + evil, "tenantId": turning, "ring": evil, "version": turning, "damaged": evil, "lock": map[string]any{"held": true, "jobId": evil, "untilUtc": "9999-01-01T00:00:00Z"},
		"document": map[string]any{"n": turning, "text": evil}})
	missed := scheduleData(map[string]any{"item": "", "schedule": "", "nextAtUtc": "2026-11-26T13:57:00Z", "error": "the queue answered 503", "failures": 2, "retryAtUtc": "2026-11-26T14:01:00Z", "result": "DeadLetter"})
	never := scheduleData(map[string]any{"schedule": "off", "nextAtUtc": nil, "sentAtUtc": nil, "messages": 0, "correlationId": "", "result": ""})
	api := answers{"/api/me": operator(), "/api/schedules": map[string]any{"items": []any{scheduleData(nil), missed, never}, "continuationToken": "next page"},
		"/api/registry": map[string]any{"items": []any{instanceData(nil), drainedInstance()}, "continuationToken": "next page"}, "/api/registry/blue-1": instanceData(nil), "/api/registry/own": drainedInstance()}
	none := answers{"/api/me": operator(), "/api/schedules": list(), "/api/registry": list()}
	bad := answers{"/api/me": operator(), "/api/schedules": list(evilSchedule), "/api/registry": list(evilInstance), "/api/registry/a/../b?" + evil: evilInstance}
	readers := api.with(answers{"/api/me": reader()})
	evilLink := instanceItem{InstanceID: Text("a/../b?" + evil)}.Link()
	return map[string]shown{
		"schedules_empty":   at(none, schedulesPath, 200),
		"schedules_typical": at(api, schedulesPath+"?engine=store&done=run&correlationId=work-1&continuationToken=x", 200),
		"schedules_reader":  at(readers, schedulesPath, 200),
		"schedules_hostile": at(bad, schedulesPath+"?item=%22%3E%3Cscript%3E", 200),
		"schedules_wrong":   at(api.with(answers{"/api/schedules": refusal{400, "InvalidParameter", "engine: Use one of store."}}), schedulesPath+"?engine=x", 400),
		"run_typical":       at(api, scheduleItem{Engine: "store", Schedule: "nightly", Item: "blue"}.Run(), 200),
		"run_reader":        at(readers, scheduleItem{Engine: "store"}.Run(), 200),
		"run_hostile":       at(bad, scheduleItem{Engine: "a/../b", Schedule: evil, Item: turning}.Run(), 200),
		"run_none":          at(api, scheduleItem{Engine: "store", Schedule: "weekly"}.Run(), 404),
		"registry_empty":    at(none, registryPath, 200),
		"registry_typical":  at(api, registryPath+"?locked=true&continuationToken=x", 200),
		"registry_hostile":  at(bad, registryPath+"?ring=%22%3E%3Cscript%3E", 200),
		"registry_wrong":    at(api.with(answers{"/api/registry": refusal{400, "InvalidParameter", "locked: Use one of true, false."}}), registryPath+"?locked=x", 400),
		"instance_typical":  at(api, registryPath+"/blue-1?done=resumed", 200),
		"instance_drained":  at(api, registryPath+"/own", 200),
		"instance_reader":   at(readers, registryPath+"/own", 200),
		"instance_hostile":  at(bad, evilLink, 200),
		"drain_typical":     at(api, registryPath+"/blue-1/drain", 200),
		"drain_reader":      at(readers, registryPath+"/blue-1/drain", 200),
		"drain_hostile":     at(bad, evilLink+"/drain", 200),
		"resume_typical":    at(api, registryPath+"/own/resume", 200),
		"resume_hostile":    at(bad, evilLink+"/resume", 200),
	}
}

// ownPages are the pages of this file.
func ownPages() map[string]shown {
	who := operator()
	who["appRoles"], who["roles"], who["tenantId"] = []string{"Roundhouse.Administrator"}, []string{"administrator"}, "home"
	many := approver()
	many["groupsMissing"], many["scope"] = true, "red"
	evilNode := map[string]any{"node": evil, "host": turning, "version": evil, "state": evil, "takenBy": turning, "sinceUtc": "0001-01-01T00:00:00Z"}
	evilMe := map[string]any{"kind": evil, "id": evil, "name": turning, "scope": evil, "tenantId": evil, "roles": []any{evil}, "appRoles": []any{turning}, "permissions": access.Permissions()}
	evilEntry := map[string]any{"principal": evil, "name": turning, "kind": evil, "permission": evil, "action": evil, "target": evil, "door": evil, "tenantId": turning, "outcome": evil, "before": evil, "after": turning, "reason": evil}
	return map[string]shown{
		"me_typical":    at(answers{"/api/me": who, "/api/nodes": nodesData()}, mePath, 200),
		"me_empty":      at(answers{"/api/me": who, "/api/nodes": list()}, mePath+"?continuationToken=x", 200),
		"me_scoped":     at(answers{"/api/me": many}, mePath, 200),
		"me_hostile":    at(answers{"/api/me": evilMe, "/api/nodes": nodesData(evilNode)}, mePath, 200),
		"audit_empty":   at(answers{"/api/me": who, "/api/audit": list()}, auditPath, 200),
		"audit_typical": at(answers{"/api/me": who, "/api/audit": map[string]any{"items": []any{auditData(nil), auditData(map[string]any{"outcome": "Refused", "before": "", "after": "", "permission": ""})}, "continuationToken": "next"}}, auditPath+"?target=tasks%2Fx&continuationToken=x", 200),
		"audit_hostile": at(answers{"/api/me": who, "/api/audit": list(auditData(evilEntry))}, auditPath+"?principal=%22%3E%3Cscript%3E", 200),
		"audit_wrong":   at(answers{"/api/me": who, "/api/audit": refusal{400, "InvalidParameter", "principal: Use either target or principal."}}, auditPath+"?principal=a&target=b", 400),
	}
}

// Each permission has a meaning, and nothing else has one.
func TestPermissionsHaveMeanings(t *testing.T) {
	t.Parallel()
	for _, p := range access.Permissions() {
		if strings.TrimSpace(meanings()[p]) == "" {
			t.Errorf("%s means nothing", p)
		}
	}
	for p := range meanings() {
		if !slices.Contains(access.Permissions(), p) {
			t.Errorf("%s is no permission", p)
		}
	}
}

func pollerData(more map[string]any) map[string]any {
	d := map[string]any{"name": "orders", "condition": "idle", "defined": true, "place": `2026-11-26T13:59:00Z {"id":9007199254740993}`, "seenAtUtc": "2026-11-26T13:59:50Z",
		"source":    map[string]any{"dialect": "postgres", "sourceId": "shop", "object": "public.orders", "cursor": "updated_at", "keys": []any{"id"}, "bound": "settle"},
		"lastBatch": map[string]any{"id": "batch_1", "rows": 7, "atUtc": "2026-11-26T13:59:10Z"}, "lease": map[string]any{"live": false, "token": 9007199254740993},
		"process":    map[string]any{"ticks": 12, "failures": 2, "rows": 70, "quarantined": 1, "batchSize": 100, "lagSeconds": 90.5, "lastSuccessAtUtc": "2026-11-26T13:59:10Z", "heldBack": ""},
		"quarantine": map[string]any{"rows": 70, "quarantined": 1},
		"settings": map[string]any{"schedule": "*/10 * * * * *", "function": "poller-orders-timer", "state": "blob", "connection": map[string]any{"setting": "ORDERS_DSN", "secret": ""},
			"definition": map[string]any{"dialect": "postgres", "object": "public.orders"}, "engine": map[string]any{"engine": "update", "instanceColumn": "instance_id"}, "leaseTtl": "2m0s", "quarantines": true},
		"document": map[string]any{"version": 1, "poller_name": "orders"}}
	for name, value := range more {
		d[name] = value
	}
	return d
}

// failingPoller is a poller without its database, and stoppedPoller one whose handler rejects everything, on a node
// that works on it.
func failingPoller() map[string]any {
	const away = "fetch postgres public.orders: the database cannot be reached: check host, port and network"
	return pollerData(map[string]any{"condition": "failing", "problem": away, "failure": map[string]any{"of": "tick", "error": away, "ticks": 144, "firstAtUtc": "2026-11-26T13:00:00Z", "lastAtUtc": "2026-11-26T13:59:50Z"}})
}

func stoppedPoller() map[string]any {
	return pollerData(map[string]any{"name": "parts", "condition": "stopped", "problem": "the engine is away", "lease": map[string]any{"live": true, "owner": "node-a/1f", "token": 42, "untilUtc": "2026-11-26T14:01:00Z"},
		"failure":  map[string]any{"of": "batch", "error": "the engine is away", "attempts": 6, "rows": 1, "stopped": true, "firstAtUtc": "2026-11-26T13:00:00Z", "lastAtUtc": "2026-11-26T13:59:50Z", "nextAtUtc": "2026-11-26T14:10:00Z"},
		"backfill": map[string]any{"end": "99", "done": false}})
}

// pollerPages are the pages of pollers, and of each change of one.
func pollerPages() map[string]shown {
	fresh := map[string]any{"name": "fresh", "condition": "new", "defined": true, "place": "the beginning", "lease": map[string]any{"live": false, "token": 0}}
	damaged := map[string]any{"name": "damaged", "condition": "damaged", "problem": "state document damaged", "defined": false, "place": "the beginning", "lease": map[string]any{"live": false, "token": 0}}
	const name = "a/../b?" + evil
	hostile := pollerData(map[string]any{"name": name, "condition": evil, "problem": evil + turning, "place": turning, "lease": map[string]any{"live": true, "owner": evil, "token": -1, "untilUtc": "9999-01-01T00:00:00Z"},
		"source": map[string]any{"dialect": evil, "sourceId": turning, "object": evil, "cursor": evil, "keys": []any{evil, turning}, "bound": evil}, "lastBatch": map[string]any{"id": evil, "rows": -1, "atUtc": "0001-01-01T00:00:00Z"},
		"failure": map[string]any{"of": evil, "error": evil, "ticks": 3, "firstAtUtc": "2026-11-26T13:00:00Z", "lastAtUtc": "2026-11-26T13:00:00Z"}, "process": map[string]any{"heldBack": turning, "lagSeconds": -1e300},
		"settings": map[string]any{"schedule": evil, "function": evil, "state": evil, "connection": map[string]any{"setting": evil, "secret": turning}, "definition": map[string]any{"query": evil}, "outbox": map[string]any{"eventType": evil, "tenantId": turning, "tenantColumn": evil, "ordered": true}},
		"backfill": map[string]any{"end": evil}, "document": map[string]any{"n": huge, "text": turning}})
	api := answers{"/api/me": operator(), "/api/pollers": map[string]any{"items": []any{damaged, fresh, failingPoller(), stoppedPoller()}, "continuationToken": "next page"}, "/api/pollers/orders": pollerData(nil),
		"/api/pollers/failing": failingPoller(), "/api/pollers/parts": stoppedPoller(), "/api/pollers/fresh": fresh, "/api/pollers/damaged": damaged,
		"/api/pollers/orders/lag":  map[string]any{"place": "7", "end": "9", "caughtUp": false, "behindSeconds": 1798, "heldBack": "a transaction is open since 13:50"},
		"/api/pollers/failing/lag": refusal{503, "SourceUnavailable", "The database cannot be reached: check host, port and network."},
		"/api/pollers/" + name:     hostile, "/api/pollers/" + name + "/lag": map[string]any{"place": evil, "end": turning, "heldBack": evil}}
	none := answers{"/api/me": operator(), "/api/pollers": list()}
	readers := api.with(answers{"/api/me": reader()})
	evilLink := pollerItem{Name: name}.Link()
	pages := map[string]shown{
		"pollers_empty":                  at(none, pollersPath, 200),
		"pollers_typical":                at(api, pollersPath+"?continuationToken=x", 200),
		"pollers_hostile":                at(api.with(answers{"/api/pollers": list(hostile)}), pollersPath, 200),
		"pollers_wrong":                  at(api.with(answers{"/api/pollers": refusal{400, "InvalidContinuationToken", "The continuation token does not belong to this query."}}), pollersPath+"?continuationToken=y", 400),
		"poller_typical":                 at(api, pollersPath+"/orders?lag=now&done=reset-to-cursor", 200),
		"poller_failing":                 at(api, pollersPath+"/failing?lag=now", 200),
		"poller_stopped":                 at(api, pollersPath+"/parts", 200),
		"poller_empty":                   at(api, pollersPath+"/fresh", 200),
		"poller_damaged":                 at(api, pollersPath+"/damaged", 200),
		"poller_reader":                  at(readers, pollersPath+"/orders", 200),
		"poller_hostile":                 at(api, evilLink+"?lag=now", 200),
		"poller_none":                    at(api, pollersPath+"/nobody", 404),
		"poller_retire_live":             at(api, pollersPath+"/parts/retire", 200),
		"poller_retire_refused":          at(api, pollersPath+"/fresh/retire", 200),
		"poller_retire_reader":           at(readers, pollersPath+"/orders/retire", 200),
		"poller_reset-to-cursor_hostile": at(api, evilLink+"/reset-to-cursor", 200),
	}
	for _, a := range pollerActs() {
		pages["poller_"+a.name+"_typical"] = at(api, pollersPath+"/orders/"+a.name, 200)
	}
	return pages
}
