package orchestrator

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// An exported history shows the same as the runtime, for any orchestration, and a redacted export can be replayed.
func TestOpenHistory(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios() {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s.drive(t, w, &ledger{})
			orchestrators, activities := s.make(&ledger{})
			rt := w.signalling(t, nil, orchestrators, activities)
			text := must(rt.ExportRedacted(t.Context(), "a"))(t)
			if err := Replay(orchestrators[0], text); err != nil {
				t.Errorf("%s: replay: %v", name, err)
			}
			in := must(rt.Inspect(t.Context(), "a"))(t)
			h, err := OpenHistory(text)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if h.Outcome.Status != in.Outcome.Status || !bytes.Equal(h.Outcome.Output, in.Outcome.Output) || len(h.Outcome.Calls) != len(in.Outcome.Calls) || h.CorrelationID != in.CorrelationID {
				t.Errorf("%s: %+v, want %+v", name, h.Outcome, in.Outcome)
			}
			latest := h.Rounds[len(h.Rounds)-len(in.Rounds):]
			if diff := cmp.Diff(in.Rounds, latest, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(RoundEvent{}, "InBlob"), cmpopts.IgnoreFields(Failure{}, "Stack")); diff != "" {
				t.Errorf("%s: rounds (-stored +exported):\n%s", name, diff)
			}
			if got := h.Summary(); got.Status != in.Status || got.Execution != in.Execution || got.Ended() != in.Ended() || !got.EndedAt.Equal(in.EndedAt) {
				t.Errorf("%s: %+v, want %+v", name, got, in.Summary)
			}
		})
	}
}

// A redacted export has no secrets anywhere, and can be replayed by code that only passes them on.
func TestExportRedacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type login struct {
		Password string `json:"password"`
	}
	step := NewActivity("step", func(_ context.Context, l login) (login, error) { return login{l.Password + "-2"}, nil })
	o := NewOrchestrator("test", func(ctx *Context, l login) (login, error) {
		out, err := step.Call(ctx, l).Await()
		if err != nil {
			return out, err
		}
		return step.Call(ctx, out).Await()
	})
	s := startOf("a", login{"hunter-1"})
	s.Carry = []byte(`{"password":"hunter-1"}`)
	mustRun(t, w.process(t, nil, o, step), s)
	rt := w.process(t, nil, o, step)
	open := must(rt.Export(t.Context(), "a"))(t)
	text := must(rt.ExportRedacted(t.Context(), "a"))(t)
	carried := base64.StdEncoding.EncodeToString(s.Carry)
	if !bytes.Contains(open, []byte("hunter-1-2")) || !bytes.Contains(open, []byte(carried)) || bytes.Contains(text, []byte("hunter")) || bytes.Contains(text, []byte(carried)) || !bytes.Contains(text, []byte("[redacted]")) {
		t.Errorf("all of it: %s\nfor people: %s", open, text)
	}
	if err := Replay(o, text); err != nil {
		t.Errorf("replay: %v", err)
	}
	if again, err := rt.Export(t.Context(), "a"); err != nil || !bytes.Equal(again, open) {
		t.Errorf("what was exported for people has changed what is kept: %s, %v", again, err)
	}
}

