package orchestrator

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
)

// incompressible returns a text that takes nearly its size in a row.
func incompressible(size int) string {
	raw := make([]byte, size)
	_, _ = rand.Read(raw) // it never fails
	return base64.RawStdEncoding.EncodeToString(raw)[:size]
}

// Values that are too large are rejected by name, before anything is stored.
func TestWhatIsTooLarge(t *testing.T) {
	bulky(t)
	t.Parallel()
	full := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if err := next(ctx); err != nil || c.Operation != "Put" {
			return err
		}
		return fmt.Errorf("put blob: %w", blobs.ErrTooLarge)
	}
	t.Run("input", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			rt := w.signalling(t, nil, []AnyOrchestrator{damaged(step), other()}, []AnyActivity{step})
			stall{rt: rt, is: ErrPayload, says: []string{fmt.Sprint(MaxPayload, " are allowed"), "reference"}}.check(t, w, "a", startOf("a", strings.Repeat("x", MaxPayload-1)))
			if len(w.rows(t, "a")) != 0 || len(l.all()) != 0 {
				t.Error("it was started")
			}
			// A rejected start does not block a smaller one under the same id.
			if out := mustRun(t, rt, startOf("a", "small")); !out.Woken || out.Execution != 1 {
				t.Errorf("%+v", out)
			}
		})
	})
	// A result that cannot be stored is the failure of its call: another attempt would not be smaller.
	t.Run("output of an activity", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			big := NewActivity("big", func(context.Context, int) (string, error) {
				l.add("big")
				return strings.Repeat("x", MaxPayload-1), nil
			})
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				s, err := big.Call(ctx, n, WithRetry(Retry{MaxAttempts: 3})).Await()
				return len(s), err
			})
			out := mustRun(t, w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{big}), startOf("a", 1))
			if out.Status != Failed || !out.Failure.Permanent || !strings.Contains(out.Failure.Message, fmt.Sprint(MaxPayload, " are allowed")) || l.count("big") != 1 {
				t.Errorf("%s %v, %d attempts", out.Status, out.Failure, l.count("big"))
			}
		})
	})
	// If storage alone finds a value too large, the run ends: nothing is retried for ever.
	t.Run("for storage alone", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t)
			big := NewActivity("big", func(context.Context, int) (string, error) { return strings.Repeat("x", spillFrom), nil })
			rt := w.intercepted(t, full, Config{Orchestrators: []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				s, err := big.Call(ctx, n).Await()
				return len(s), err
			}), NewOrchestrator("large", func(ctx *Context, n int) (string, error) { return strings.Repeat("x", spillFrom), nil })}, Activities: []AnyActivity{big}})
			for id, s := range map[string]Start{"a": startOf("a", 1), "b": {ID: "b", Orchestrator: "large", Input: json.RawMessage("1")}} {
				out := mustRun(t, rt, s)
				if out.Status != Failed || !out.Failure.Permanent || out.Failure.Code != codeTooLarge || !strings.Contains(out.Failure.Message, "cannot be stored") {
					t.Errorf("%s: %s %v", id, out.Status, out.Failure)
				}
			}
		})
	})
	t.Run("error of an activity", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t)
			text := incompressible(2 << 20)
			chatty := NewActivity("chatty", func(context.Context, int) (int, error) { return 0, errors.New("the disk is full: " + text) })
			rt := w.signalling(t, nil, []AnyOrchestrator{sequence(chatty), other()}, []AnyActivity{chatty})
			out, err := rt.Run(t.Context(), startOf("a", 1))
			if err != nil || out.Status != Failed || !strings.Contains(out.Failure.Message, "the disk is full") {
				t.Errorf("an error with a long text is not recorded: %s %.200v", out.Status, err)
			}
		})
	})
	// A value that does not fit a message is sent in a blob. One that does not fit that, either, is rejected.
	t.Run("event", func(t *testing.T) {
		t.Parallel()
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		rt := w.intercepted(t, full, Config{Orchestrators: []AnyOrchestrator{stepThenEvent(step)}, Activities: []AnyActivity{step}})
		mustRun(t, rt, startOf("a", 1))
		before := w.rows(t, "a")
		err := rt.Raise(t.Context(), "a", "number", strings.Repeat("x", queues.MaxBody), "")
		if !errors.Is(err, blobs.ErrTooLarge) || !strings.Contains(err.Error(), "orchestration a") || w.waitingMessages(t) != 0 {
			t.Errorf("%d messages, %v", w.waitingMessages(t), err)
		}
		w.unchanged(t, "a", before)
	})
	for name, change := range map[string]func(*Start){
		"carry":          func(s *Start) { s.Carry = []byte(incompressible(2 << 20)) },
		"correlation id": func(s *Start) { s.CorrelationID = incompressible(100 << 10) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			s := startOf("a", 1)
			change(&s)
			_, err := w.process(t, nil, sequence(step), step).Run(t.Context(), s)
			if err == nil || !strings.Contains(err.Error(), "orchestration a") || len(err.Error()) > 4096 {
				t.Errorf("%.300v", err)
			}
			if len(w.rows(t, "a")) != 0 || len(l.all()) != 0 {
				t.Error("it was started")
			}
		})
	}
}

