package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
)

const oneLetter = "/api/dlq/hmac/m1-20261126T120000.000000Z"

// withMessage is an API with a dead letter that has a message.
func withMessage(message string, more map[string]any) answers {
	l := letterData(map[string]any{"originalMessage": message})
	for name, value := range more {
		l[name] = value
	}
	return typical().with(answers{oneLetter: l})
}

// hostileMessage is JSON that is meant to do harm, with numbers that no type of Go holds and letters that turn the direction of writing.
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

// What the form sends is what was entered, as one change of what was looked at: numbers as they are, JSON without the blanks of the form,
// text with its own line ends.
func TestEditedAsSent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ original, entered, body string }{
		"JSON":           {`{"n":1}`, "{\r\n  \"n\": 9007199254740993\r\n}", `{"message":"{\"n\":9007199254740993}"}`},
		"text":           {"a\nb", "a\r\nc", `{"message":"a\nc"}`},
		"text with CRLF": {"a\r\nb", "a\r\nc", `{"message":"a\r\nc"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body strings.Builder
			var match string
			api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					match = r.Header.Get("If-Match")
					_ = r.Write(&body)
				}
				withMessage(test.original, nil).with(answers{oneLetter + "/retry-edited": map[string]any{}}).ServeHTTP(w, r)
			})
			rec := send(t, newConsole(t, api, access.Control{EasyAuth: true}), letterM1+"/edit", url.Values{"key": {"k"}, "etag": {"v0"}, "step": {"send"}, "message": {test.entered}})
			if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != letterM1+"?done=edited" || !strings.HasSuffix(body.String(), test.body) || match != "v0" {
				t.Errorf("%d to %s, if %s: %s", rec.Code, rec.Header().Get("Location"), match, body.String())
			}
		})
	}
}

// A diff leads from the one text to the other, is as short as it can be, and leaves out what is the same far from it.
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
