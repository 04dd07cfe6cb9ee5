package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
)

const startStore = startPath + "/store"

// engineData is what the API says of an engine whose input has a schema.
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

// The API gets what was entered, in its own words: what is empty is left out, and numbers stay as they were written.
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
			var got strings.Builder
			a := enginesOf(operator(), engineData(nil)).with(answers{"/api/orchestrations": map[string]any{"id": "a/b", "correlationId": "c-1"}})
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					if r.Header.Get("Idempotency-Key") != "form-1" {
						t.Errorf("key %q", r.Header.Get("Idempotency-Key"))
					}
					var body json.RawMessage
					if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
						t.Error(err)
					}
					got.Write(body)
				}
				a.ServeHTTP(w, r)
			})
			form := url.Values{"key": {"form-1"}}
			for n, v := range test.form {
				form[n] = v
			}
			rec := send(t, newConsole(t, h, access.Control{EasyAuth: true}), startStore+test.query, form)
			if want := orchestrationsPath + "/a%252Fb?done=start"; rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != want && rec.Header().Get("Location") != orchestrationsPath+"/a%2Fb?done=start" {
				t.Errorf("%d to %s: %s", rec.Code, rec.Header().Get("Location"), rec.Body)
			}
			if got.String() != test.want {
				t.Errorf("the API got %s, want %s", got.String(), test.want)
			}
		})
	}
}