// The process that takes over reads values back from blobs: results of every kind, not only those of activities.
func TestLargeValuesAreReadBack(t *testing.T) {
	bulky(t)
	t.Parallel()
	large := strings.Repeat("x", spillFrom)
	t.Run("the output", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		o := NewOrchestrator("test", func(*Context, int) (string, error) { return large, nil })
		warm := mustRun(t, w.process(t, nil, o), startOf("a", 1))
		cold := mustRun(t, w.process(t, nil, o), startOf("a", 1))
		got := mustGet(t, w.process(t, nil, o), "a")
		if len(warm.Output) != spillFrom+2 || !bytes.Equal(warm.Output, cold.Output) || !bytes.Equal(warm.Output, got.Output) {
			t.Errorf("warm %d, cold %d, Get %d bytes", len(warm.Output), len(cold.Output), len(got.Output))
		}
	})
	t.Run("an event", func(t *testing.T) {
		t.Parallel()
		raised := func(size int) func(*testing.T, *faults.Plan) {
			return func(t *testing.T, plan *faults.Plan) {
				t.Helper()
				w := newWorld(t)
				o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
					s, err := Event[string](ctx, "text").Await()
					return len(s), err
				})
				orchestrators := []AnyOrchestrator{o}
				mustRun(t, w.signalling(t, nil, orchestrators, nil), startOf("a", 1))
				text := strings.Repeat("x", size)
				dying := w.signalling(t, plan, orchestrators, nil)
				if err := dying.Raise(t.Context(), "a", "text", text, "1"); err != nil { // it is repeated then
					noError(t, w.signalling(t, nil, orchestrators, nil).Raise(t.Context(), "a", "text", text, "1"))
				}
				w.deliver(t.Context(), t, dying) // it may die
				next := w.signalling(t, nil, orchestrators, nil)
				w.settle(t, next)
				if out := mustGet(t, next, "a"); string(out.Output) != fmt.Sprint(size) || w.learnedEvents(t, "a", eventRaised) != 1 {
					t.Errorf("%s %s %v", out.Status, out.Output, out.Failure)
				}
			}
		}
		for _, size := range []int{queues.MaxBody, 10 * spillFrom} {
			synctest.Test(t, func(t *testing.T) { raised(size)(t, &faults.Plan{}) })
		}
		everyFault(t, raised(spillFrom))
	})
	t.Run("a child's output", func(t *testing.T) {
		t.Parallel()
		everyFault(t, func(t *testing.T, plan *faults.Plan) {
			w := newWorld(t)
			child := NewOrchestrator("child", func(*Context, int) (string, error) { return large, nil })
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				s, err := child.Call(ctx, n).Await()
				return len(s), err
			})
			orchestrators := []AnyOrchestrator{o, child}
			_, _ = w.runtime(t, plan, orchestrators, nil).Run(t.Context(), startOf("a", 1)) // it may die
			if out := mustRun(t, w.runtime(t, nil, orchestrators, nil), startOf("a", 1)); string(out.Output) != fmt.Sprint(spillFrom) {
				t.Errorf("%s %s %v", out.Status, out.Output, out.Failure)
			}
		})
	})
	t.Run("what it continues as new with", func(t *testing.T) {
		t.Parallel()
		everyFault(t, func(t *testing.T, plan *faults.Plan) {
			w := newWorld(t)
			o := NewOrchestrator("test", func(_ *Context, s string) (int, error) {
				if len(s) < spillFrom {
					return 0, ContinueAsNew(large)
				}
				return len(s), nil
			})
			_, _ = w.process(t, plan, o).Run(t.Context(), startOf("a", "")) // it may die
			if out := mustRun(t, w.process(t, nil, o), startOf("a", "")); string(out.Output) != fmt.Sprint(spillFrom) {
				t.Errorf("%s %s %v", out.Status, out.Output, out.Failure)
			}
		})
	})
	t.Run("a side effect", func(t *testing.T) {
		t.Parallel()
		everyFault(t, func(t *testing.T, plan *faults.Plan) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				s, err := SideEffect(ctx, "text", func() string { return large })
				if err != nil {
					return 0, err
				}
				if _, err := step.Call(ctx, n).Await(); err != nil {
					return 0, err
				}
				return step.Call(ctx, len(s)).Await()
			})
			_, _ = w.process(t, plan, o, step).Run(t.Context(), startOf("a", 1)) // it may die
			out, err := w.process(t, nil, o, step).Run(t.Context(), startOf("a", 1))
			if err != nil || string(out.Output) != fmt.Sprint(spillFrom+1) {
				t.Errorf("%s %s %v %v", out.Status, out.Output, out.Failure, err)
			}
		})
	})
}

