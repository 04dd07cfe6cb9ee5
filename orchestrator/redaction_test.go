package orchestrator

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestErrorTextsHaveNoSecrets covers failures of any length, also where a cut goes through a secret.
func TestErrorTextsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef0123456789abcdef"
	url := "https://app.example.com/api?code=" + secret
	for _, before := range []int{0, maxMessage - len(url) - 4, maxMessage - 20, 4*maxMessage - 20, 5 * maxMessage} {
		for _, filling := range []string{"x", "a b ", "password=" + secret + " "} {
			text := strings.Repeat(filling, before/len(filling)) + url
			got := failureOf(errors.New(text)).Message
			if strings.Contains(got, secret[:4]) {
				t.Errorf("%d bytes of %q: the secret is left at the end: %q", before, filling, got[max(0, len(got)-80):])
			}
			if len(got) > maxMessage+64 {
				t.Errorf("%d bytes are left of %d", len(got), len(text))
			}
		}
	}
}

// TestEventsFromOutsideHaveNoSecrets: a signal can come from a program without redaction.
func TestEventsFromOutsideHaveNoSecrets(t *testing.T) {
	t.Parallel()
	e := event{Signal: &signalDetails{Reason: "password=abc"}, Failure: &Failure{Message: "password=abc", Code: "password=abc", Stack: "password=abc", Detail: json.RawMessage(`{"password":"abc"}`)},
		Payload: json.RawMessage(`{"password":"abc"}`)}
	got := e.clean()
	text := must(marshal(got))(t)
	if strings.Count(string(text), "abc") != 1 || string(got.Payload) != string(e.Payload) {
		t.Errorf("the event is %s", text)
	}
	if e.Failure.Message != "password=abc" || e.Signal.Reason != "password=abc" {
		t.Error("what it was made of has changed")
	}
}