// A text that is no history is rejected, with an error that says why.
func TestOpenHistoryRefuses(t *testing.T) {
	t.Parallel()
	start := `{"kind":"ExecutionStarted","at":1}`
	of := func(rounds string) string {
		return `{"id":"a","executions":[{"execution":1,"rounds":[` + rounds + `]}]}`
	}
	good := of(`{"learned":[` + start + `]}`)
	if h, err := OpenHistory([]byte(good)); err != nil || h.ID != "a" || len(h.Rounds) != 1 {
		t.Fatalf("%+v, %v", h, err)
	}
	for name, test := range map[string]struct {
		text string
		want error
		says string
	}{
		"nothing":             {``, ErrCorrupt, "exported history"},
		"no JSON":             {`{`, ErrCorrupt, "exported history"},
		"an answer":           {`{"status":"Succeeded","data":{}}`, ErrCorrupt, "no id"},
		"another format":      {`{"format":"x","id":"a"}`, ErrCorrupt, "its format is"},
		"a newer version":     {`{"format":"roundhouse-history","version":2,"id":"a"}`, ErrNewerSchema, "version 2"},
		"no execution":        {`{"id":"a","executions":[]}`, ErrCorrupt, "no execution"},
		"no list":             {`{"id":"a","executions":{}}`, ErrCorrupt, "in place of a list"},
		"no start":            {of(`{"learned":[{"kind":"TimerFired","at":1}]}`), ErrCorrupt, "does not begin with a start"},
		"an execution twice":  {`{"id":"a","executions":[{"execution":1,"rounds":[{"learned":[` + start + `]}]},{"execution":1,"rounds":[{"learned":[` + start + `]}]}]}`, ErrCorrupt, "not in its place"},
		"a failure without":   {of(`{"learned":[` + start + `],"decided":[{"kind":"ExecutionFailed","at":2}]}`), ErrCorrupt, "without an error"},
		"a time too late":     {of(`{"learned":[{"kind":"ExecutionStarted","at":999999999999999999}]}`), ErrCorrupt, "is none"},
		"a time before":       {of(`{"learned":[{"kind":"ExecutionStarted","at":-1}]}`), ErrCorrupt, "is none"},
		"too many entries":    {of(`{"learned":[` + start + strings.Repeat(`,{}`, maxHistoryEvents) + `]}`), ErrCorrupt, "more than"},
		"too many rounds":     {of(`{"learned":[` + start + `]}` + strings.Repeat(`,{}`, maxHistoryEvents)), ErrCorrupt, "more than"},
		"too many to inherit": {of(`{"learned":[{"kind":"ExecutionStarted","at":1,"inherited":{"unread":[{}` + strings.Repeat(`,{}`, maxHistoryEvents) + `]}}]}`), ErrCorrupt, "more than"},
		"entries of nothing":  {of(`{"learned":[` + start + strings.Repeat(`,null`, maxHistoryEvents) + `]}`), ErrCorrupt, "more than"},
	} {
		if _, err := OpenHistory([]byte(test.text)); !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Replay(nil, []byte(`{"format":"roundhouse-history","version":2}`)); !errors.Is(err, ErrNewerSchema) {
		t.Errorf("replay of a newer version: %v", err)
	}
}

// A file may be untrusted: it is opened or rejected, and an opened one can be shown.
func FuzzOpenHistory(f *testing.F) {
	golden, err := os.ReadFile("orchestratortest/testdata/order.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	for _, kind := range []string{"ExecutionStarted", "ActivityScheduled", "ActivityCompleted", "ActivityFailed", "TimerScheduled", "TimerFired", "TaskCreated", "ExecutionCanceled", "CallCanceled", "ExecutionFailed", "ExecutionStalled"} {
		for _, task := range []int{-1, 0, 1, 1 << 40} {
			f.Add([]byte(`{"id":"a","executions":[{"execution":1,"rounds":[{"learned":[{"kind":"ExecutionStarted","at":1}],"decided":[{"kind":"ActivityScheduled","at":2,"task":1}]},
				{"learned":[{"kind":"` + kind + `","at":3,"task":` + strconv.Itoa(task) + `,"undoes":-1,"failure":{"message":"x"},"origin":{}}],"decided":[{"kind":"` + kind + `","at":4,"task":` + strconv.Itoa(task) + `,"undoes":9,"failure":{"message":"x"}}]}]}]}`))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := OpenHistory(text)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewerSchema) {
				t.Errorf("%v", err)
			}
			return
		}
		if _, err := json.Marshal([]any{h.Rounds, h.Outcome, h.Summary()}); err != nil {
			t.Errorf("what was opened cannot be written: %v", err)
		}
	})
}
