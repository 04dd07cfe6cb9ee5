package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

// answers is an API with an answer for each path: data, or an error.
type answers map[string]any

// document is an answer without an envelope.
type document struct {
	status int
	text   string
}

// refusal is an error answer of the API.
type refusal struct {
	status        int
	code, message string
}

// ServeHTTP implements [http.Handler].
func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := map[string]any{"status": "Succeeded", "correlationId": "request-1"}
	switch data := a[r.URL.Path].(type) {
	case nil:
		w.WriteHeader(http.StatusNotFound)
		body["error"] = map[string]string{"code": "NotFound", "message": "There is nothing at this path."}
	case refusal:
		w.WriteHeader(data.status)
		body["error"] = map[string]string{"code": data.code, "message": data.message}
	case string:
		body["data"] = json.RawMessage(data)
	case document:
		w.WriteHeader(data.status)
		_, _ = w.Write([]byte(data.text))
		return
	default:
		body["data"] = data
	}
	w.Header().Set("ETag", "v1")
	_ = json.NewEncoder(w).Encode(body)
}

func (a answers) with(more answers) answers {
	out := answers{}
	for _, from := range []answers{a, more} {
		for path, data := range from {
			out[path] = data
		}
	}
	return out
}

// someone returns the API's answer about a user with permissions.
func someone(name string, permissions ...access.Permission) map[string]any {
	return map[string]any{"kind": "person", "id": "t/o", "name": name, "permissions": permissions}
}

func operator() map[string]any { return someone("ada@example.com", access.Permissions()...) }

func reader() map[string]any {
	return someone("rita@example.com", access.Reader.Permissions()...)
}

// goldenNow is the time of the pages in golden files.
func goldenNow() time.Time { return time.Date(2026, 11, 26, 14, 0, 0, 0, time.UTC) }

