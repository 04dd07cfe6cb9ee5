package tls_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/pebble"
)

// pipeline returns a process that handles the engine's messages.
func (w *world) pipeline(t *testing.T) *enginetest.World {
	t.Helper()
	return enginetest.New(t, enginetest.Config{Tables: w.tables, Engines: func(enginetest.Stores) []engine.Definition {
		return []engine.Definition{tls.Definition(w.steps(t))}
	}})
}

// handle delivers a message until it is settled, and returns its history.
func (w *world) handle(t *testing.T, p *enginetest.World, correlationID, body string) []engine.Entry {
	t.Helper()
	d := engine.Delivery{Queue: tls.Queue, ID: "m-" + correlationID, Body: []byte(body), DequeueCount: 1}
	if err := p.Process().Handle(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return p.History(tls.Engine, correlationID)
}

// rows returns the operations of a history and their results.
func rows(entries []engine.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Operation+" "+string(e.Status))
	}
	slices.Sort(all) // targets end in any order
	return strings.Join(all, ", ")
}

func message(correlationID, input string) string {
	return fmt.Sprintf(`{"correlationId":%q,"engine":"tls","input":%s}`, correlationID, input)
}

// From the queue message to the history: renewed and served by all, then not due, which is a success with a note.
func TestMessageToHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 2)
	p := w.pipeline(t)
	first := w.handle(t, p, "c1", message("c1", `{"domains":["www.example.com","example.com"]}`))
	if got := rows(first); got != "distribute Succeeded, distribute Succeeded, renew Succeeded" {
		t.Fatalf("history: %s", got)
	}
	for i, target := range w.targets {
		if len(target.Told()) != 1 {
			t.Errorf("target %d was told %d times", i, len(target.Told()))
		}
	}
	second := w.handle(t, p, "c2", message("c2", `{"domains":["www.example.com","example.com"]}`))
	var out tls.RenewOutput
	if err := json.Unmarshal(second[0].Output, &out); err != nil || out.Renewed || !strings.Contains(out.Note, "not due") || rows(second) != rows(first) {
		t.Errorf("not due: %s %+v, %v", rows(second), out, err)
	}
	if dead := p.DeadLetters(tls.Engine); len(dead) != 0 || len(w.targets[0].Told()) != 1 {
		t.Errorf("dead letters %+v, told %d times", dead, len(w.targets[0].Told()))
	}
	w.checkSecret(t, first, second)
}

// A permanent failure is dead-lettered immediately, with the original message and the reason; a target that refuses
// is named, and the others serve the certificate anyway.
func TestMessageToDeadLetter(t *testing.T) {
	t.Parallel()
	cases := []struct {
		what    string
		input   string
		prepare func(w *world)
		says    []string
		history string
	}{
		{"a domain that the authority blocks", `{"domain":"blocked.test"}`, nil, []string{"rejectedIdentifier"}, "renew Failed"},
		{"no domain", `{}`, nil, []string{"domain or domains is missing"}, "renew Failed"},
		{"an unknown field", `{"domian":"www.example.com"}`, nil, []string{"domian"}, "renew Failed"},
		{"a target refuses", `{"domain":"www.example.com"}`, func(w *world) { w.targets[1].Answer(422) }, []string{"1 of 2 targets", "target i1", "422"},
			"distribute Failed, distribute Succeeded, renew Failed, renew Succeeded"},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pebble.Options{Blocked: []string{"blocked.test"}}, 2)
			if c.prepare != nil {
				c.prepare(w)
			}
			body := message("c1", c.input)
			p := w.pipeline(t)
			entries := w.handle(t, p, "c1", body)
			dead := p.DeadLetters(tls.Engine)
			if len(dead) != 1 || string(dead[0].OriginalMessage) != body || dead[0].OriginalQueue != "tls-rotation-queue" || dead[0].DetectedReason != engine.ReasonPermanent {
				t.Fatalf("dead letters: %+v", dead)
			}
			for _, text := range c.says {
				if !strings.Contains(dead[0].ErrorMessage, text) {
					t.Errorf("%q is not in %s", text, dead[0].ErrorMessage)
				}
			}
			if got := rows(entries); got != c.history {
				t.Errorf("history: %s", got)
			}
		})
	}
}

// The next run notifies a target that was left behind, and not the others.
func TestNextRunCatchesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 2)
	p := w.pipeline(t)
	w.targets[1].Answer(422)
	w.handle(t, p, "c1", message("c1", `{"domain":"www.example.com"}`))
	got := w.handle(t, p, "c2", message("c2", `{"domain":"www.example.com"}`))
	if rows(got) != "distribute Succeeded, distribute Succeeded, renew Succeeded" || len(w.targets[0].Told()) != 1 || len(w.targets[1].Told()) != 1 || len(w.versions(t)) != 1 {
		t.Errorf("history: %s", rows(got))
	}
}
