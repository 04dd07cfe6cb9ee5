package orchestrator

import (
	"errors"
	"testing"
	"time"
)

// An orchestrator can choose itself which of its errors keep their type.
func TestErrorsOfChildrenThatEndByASignalKeepTheirType(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		child := NewOrchestrator("child", func(ctx *Context, _ int) (int, error) {
			if _, err := Event[int](ctx, "number").Await(); err != nil {
				return 0, err
			}
			return 0, &vaultError{"v", 403}
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
			_, err := child.Call(ctx, n, WithError[*vaultError]()).Await()
			v, ok := errors.AsType[*vaultError](err)
			if !ok {
				return "the type is lost", nil
			}
			return v.Error(), nil
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o, child}, nil)
		mustRun(t, rt, startOf("a", 1))
		raise(t, w, mustGet(t, rt, "a").Calls[0].Child, 1, 0)
		w.attend(t, rt, time.Hour)
		wants(t, "the parent", stands(t, rt, "a"), `Completed "vault v says 403"`)
		w.replays(t, rt)
	})
}

// A call sets the policy for its child at the end of the parent's execution, and the child's id.
func TestACallSaysWhatBecomesOfItsChild(t *testing.T) {
	t.Parallel()
	type end = func(*Context) error
	ends := map[string]end{
		"completes": func(*Context) error { return nil },
		"fails":     func(*Context) error { return errors.New("boom") },
	}
	policies := map[string]struct {
		options []CallOption
		status  Status
	}{
		"is canceled":   {nil, Canceled},
		"is terminated": {[]CallOption{WithParentClose(TerminateChild)}, Terminated},
		"is abandoned":  {[]CallOption{WithParentClose(AbandonChild)}, Running},
	}
	tests := map[string]func(*testing.T){}
	for what, end := range ends {
		for name, policy := range policies {
			tests["the parent "+what+", the child "+name] = func(t *testing.T) {
				w := newWorld(t)
				child := NewOrchestrator("child", func(ctx *Context, _ int) (int, error) { return Event[int](ctx, "number").Await() })
				o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
					Any(ctx, child.Call(ctx, n, append(policy.options, WithID("mine"))...), Timer(ctx, time.Hour))
					return n, end(ctx)
				})
				rt := w.signalling(t, nil, []AnyOrchestrator{o, child}, nil)
				mustRun(t, rt, startOf("a", 1))
				w.attend(t, rt, 2*time.Hour)
				wants(t, "the child", mustGet(t, rt, "mine").Status, policy.status)
				if policy.status == Running {
					raise(t, w, "mine", 7, 0)
					w.attend(t, rt, time.Hour)
					wants(t, "the abandoned child", stands(t, rt, "mine"), "Completed 7")
				}
				isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
				w.replays(t, rt)
			}
		}
	}
	inBubbles(t, tests)
}

// A parent that is terminated terminates its children, but not the abandoned ones.
func TestATerminatedParentLeavesTheAbandonedAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		child := NewOrchestrator("child", func(ctx *Context, _ int) (int, error) { return Event[int](ctx, "number").Await() })
		o := NewOrchestrator("test", func(ctx *Context, n int) ([]int, error) {
			return All(child.Call(ctx, n, WithID("canceled")), child.Call(ctx, n, WithID("terminated"), WithParentClose(TerminateChild)),
				child.Call(ctx, n, WithID("abandoned"), WithParentClose(AbandonChild)))
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o, child}, nil)
		mustRun(t, rt, startOf("a", 1))
		noError(t, rt.Terminate(t.Context(), "a", "enough"))
		w.attend(t, rt, time.Hour)
		for id, want := range map[string]Status{"a": Terminated, "canceled": Terminated, "terminated": Terminated, "abandoned": Running} {
			wants(t, id, mustGet(t, rt, id).Status, want)
		}
	})
}
