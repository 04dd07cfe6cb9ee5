package orchestrator

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
)

// Every history that the runtime writes can be exported and replayed, and a replay detects code that decides
// otherwise.
func TestExportAndReplay(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios() {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s.drive(t, w, &ledger{})
			orchestrators, activities := s.make(&ledger{})
			rt := w.signalling(t, nil, orchestrators, activities)
			history := must(rt.Export(t.Context(), "a"))(t)
			if err := Replay(orchestrators[0], history); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			other := NewOrchestrator("test", func(ctx *Context, _ any) (any, error) { _ = ctx.Sleep(1); return nil, errors.New("other") })
			if err := Replay(other, history); !isDeterminismError(err) {
				t.Errorf("%s with other code: %v", name, err)
			}
			if err := Replay(orchestrators[0], bytes.Replace(history, []byte(`"ExecutionStarted"`), []byte(`"X"`), 1)); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s without a start: %v", name, err)
			}
		})
	}
	if err := Replay(nil, []byte("{")); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
}

func isDeterminismError(err error) bool {
	_, ok := errors.AsType[*DeterminismError](err)
	return ok
}