func newConsole(t *testing.T, a http.Handler, control access.Control) *Console {
	t.Helper()
	c, err := New(Config{API: restoring(a), Control: control, Now: goldenNow, NewKey: func() string { return "key-of-the-form" }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// restoring removes the inner encoding from paths, as the program does before it routes.
func restoring(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		urlpath.Restore(r.URL)
		h.ServeHTTP(w, r)
	})
}

func get(t *testing.T, h http.Handler, target string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	r.Host = "localhost"
	for _, c := range change {
		c(r)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

const (
	evil    = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`
	turning = "abc\u202Ecba\u0000\u0007 שלום"
	huge    = `{"n": 9007199254740993, "big": 123456789012345678901234567890, "f": 1.10, "text": "</pre><script>alert(3)</script>"}`
)

func letterData(more map[string]any) map[string]any {
	d := map[string]any{"engine": "hmac", "rowKey": "m1-20261126T120000.000000Z", "instanceId": "instance-1", "originalQueue": "hmac-rotation-queue", "errorMessage": "the vault answered 503",
		"dequeueCount": 5, "status": "Pending", "firstFailureAtUtc": "2026-11-26T12:00:00Z", "lastFailureAtUtc": "2026-11-26T13:59:30Z", "correlationId": "rotation-7",
		"originalMessage": `{"correlationId":"rotation-7","input":{"days":7}}`, "messageId": "m1", "insertedAtUtc": "2026-11-26T11:59:00Z", "detectedReason": "MaxAttempts", "node": "node-a", "errorSignature": "ab12"}
	for name, value := range more {
		d[name] = value
	}
	return d
}

func hostileLetter() map[string]any {
	return letterData(map[string]any{"engine": "hm/../ac", "rowKey": evil + "%2F..", "instanceId": turning, "errorMessage": evil + "\n" + turning, "correlationId": "a/b?c=<d>&" + turning,
		"originalMessage": huge, "messageId": evil, "originalQueue": evil, "errorSignature": evil, "resolutionNotes": evil, "node": turning, "resolvedBy": evil})
}

func list(items ...any) map[string]any { return map[string]any{"items": items} }

func causesData(items ...any) map[string]any {
	return map[string]any{"items": items, "examined": 1000, "complete": len(items) != 1}
}

func causeOf(letter map[string]any) map[string]any {
	return map[string]any{"errorSignature": letter["errorSignature"], "count": 12, "engines": []any{letter["engine"], "tls"}, "firstFailureAtUtc": "2026-11-25T12:00:00Z", "lastFailureAtUtc": "2026-11-26T13:59:30Z", "sample": letter}
}

// typical is an API with some of everything, nothing one without any, hostile one with malicious data.
func typical() answers {
	settled := letterData(map[string]any{"rowKey": "m2-20261126T120000.000000Z", "status": "Resolved", "retriedAtUtc": "2026-11-26T13:00:00Z", "retriedBy": "ada@example.com", "retryMessageId": "m3",
		"resolvedAtUtc": "2026-11-26T13:00:00Z", "resolvedBy": "ada@example.com", "parentRowKey": "m1-20261126T120000.000000Z", "retryCount": 1})
	return answers{
		"/api/me":         operator(),
		"/api/dlq":        map[string]any{"items": []any{letterData(nil), settled}, "continuationToken": "next page"},
		"/api/dlq/counts": list(map[string]any{"engine": "hmac", "pending": 2}, map[string]any{"engine": "tls", "pending": 0}),
		"/api/dlq/groups": causesData(causeOf(letterData(nil))),
		"/api/dlq/hmac/m1-20261126T120000.000000Z": letterData(nil),
		"/api/dlq/hmac/m2-20261126T120000.000000Z": settled,
		"/api/history":         list(map[string]any{"engine": "hmac", "operation": "rotate", "instanceId": "instance-1", "status": "Failed", "durationMs": 1200, "createdAtUtc": "2026-11-26T13:59:30Z"}),
		"/api/orchestrations":  list(map[string]any{"id": "hmac-rotation-9", "orchestrator": "hmac", "updatedAtUtc": "2026-11-26T10:00:00Z"}),
		"/api/workflow/outbox": list(map[string]any{"id": "e1", "eventType": "key.rotated", "createdAt": "2026-11-26T10:00:00Z", "lastErrorSnippet": "status 500", "correlationId": "rotation-7"}),
		"/api/timeline/rotation-7": `{"correlationId": "rotation-7", "truncated": true, "continuationToken": "later", "items": [
			{"id": "1", "atUtc": "2026-11-26T13:00:00Z", "kind": "message", "engine": "hmac", "message": {"orchestrationId": "hmac-rotation-7", "requestId": "m1"}},
			{"id": "2", "atUtc": "2026-11-26T13:00:00Z", "endedAtUtc": "2026-11-26T13:30:00Z", "kind": "orchestration", "engine": "hmac", "orchestration": {"id": "hmac-rotation-7", "status": "Failed", "errorCode": "VaultDown"}},
			{"id": "3", "atUtc": "2026-11-26T13:01:00Z", "endedAtUtc": "2026-11-26T13:30:00Z", "kind": "call", "engine": "hmac", "call": {"type": "Activity", "name": "store", "status": "Failed", "attempts": [
				{"attempt": 1, "beganAtUtc": "2026-11-26T13:01:00Z", "endedAtUtc": "2026-11-26T13:05:00Z", "error": {"message": "status 503"}},
				{"attempt": 2, "beganAtUtc": "2026-11-26T13:10:00Z", "endedAtUtc": "2026-11-26T13:30:00Z", "error": {"message": "status 504"}}]}},
			{"id": "4", "atUtc": "2026-11-26T13:02:00Z", "kind": "task", "engine": "hmac", "task": {"name": "approve", "what": "Created", "status": "Awaited", "assigneeName": "Bo"}},
			{"id": "5", "atUtc": "2026-11-26T13:30:00Z", "kind": "delivery", "engine": "hmac", "delivery": {"eventType": "key.rotated", "destination": "https://example.com", "error": "status 500"}},
			{"id": "6", "atUtc": "2026-11-26T13:31:00Z", "kind": "deadLetter", "engine": "hmac", "deadLetter": {"rowKey": "m1-20261126T120000.000000Z", "status": "Pending", "errorMessage": "the vault answered 503"}},
			{"id": "7", "atUtc": "2026-11-26T13:40:00Z", "kind": "timer", "engine": "hmac", "timer": {"status": "Running"}},
			{"id": "8", "atUtc": "2026-11-26T13:41:00Z", "kind": "newer", "engine": "hmac", "newer": {"status": "Running"}}]}`,
	}
}

func nothing() answers {
	return answers{"/api/me": operator(), "/api/dlq": list(), "/api/dlq/counts": list(), "/api/dlq/groups": causesData(), "/api/history": list(), "/api/orchestrations": list(), "/api/workflow/outbox": list()}
}

func hostile() answers {
	l := hostileLetter()
	return answers{
		"/api/me":                             map[string]any{"kind": "person", "id": evil, "name": evil, "scope": turning, "permissions": access.Permissions()},
		"/api/dlq":                            map[string]any{"items": []any{l}, "continuationToken": evil},
		"/api/dlq/counts":                     list(map[string]any{"engine": evil, "pending": 1}),
		"/api/dlq/groups":                     causesData(causeOf(l)),
		"/api/dlq/hm/../ac/" + evil + "%2F..": l,
		"/api/history":                        list(map[string]any{"engine": evil, "operation": turning, "status": evil, "createdAtUtc": "2026-11-26T13:59:30Z"}),
		"/api/orchestrations":                 list(map[string]any{"id": evil, "orchestrator": turning, "updatedAtUtc": "2026-11-26T10:00:00Z"}),
		"/api/workflow/outbox":                list(map[string]any{"id": evil, "eventType": turning, "createdAt": "2026-11-26T10:00:00Z", "lastErrorSnippet": evil, "correlationId": evil}),
		"/api/timeline/" + evil: list(map[string]any{"atUtc": "2026-11-26T13:00:00Z", "kind": "call", "engine": evil, "call": map[string]any{"type": evil, "name": turning, "status": evil, "attempts": []any{
			map[string]any{"attempt": 1, "beganAtUtc": "0001-01-01T00:00:00Z", "endedAtUtc": "9999-01-01T00:00:00Z", "error": map[string]any{"message": evil}}}}}),
	}
}

const (
	letterM1 = lettersPath + "/hmac/m1-20261126T120000.000000Z"
	letterM2 = lettersPath + "/hmac/m2-20261126T120000.000000Z"
)

// letterPages are the pages of dead letters, and of unknown addresses.
func letterPages() map[string]shown {
	evilLetter := letterLink(Text("hm/../ac"), Text(evil+"%2F.."))
	return map[string]shown{
		"causes_empty":     at(nothing(), causesPath, 200),
		"causes_typical":   at(typical(), causesPath+"?engine=hmac", 200),
		"causes_hostile":   at(hostile(), causesPath+"?status=any", 200),
		"letters_empty":    at(nothing(), lettersPath+"?status=Expired", 200),
		"letters_typical":  at(typical(), lettersPath+"?errorSignature=ab12&continuationToken=x", 200),
		"letters_hostile":  at(hostile(), lettersPath+"?engine=%3Cscript%3E&instanceId=%22%3E%3Cscript%3E&errorSignature=%22", 200),
		"letters_wrong":    at(typical().with(answers{"/api/dlq": refusal{400, "InvalidParameter", "Use a time such as 2026-11-21."}}), lettersPath+"?fromDate=soon", 400),
		"letter_typical":   at(typical(), letterM1, 200),
		"letter_reader":    at(typical().with(answers{"/api/me": reader()}), letterM1, 200),
		"letter_retried":   at(typical(), letterM2+"?done=retried", 200),
		"letter_hostile":   at(hostile(), evilLetter, 200),
		"letter_none":      at(nothing(), letterM1, 404),
		"retry_typical":    at(typical(), letterM1+"/retry", 200),
		"retry_settled":    at(typical(), letterM2+"/retry", 200),
		"retry_reader":     at(typical().with(answers{"/api/me": reader()}), letterM1+"/retry", 200),
		"expire_typical":   at(typical(), letterM1+"/expire", 200),
		"expire_hostile":   at(hostile(), evilLetter+"/expire", 200),
		"timeline_empty":   at(nothing(), timelinePath, 200),
		"timeline_none":    at(nothing(), timelinePath+"?correlationId=nothing", 404),
		"timeline_typical": at(typical(), timelinePath+"?correlationId=rotation-7&continuationToken=x", 200),
		"timeline_hostile": at(hostile(), oneParameter(timelinePath, "correlationId", evil), 200),
		"forbidden":        at(answers{"/api/me": reader(), "/api/dlq": refusal{403, "Forbidden", "you need the permission deadletters.read"}, "/api/dlq/counts": list()}, lettersPath, 403),
		"nowhere":          at(nothing(), Root+"/nothing", 404),
		"outside_easyauth": refusedAt(access.Control{EasyAuth: true}, refusal{401, "Unauthenticated", "nobody is signed in"}),
		"outside_local":    refusedAt(access.Control{Development: true, LocalKey: "k"}, refusal{401, "Unauthenticated", "nobody is signed in: send the key"}),
		"outside_azure":    refusedAt(access.Control{}, refusal{403, "SignInNotConfigured", "the app does not let people sign in"}),
	}
}

// refusedAt is a page for callers who are not signed in, with instructions.
func refusedAt(control access.Control, answer refusal) shown {
	p := at(answers{"/api/me": answer}, lettersPath+"?engine=hmac&status=any", answer.status).refused(answer.code)
	p.control = control
	return p
}

// A large message is cut, with a notice; a deep one is not indented.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		message string
		cut     bool
		most    int
	}{
		"a megabyte":         {`{"text": "` + strings.Repeat("ש<", 1<<19) + `"}`, true, 5 * maxPayload},
		"deep":               {strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000), false, 2 * maxPayload},
		"many small numbers": {strings.Repeat("[", 60) + strings.Repeat("1,", 30_000) + "1" + strings.Repeat("]", 60), false, 2 * maxPayload},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := typical().with(answers{"/api/dlq/hmac/m1-20261126T120000.000000Z": letterData(map[string]any{"originalMessage": test.message})})
			body := get(t, newConsole(t, a, access.Control{}), letterM1).Body.String()
			if len(body) > test.most || strings.Contains(body, "these are its first 64.0 KiB") != test.cut || strings.Contains(body, "\uFFFD") {
				t.Errorf("%d bytes, cut %v", len(body), strings.Contains(body, "these are its first"))
			}
		})
	}
}

// Each level of a document costs a character in every line, so a deep one is shown as it is.
func TestDeepDocuments(t *testing.T) {
	t.Parallel()
	for depth, indented := range map[int]bool{maxDepth: true, maxDepth + 1: false} {
		document := strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth)
		if got := strings.Contains(string(payloadOf(document).Shown), "\n"); got != indented {
			t.Errorf("%d levels: indented %v", depth, got)
		}
	}
}

const oneLetter = "/api/dlq/hmac/m1-20261126T120000.000000Z"

// withMessage is an API with a dead letter with this message.
func withMessage(message string, more map[string]any) answers {
	l := letterData(map[string]any{"originalMessage": message})
	for name, value := range more {
		l[name] = value
	}
	return typical().with(answers{oneLetter: l})
}

// hostileMessage is malicious JSON, with numbers that no type of Go holds and characters that turn the direction of
// writing.
const hostileMessage = `{"n": 9007199254740993, "big": 123456789012345678901234567890, "f": 1.10, "text": "</textarea></pre><script>alert(3)</script>", "name": "שלום ` + "\u202e" + `cba", "quote": "\"'><img src=x onerror=alert(2)>"}`

// editPages are the pages of this file.
func editPages() map[string]shown {
	const original = `{"correlationId":"rotation-7","input":{"days":7,"n":9007199254740993,"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}}`
	refused := withMessage(original, nil).with(answers{oneLetter + "/retry-edited": refusal{422, "InvalidMessage", "The edited message cannot be sent: " + evil + "."}})
	changed := "{\r\n  \"correlationId\": \"rotation-7\",\r\n  \"input\": {\r\n    \"days\": 9007199254740995,\r\n    \"n\": 9007199254740993,\r\n    \"a\": 1,\r\n    \"b\": 2,\r\n    \"c\": 3,\r\n    \"d\": 4,\r\n    \"e\": 5,\r\n    \"f\": 6\r\n  }\r\n}"
	edited := func(a answers, step, message string, status int) shown {
		return at(a, letterM1+"/edit", status).sends(url.Values{"key": {"k"}, "etag": {"v0"}, "step": {step}, "message": {message}})
	}
	evilLetter := letterLink(Text("hm/../ac"), Text(evil+"%2F.."))
	return map[string]shown{
		"edit_typical":  at(typical(), letterM1+"/edit", 200),
		"edit_reader":   at(typical().with(answers{"/api/me": reader()}), letterM1+"/edit", 200),
		"edit_settled":  at(typical(), letterM2+"/edit", 200),
		"edit_hostile":  at(hostile(), evilLetter+"/edit", 200),
		"edit_turning":  at(withMessage(hostileMessage, nil), letterM1+"/edit", 200),
		"edit_secret":   at(withMessage(`{"password":"[redacted]"}`, nil), letterM1+"/edit", 200),
		"edit_text":     at(withMessage("\nthis is not JSON <b>", nil), letterM1+"/edit", 200),
		"edit_unseen":   at(withMessage("no JSON \u202e", nil), letterM1+"/edit", 200),
		"edit_binary":   at(withMessage("/wA=", map[string]any{"originalMessageEncoding": "base64"}), letterM1+"/edit", 200),
		"edit_megabyte": at(withMessage(`{"text": "`+strings.Repeat("ש<", 1<<19)+`"}`, nil), letterM1+"/edit", 200),
		"edit_empty":    at(nothing(), letterM1+"/edit", 404),
		"letter_edited": at(withMessage(`{"a":1}`, map[string]any{"status": "Resolved", "sentMessage": huge, "retriedAtUtc": "2026-11-26T13:00:00Z", "retriedBy": "ada@example.com", "retryMessageId": "m3",
			"resolutionNotes": "Retried with an edited message"}), letterM1+"?done=edited", 200),
		"edit_diff_typical": edited(withMessage(original, nil), "", changed, 200),
		"edit_diff_same":    edited(withMessage(`{"a":1}`, nil), "", "{\r\n  \"a\": 1\r\n}", 200),
		"edit_diff_hostile": edited(withMessage(hostileMessage, nil), "", `{"evil": "`+strings.ReplaceAll(evil, `"`, `\"`)+turning[:3]+`"}`, 200),
		"edit_diff_broken":  edited(withMessage(original, nil), "", "{\n\"a\": 1,\n}", 400),
		"edit_again":        edited(withMessage(original, nil), "edit", `{"a": `+"\n\""+evil+`"}`, 200),
		"edit_refused":      edited(refused, "send", changed, 422),
		"edit_by_reader":    edited(withMessage(original, nil).with(answers{"/api/me": reader()}), "", changed, 403),
	}
}

// The form sends the entered text as one change of the displayed version: numbers as they are, JSON without the blanks
// of the form, text with its own line ends.
func TestEditedAsSent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ original, entered, body string }{
		"JSON":           {`{"n":1}`, "{\r\n  \"n\": 9007199254740993\r\n}", `{"message":"{\"n\":9007199254740993}"}`},
		"text":           {"a\nb", "a\r\nc", `{"message":"a\nc"}`},
		"text with CRLF": {"a\r\nb", "a\r\nc", `{"message":"a\r\nc"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &calls{answers: withMessage(test.original, nil).with(answers{oneLetter + "/retry-edited": map[string]any{}})}
			form := url.Values{"key": {"k"}, "etag": {"v0"}, "step": {"send"}, "message": {test.entered}}
			rec := a.sentBy(t, at(nil, letterM1+"/edit", 303).sends(form), "POST "+oneLetter+`/retry-edited key "k" of "v0": `+test.body)
			if to := rec.Header().Get("Location"); to != letterM1+"?done=edited" {
				t.Errorf("to %s", to)
			}
		})
	}
}

// A diff leads from one text to the other, is as short as possible, and omits equal lines far from it.
func TestDiff(t *testing.T) {
	t.Parallel()
	lines := func(n int, change ...string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = "line"
		}
		return strings.Join(append(all, change...), "\n")
	}
	for name, test := range map[string]struct {
		before, after string
		want          string
		coarse        bool
	}{
		"same":       {"a\nb", "a\nb", "left 2", false},
		"changed":    {"a\nb\nc", "a\nx\nc", "same a, removed b, added x, same c", false},
		"added":      {"a", "a\nb", "same a, added b", false},
		"removed":    {"a\nb", "b", "removed a, same b", false},
		"moved":      {"a\nb\nc", "b\nc\na", "removed a, same b, same c, added a", false},
		"far":        {"1\n2\n3\n4\n5\n6\n7", "1\n2\n3\n4\n5\n6\nx", "left 3, same 4, same 5, same 6, removed 7, added x", false},
		"everything": {"a\n" + lines(2000, "z"), "b\n" + strings.ReplaceAll(lines(2000, "y"), "line", "other"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := diffOf(test.before, test.after)
			var got, before, after []string
			for _, l := range d.Lines {
				text := string(l.Text)
				if l.Kind == "left" {
					text = string(rune('0' + l.Skipped%10))
				}
				got = append(got, l.Kind+" "+text)
				if l.Old > 0 {
					before = append(before, text)
				}
				if l.New > 0 {
					after = append(after, text)
				}
			}
			if d.Coarse != test.coarse || d.Changed != (test.before != test.after) || !test.coarse && strings.Join(got, ", ") != test.want {
				t.Errorf("%q, coarse %v", got, d.Coarse)
			}
			if test.coarse && (strings.Join(before, "\n") != test.before || strings.Join(after, "\n") != test.after) {
				t.Error("it does not lead from the one to the other")
			}
		})
	}
}

// heldPages are the pages of this file.
func heldPages() map[string]shown {
	note := func(text string) map[string]any {
		return map[string]any{"atUtc": "2026-11-26T13:00:00Z", "by": text, "text": text}
	}
	with := func(more map[string]any) answers { return typical().with(answers{oneLetter: letterData(more)}) }
	taken := map[string]any{"assignee": "t/o", "assigneeName": "ada@example.com", "assignedAtUtc": "2026-11-26T13:00:00Z", "notes": []any{note("first\nsecond")}}
	bad := map[string]any{"assignee": evil, "assigneeName": turning, "assignedAtUtc": "9999-01-01T00:00:00Z", "notes": []any{note(evil), note(turning)}}
	return map[string]shown{
		"held_mine":    at(with(taken), letterM1, 200),
		"held_hostile": at(with(bad), letterM1, 200),
		"held_reader":  at(with(taken).with(answers{"/api/me": reader()}), letterM1, 200),
		"held_list":    at(typical().with(answers{"/api/dlq": list(letterData(bad))}), lettersPath+"?assignee=nobody", 200),
		"held_refused": at(with(nil).with(answers{oneLetter + "/notes": refusal{409, "TooManyNotes", "A dead letter has 50 notes at most."}}), letterM1+"/notes", 409).
			sends(url.Values{"key": {"k"}, "note": {evil}}),
	}
}

// selectedPages are the confirmation page of a selection, with any names, and a list with everything selected.
func selectedPages() map[string]shown {
	some := []string{selected{"hmac", "m1-20261126T120000.000000Z"}.Value(), selected{"tls", "m/2%2F"}.Value(), selected{"tls", "m/2%2F"}.Value()}
	many := make([]string, 0, maxSelected)
	for n := range maxSelected {
		many = append(many, selected{"hmac", Text(strings.Repeat("m", n+1))}.Value())
	}
	chosen := func(a answers, action string, rows []string, status int) shown {
		return at(a, selectedPath, status).sends(url.Values{"action": {action}, "row": rows, "filter": {"engine=hmac&status=Pending"}})
	}
	return map[string]shown{
		"selected_empty":   chosen(typical(), "retry", nil, 400),
		"selected_typical": chosen(typical(), "retry", some, 200),
		"selected_expire":  chosen(typical(), "expire", some[:1], 200),
		"selected_many":    chosen(typical(), "retry", many, 200),
		"selected_reader":  chosen(typical().with(answers{"/api/me": reader()}), "retry", some, 200),
		"selected_hostile": chosen(hostile(), "retry", []string{selected{evil, turning}.Value(), selected{"hm/../ac", evil + "%2F.."}.Value()}, 200),
		"letters_selected": at(typical(), lettersPath+"?engine=hmac&select=page&continuationToken=x", 200),
	}
}
