package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// editing runs the program with an editor that replaces a text in the file.
func (w *world) editing(t *testing.T, from, to string, args ...string) result {
	t.Helper()
	m, out, errs := w.main(nil)
	m.Edit = func(_ context.Context, name string) error {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), from) {
			t.Errorf("the file has no %q: %s, %v", from, text, err)
		}
		if to == "fail" {
			return errors.New("exit status 1")
		}
		return os.WriteFile(name, []byte(strings.Replace(string(text), from, to, 1)), 0o600)
	}
	code := m.Run(t.Context(), args)
	return result{code, out.String(), errs.String()}
}

// sent returns the message sent in place of that of a dead letter.
func (w *world) sent(t *testing.T, row string) string {
	t.Helper()
	l, err := w.letters.Get(t.Context(), "hmac", row)
	must(t, err)
	return string(l.SentMessage)
}

// A message is edited in lines and sent without the blanks, with its numbers unchanged, or sent from a file
// unchanged. An unchanged or invalid message is not sent.
func TestRetryWithAnEditedMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const big = `{"correlationId":"x","input":{"n":9007199254740993,"days":7}}`
	_, err := w.letters.Add(t.Context(), engine.DeadLetter{Engine: "hmac", MessageID: "m1", InsertedAtUtc: time.Now(), OriginalQueue: "hmac-rotation-queue", OriginalMessage: []byte(big),
		ErrorMessage: "no", LastFailureAtUtc: time.Now(), CorrelationID: "x"})
	must(t, err)
	page, err := w.letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}, CorrelationID: "x"})
	must(t, err)
	row := page.DeadLetters[0].RowKey
	retry := []string{"dlq", "retry", "hmac", row, "--edit"}
	for to, want := range map[string]struct {
		code int
		text string
	}{`"days": 7`: {exitOK, "nothing is sent"}, `"days": `: {exitFailed, "not any more"}, "fail": {exitFailed, "exit status 1"}} {
		check(t, w.editing(t, `"days": 7`, to, retry...), want.code, []string{want.text}, to)
	}
	if got := w.changes(); len(got) != 0 {
		t.Fatalf("something was sent: %q", got)
	}
	check(t, w.editing(t, `"days": 7`, `"days": 8`, retry...), exitOK, []string{"messageId", "Resolved"})
	if got := w.sent(t, row); got != strings.Replace(big, "7}", "8}", 1) {
		t.Errorf("sent %s", got)
	}
	other := w.deadLetter(t, "m2", "no", time.Now())
	w.want(t, exitOK, []string{"Resolved"}, "dlq", "retry", "hmac", other, "--message", file(t, "{ \"a\": 1 }\n"))
	if got := w.sent(t, other); got != "{ \"a\": 1 }\n" {
		t.Errorf("sent %q", got)
	}
}

func TestEditedRetryRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	row := w.deadLetter(t, "m1", "no", time.Now())
	binary, err := json.Marshal("\u0000")
	must(t, err)
	_, err = w.letters.Add(t.Context(), engine.DeadLetter{Engine: "hmac", MessageID: "m2", InsertedAtUtc: time.Unix(1e9, 0), OriginalQueue: "q", OriginalMessage: append(binary, 0xff), ErrorMessage: "no", LastFailureAtUtc: time.Now(), CorrelationID: "y"})
	must(t, err)
	page, err := w.letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}, CorrelationID: "y"})
	must(t, err)
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"--edit":                        {exitUsage, "--edit needs a terminal"},
		"--edit --message x":            {exitUsage, "go without each other"},
		"--message /nowhere":            {exitUsage, "--message: "},
		"--message " + file(t, ""):      {exitUsage, "it is empty"},
		"--message " + file(t, "a\xff"): {exitUsage, "no UTF-8"},
		"--message " + file(t, strings.Repeat("x", maxEdited+1)): {exitUsage, "more than"},
	} {
		w.want(t, want.code, []string{want.text}, append([]string{"dlq", "retry", "hmac", row}, strings.Fields(line)...)...)
	}
	w.want(t, exitUsage, []string{"go without each other"}, "dlq", "retry", "--all", "--engine", "hmac", "--edit")
	w.want(t, exitFailed, []string{"is no text"}, "dlq", "retry", "hmac", page.DeadLetters[0].RowKey, "--edit")
	if got := w.changes(); len(got) != 0 {
		t.Errorf("something was sent: %q", got)
	}
}
