package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// turns returns an orchestrator that waits for a day or the event "decision", or, with changed code, for something
// else.
func (w *world) turns() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("turns", func(ctx *orchestrator.Context, _ string) (string, error) {
		if w.changed.Load() {
			return orchestrator.Event[string](ctx, "another").Await()
		}
		orchestrator.Any(ctx, orchestrator.Timer(ctx, 24*time.Hour), orchestrator.Event[bool](ctx, "decision"))
		return "decided", nil
	})
}

// hmacRun returns an orchestrator of an engine whose dependency is down.
func hmacRun() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("hmac", func(*orchestrator.Context, string) (string, error) {
		return "", errors.New("no line\n\x1b[31mat all")
	})
}

// runID returns the id of an engine's orchestration under a correlation id, "" for none.
func (w *world) runID(name string, m engine.Message) string {
	found, _, err := w.runtime.List(context.Background(), orchestrator.Filter{Prefix: name + "-", CorrelationID: m.CorrelationID}, 1, "")
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0].ID
}

// stall starts an orchestration and lets it stall.
func (w *world) stall(t *testing.T, id string) {
	t.Helper()
	w.changed.Store(false)
	_, err := w.runtime.Run(t.Context(), orchestrator.Start{Orchestrator: "turns", ID: id, CorrelationID: "run-s", Input: []byte(`""`)})
	must(t, err)
	w.changed.Store(true)
	must(t, w.runtime.Raise(t.Context(), id, "other", []byte("1"), ""))
	w.drive(t)
}

// attempt makes a failing attempt of the engine; willRetry means that another one follows.
func (w *world) attempt(t *testing.T, id string, willRetry bool) {
	t.Helper()
	_, err := w.runtime.Run(t.Context(), orchestrator.Start{Orchestrator: "hmac", ID: id, CorrelationID: "run-h", Input: []byte(`""`), WillRetry: willRetry})
	must(t, err)
	w.drive(t)
}

// The output of show begins with the problem of an orchestration: since when, the reason, and the remedy.
func TestShowSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stall(t, "stands")
	w.attempt(t, "hmac-1", true)
	w.attempt(t, "hmac-2", false)
	w.begin(t, "waits", "")
	w.changed.Store(false)
	_, err := w.runtime.Run(t.Context(), orchestrator.Start{Orchestrator: "turns", ID: "sleeps", Input: []byte(`""`)})
	must(t, err)
	for _, test := range []struct {
		id    string
		ahead time.Duration
		first string
		texts []string
		not   string
	}{
		{"stands", 48 * time.Hour, "STALLED since ", []string{"Patched", "goes on by itself", "docs/failures.md"}, "Timer"},
		{"hmac-1", 0, "RETRYING since ", []string{"attempt 1 failed", "\n  no line\n  \uFFFD[31mat all\n", "cancel, or terminate"}, "\x1b"},
		{"hmac-2", 0, "FAILED at ", []string{"in attempt 1", "no line", "rewind"}, "\x1b"},
		{"waits", 48 * time.Hour, "id ", nil, "LATE"},
		{"sleeps", 0, "id ", []string{"waitingUntilUtc"}, "LATE"},
		{"sleeps", 25 * time.Hour, "LATE: it waits for Timer, which was due at ", []string{"The sweeper wakes it"}, "FAILED"},
	} {
		w.ahead.Store(int64(test.ahead))
		w.leave()
		r := w.want(t, 0, test.texts, "orchestration", "show", test.id)
		head, _, _ := strings.Cut(r.out, "\n\n")
		if !strings.HasPrefix(r.out, test.first) || strings.Contains(head, test.not) {
			t.Errorf("%s: %s", test.id, r.out)
		}
		if r := w.want(t, 0, nil, "orchestration", "show", test.id, "-o", "json"); !json.Valid([]byte(r.out)) {
			t.Errorf("%s: %s", test.id, r.out)
		}
	}
}

// Lists, the guard of terminate and the timeline use the same words for a state.
func TestStatesInLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stall(t, "stands")
	w.attempt(t, "hmac-1", true)
	w.attempt(t, "hmac-1", true)
	w.changed.Store(false)
	_, err := w.runtime.Run(t.Context(), orchestrator.Start{Orchestrator: "turns", ID: "sleeps", Input: []byte(`""`)})
	must(t, err)
	w.changed.Store(true)
	must(t, w.list.Flush(t.Context()))
	w.ahead.Store(int64(25 * time.Hour))
	w.leave()
	for _, test := range []struct {
		args  string
		code  int
		texts []string
	}{
		{"orchestration list --status stalled", 0, []string{"stands", "mended code"}},
		{"orchestration list --status Retrying", 0, []string{"hmac-1", "the next attempt"}},
		{"orchestration list --prefix sleeps", 0, []string{"Timer, late"}},
		{"orchestration list --status stuck", 2, []string{"Retrying, Stalled"}},
		{"orchestration rewind stands", 4, []string{"409 OrchestrationActive", "code is mended"}},
		{"orchestration restart hmac-1", 4, []string{"409 OrchestrationActive", "another one follows"}},
		{"orchestration cancel stands", 0, []string{"when its code can go on"}},
		{"orchestration purge hmac-1 --yes", 4, []string{"another one follows"}},
		{"orchestration purge --all --older-than-days 1 --status Stalled --yes", 2, []string{"Completed, Failed"}},
		{"orchestration terminate stands", 4, []string{"before: turns, Stalled, waits for mended code"}},
		{"orchestration terminate sleeps", 4, []string{"waits for Timer until ", "which is late"}},
		{"timeline run-h", 0, []string{"AttemptFailed", "hmac-1, attempt 1: no line", "AttemptBegan", "hmac-1, attempt 2", "Retrying", "waits for the next attempt"}},
	} {
		w.want(t, test.code, test.texts, strings.Fields(test.args)...)
	}
	for args, want := range map[string]string{"__complete orchestration list --status ": "Stalled", "__complete orchestration list --status R": "Retrying"} {
		w.want(t, 0, []string{want}, strings.Split(args, " ")...)
	}
	if r := w.run(t, strings.Split("__complete orchestration purge --status ", " ")...); strings.Contains(r.out, "Stalled") || !strings.Contains(r.out, "Failed") {
		t.Errorf("purge completes %s", r.out)
	}
}

// A wait for a stalled operation reports that once, and continues.
func TestWaitForAStalledOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := 0
	w.refusing(func(rw http.ResponseWriter, _ *http.Request) {
		asked++
		text := `{"status":"Succeeded","data":{"id":"o","status":"Running","error":{"code":"OrchestrationStalled","message":"It cannot go on."}}}`
		if asked > 3 {
			text = `{"status":"Succeeded","data":{"id":"o","status":"Succeeded"}}`
		}
		_, _ = rw.Write([]byte(text))
	})
	r := w.want(t, 0, []string{"It cannot go on.", "Succeeded"}, "operation", "wait", "o")
	if n := strings.Count(r.err, "It cannot go on."); n != 1 || asked != 4 {
		t.Errorf("said %d times, asked %d times: %s", n, asked, r.err)
	}
}
