package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

// answers is an API that has an answer for each path: data, or an error.
type answers map[string]any

// document is an answer without an envelope.
type document struct {
	status int
	text   string
}

// refusal is an error that the API answers with.
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

// someone is what the API says of a person with permissions.
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

// restoring takes the inner encoding out of paths, as the program does before it routes.
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

// typical is an API with something of everything, nothing one with nothing, hostile one whose data is meant to do harm.
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

// letterPages are the pages of dead letters, and of addresses that lead nowhere.
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

// refusedAt is a page for callers who are not signed in: it says what to do.
func refusedAt(control access.Control, answer refusal) shown {
	p := at(answers{"/api/me": answer}, lettersPath+"?engine=hmac&status=any", answer.status).refused(answer.code)
	p.control = control
	return p
}

// What is large is cut, and says so; what is deep is not indented.
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

// Each level of a document costs a letter in every line, so a deep one is shown as it came.
func TestDeepDocuments(t *testing.T) {
	t.Parallel()
	for depth, indented := range map[int]bool{maxDepth: true, maxDepth + 1: false} {
		document := strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth)
		if got := strings.Contains(string(payloadOf(document).Shown), "\n"); got != indented {
			t.Errorf("%d levels: indented %v", depth, got)
		}
	}
}

// Numbers are shown as they came, though no type of Go holds them.
func TestNumbersStay(t *testing.T) {
	t.Parallel()
	shown := string(payloadOf(huge).Shown)
	for _, number := range []string{"9007199254740993", "123456789012345678901234567890", "1.10"} {
		if !strings.Contains(shown, number) {
			t.Errorf("%s is not in %s", number, shown)
		}
	}
}