// Unread events are passed on, regardless of their size: when the orchestration continues as new, and when it failed
// and continues.
func TestUnreadEventsOfAnySize(t *testing.T) {
	bulky(t)
	t.Parallel()
	const events, size = 30, 40 << 10
	for name, end := range map[string]func(n int) error{
		"continues as new": func(n int) error { return ContinueAsNew(n + 1) },
		"fails":            func(int) error { return errors.New("not yet") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, release := newWorld(t), make(chan struct{})
				block := NewActivity("block", func(context.Context, int) (int, error) { <-release; return 0, nil })
				o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
					if ctx.Execution() == 1 {
						_, err := block.Call(ctx, n).Await()
						return 0, errors.Join(err, end(n))
					}
					total := 0
					for range events {
						text, err := Event[string](ctx, "text").Await()
						if err != nil {
							return 0, err
						}
						total += len(text)
					}
					return total, nil
				})
				rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{block})
				done := runInBackground(t.Context(), rt, startOf("a", 1))
				synctest.Wait()
				var wg sync.WaitGroup
				for i := range events {
					signal := eventSignal("a", fmt.Sprint(i), "text", jsonOf(t, incompressible(size)))
					wg.Go(func() {
						if _, err := rt.Deliver(t.Context(), signal); err != nil && i == 0 {
							t.Errorf("%.300v", err)
						}
					})
				}
				synctest.Wait()
				close(release)
				wg.Wait()
				if got := <-done; got.err != nil {
					t.Errorf("%.300v", got.err)
				}
				out, err := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{block}).Run(t.Context(), startOf("a", 1))
				if err != nil || string(out.Output) != fmt.Sprint(events*size) || out.Execution != 2 {
					t.Errorf("%s %s %.300v", out.Status, out.Output, err)
				}
				w.stored(t, "a")
			})
		})
	}
}

// An accepted id fits a whole orchestration, sub-orchestrations and spilled payloads included; a longer one is
// rejected before anything is stored.
func TestLongIDs(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"letters": strings.Repeat("x", 400), "escaped": strings.Repeat("?", 400), "some escaped": strings.Repeat("?", 250)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, plan := newWorld(t), &faults.Plan{}
			child := NewOrchestrator("child", func(_ *Context, s string) (int, error) { return len(s), nil })
			o := NewOrchestrator("test", func(ctx *Context, s string) (int, error) { return child.Call(ctx, s).Await() })
			out, err := w.runtime(t, plan, []AnyOrchestrator{o, child}, nil).Run(t.Context(), startOf(id, strings.Repeat("x", spillFrom)))
			if err != nil && strings.Contains(err.Error(), "the orchestration id") && len(plan.Calls()) == 0 {
				return
			}
			if err != nil || string(out.Output) != fmt.Sprint(spillFrom) {
				t.Errorf("%s %s %.300v", out.Status, out.Output, err)
			}
		})
	}
}
