package orchestrator

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// A repeated Start is the same start only with the same input, which may be in a blob, in any state of the run.
// Another input is ErrExists and changes nothing.
func TestStartWithAnotherInput(t *testing.T) {
	t.Parallel()
	const small = `{"how": "wait", "filler": ""}`
	large := strings.Replace(small, `""`, `"`+strings.Repeat("x", 2*spillFrom)+`"`, 1)
	type input struct{ How, Filler string }
	wait := NewOrchestrator("test", func(ctx *Context, in input) (string, error) {
		switch in.How {
		case "continue":
			return "", ContinueAsNew(input{How: "wait"})
		case "fail":
			return "", errors.New("it fails")
		default:
			return Event[string](ctx, "go").Await()
		}
	})
	change := func(input string) string { return strings.Replace(input, `"filler": "`, `"filler": "y`, 1) }
	for name, tt := range map[string]struct {
		input, requestID string
		reuse            Reuse
		between          func(*testing.T, *Runtime) error
	}{
		"waits":            {input: small},
		"large":            {input: large},
		"with a request":   {input: small, requestID: "r"},
		"for an ended one": {input: small, requestID: "r", reuse: ReuseEnded},
		"for any":          {input: large, requestID: "r", reuse: ReuseAny},
		"continued as new": {input: strings.Replace(small, "wait", "continue", 1)},
		"failed, and anew": {input: strings.Replace(small, "wait", "fail", 1), between: func(t *testing.T, rt *Runtime) error { return errorOf(rt.Rewind(t.Context(), "a", "")) }},
		"terminated":       {input: large, between: func(t *testing.T, rt *Runtime) error { return rt.Terminate(t.Context(), "a", "") }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t)
				rt := w.signalling(t, nil, []AnyOrchestrator{wait}, nil)
				start := func(input string) error {
					s := startOf("a", nil)
					s.Input, s.RequestID, s.Reuse = json.RawMessage(input), tt.requestID, tt.reuse
					return errorOf(rt.Start(t.Context(), s))
				}
				noError(t, start(tt.input))
				w.deliverDue(t, rt)
				if tt.between != nil {
					noError(t, tt.between(t, rt))
					w.deliverDue(t, rt)
				}
				before := mustGet(t, rt, "a")
				isError(t, "the same input", start(strings.ReplaceAll(tt.input, ": ", ":")), nil)
				err := start(change(tt.input))
				if !errors.Is(err, ErrExists) || !errors.Is(err, ErrOtherWork) || !strings.Contains(err.Error(), "a was started with another input") {
					t.Errorf("another input: %v", err)
				}
				w.deliverDue(t, rt)
				wants(t, "it is", mustGet(t, rt, "a"), before)
			})
		})
	}
}

// Start.Same decides, for any input: engines compare the work that a message requests.
func TestStartWithAnotherInputAndSame(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return n, nil })
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		s := startOf("a", 1)
		s.Same = func([]byte) bool { return true }
		must(rt.Start(t.Context(), s))(t)
		s.Input = json.RawMessage("2")
		must(rt.Start(t.Context(), s))(t)
		w.deliverDue(t, rt)
		wants(t, "it is", stands(t, rt, "a"), "Completed 1")
	})
}
