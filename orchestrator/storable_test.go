package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// deep is JSON of so many nested arrays.
func deep(levels int) json.RawMessage {
	return json.RawMessage(strings.Repeat("[", levels) + strings.Repeat("]", levels))
}

// asDeep is a value with so many levels as JSON.
type asDeep int

func (d asDeep) MarshalJSON() ([]byte, error) { return deep(int(d)), nil }

func (d *asDeep) UnmarshalJSON(text []byte) error {
	*d = asDeep(strings.Count(string(text), "["))
	return nil
}

// A value with the deepest allowed nesting is stored and read back, for every kind of value; a deeper one is rejected
// on entry and does no harm.
func TestDepthOfWhatIsStored(t *testing.T) {
	t.Parallel()
	same := NewActivity("same", func(_ context.Context, d asDeep) (asDeep, error) { return d, nil })
	grow := NewActivity("grow", func(_ context.Context, n int) (asDeep, error) { return asDeep(n), nil })
	child := NewOrchestrator("child", func(_ *Context, d asDeep) (asDeep, error) { return d, nil })
	for name, body := range map[string]func(ctx *Context, n int) (asDeep, error){
		"input of an activity":  func(ctx *Context, n int) (asDeep, error) { return same.Call(ctx, asDeep(n)).Await() },
		"output of an activity": func(ctx *Context, n int) (asDeep, error) { return grow.Call(ctx, n).Await() },
		"input of a child":      func(ctx *Context, n int) (asDeep, error) { return child.Call(ctx, asDeep(n)).Await() },
		"output":                func(_ *Context, n int) (asDeep, error) { return asDeep(n), nil },
		"side effect": func(ctx *Context, n int) (asDeep, error) {
			return SideEffect(ctx, "deep", func() asDeep { return asDeep(n) })
		},
		"status": func(ctx *Context, n int) (asDeep, error) { return asDeep(n), ctx.SetStatus(asDeep(n)) },
		"detached": func(ctx *Context, n int) (asDeep, error) {
			_, err := child.Start(ctx, "b", asDeep(n))
			return asDeep(n), err
		},
		"event to another": func(ctx *Context, n int) (asDeep, error) { return asDeep(n), RaiseEvent(ctx, "a", "deep", asDeep(n)) },
		"publication": func(ctx *Context, n int) (asDeep, error) {
			return asDeep(n), ctx.Publish(Publication{TenantID: "t", Type: "deep", Payload: deep(n)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				for _, n := range []int{MaxDepth - 1, MaxDepth, MaxDepth + 1, 9_998} {
					w := newWorld(t)
					rt := w.configured(t, nil, Config{Queues: w.queues, Orchestrators: []AnyOrchestrator{NewOrchestrator("test", body), child}, Activities: []AnyActivity{same, grow},
						Publish: func(context.Context, []Publication) error { return nil }})
					out := mustRun(t, rt, startOf("a", n))
					w.settle(t, rt)
					if fits := n <= MaxDepth; fits != (out.Status == Completed) || !fits && (!out.Failure.Permanent || !strings.Contains(out.Failure.Message, fmt.Sprint(MaxDepth, " levels"))) {
						t.Errorf("%d levels: %s %v", n, out.Status, out.Failure)
					}
					if out.Status == Completed && string(mustGet(t, rt, "a").Output) != string(deep(n)) {
						t.Errorf("%d levels came back otherwise", n)
					}
					w.stored(t, "a")
				}
			})
		})
	}
}

// The same for values from outside: they are rejected before they are stored, or sent.
func TestDepthOfWhatComes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		rt := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, in json.RawMessage) (json.RawMessage, error) {
			return Event[json.RawMessage](ctx, "x").Await()
		})}, nil)
		for _, n := range []int{MaxDepth - 1, MaxDepth, MaxDepth + 1, 9_998} {
			id, want := fmt.Sprint(n), error(nil)
			if n > MaxDepth {
				want = ErrPayload
			}
			_, err := rt.Start(t.Context(), Start{ID: id, Orchestrator: "test", Input: deep(n)})
			isError(t, id+" start", err, want)
			if want != nil {
				_, err = rt.Start(t.Context(), Start{ID: id, Orchestrator: "test", Input: deep(1)})
				isError(t, "another start", err, nil)
			}
			isError(t, id+" raise", rt.Raise(t.Context(), id, "x", deep(n), ""), want)
			body := fmt.Appendf(nil, `{"signalId":"s","workflowInstanceId":%q,"runtimeProvider":"roundhouse","signalType":"ExternalSignal","payload":{"event":"x","data":%s}}`, id, deep(n))
			_, err = DecodeSignal(body)
			isError(t, id+" decode", err, want)
			if want != nil {
				isError(t, "as a message", err, ErrSignal)
				isError(t, "raise another", rt.Raise(t.Context(), id, "x", 1, ""), nil)
			}
			w.settle(t, rt)
			if out := mustGet(t, rt, id); out.Status != Completed || want == nil && string(out.Output) != string(deep(n)) {
				t.Errorf("%d levels: %s", n, out.Status)
			}
		}
	})
}

// Unread events are passed on, in any number, and a rewind requests all of them again.
func TestManyUnreadEventsAreHandedOn(t *testing.T) {
	bulky(t)
	t.Parallel()
	for name, c := range map[string]struct{ events, size int }{"continue as new": {2_500, 600}, "rewind": {1_500, 900}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, fails, release := newWorld(t), true, make(chan struct{})
				block := NewActivity("block", func(context.Context, int) (int, error) { <-release; return 0, nil })
				rt := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
					if _, err := block.Call(ctx, n).Await(); err != nil {
						return 0, err
					}
					if name == "rewind" && fails {
						return 0, Permanent(errors.New("not yet"))
					}
					if name == "continue as new" && n == 0 {
						return 0, ContinueAsNew(c.events)
					}
					for read := 0; ; read++ {
						if _, ok, err := TryReceive[string](ctx, "x"); err != nil || !ok {
							return read, err
						}
					}
				})}, []AnyActivity{block})
				done := runInBackground(t.Context(), rt, startOf("a", 0))
				synctest.Wait()
				for i := range c.events {
					go func() {
						if _, err := rt.Deliver(t.Context(), eventSignal("a", fmt.Sprint(i), "x", jsonOf(t, incompressible(c.size)))); err != nil {
							t.Error(err)
						}
					}()
				}
				synctest.Wait()
				close(release)
				if got := <-done; got.err != nil || !got.out.Ended() {
					t.Fatal(got.out.Status, got.err)
				}
				synctest.Wait()
				if name == "rewind" {
					fails = false
					noError(t, errorOf(rt.Rewind(t.Context(), "a", "again")))
					w.settle(t, rt)
				}
				if out := mustGet(t, rt, "a"); out.Status != Completed || string(out.Output) != fmt.Sprint(c.events) {
					t.Errorf("%s %s %v", out.Status, out.Output, out.Failure)
				}
				w.stored(t, "a")
			})
		})
	}
}

// The largest number of human tasks, with the largest payloads, is replaced in one turn.
func TestHumanTasksAreReplacedInOneTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		question := func(n int) HumanTask {
			return HumanTask{Name: fmt.Sprint("question ", n), Payload: strings.Repeat("<", (tasks.MaxPayload-2)/6)}
		}
		rt := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			for round := range 3 {
				var asked []Waitable
				for i := range maxOpenTasks {
					asked = append(asked, AskPerson[int](ctx, question(100*round+i)))
				}
				if round == 2 {
					break
				}
				if err := ctx.Sleep(time.Hour); err != nil {
					return 0, err
				}
				Cancel(ctx, asked...)
			}
			return n, ctx.Sleep(time.Hour)
		})}, nil)
		mustRun(t, rt, startOf("a", 7))
		for hour := range 3 {
			page, err := rt.Tasks().List(t.Context(), tasks.Filter{}, 100, "")
			if err != nil || len(page.Tasks) != maxOpenTasks || !strings.HasPrefix(page.Tasks[0].Name, "question ") {
				t.Errorf("hour %d: %d open tasks, %v", hour, len(page.Tasks), err)
			}
			time.Sleep(time.Hour + time.Minute)
			w.deliverDue(t, rt)
		}
		out := mustGet(t, rt, "a")
		if out.Status != Completed {
			t.Errorf("%s %v", out.Status, out.Failure)
		}
		if page, err := rt.Tasks().List(t.Context(), tasks.Filter{}, 100, ""); err != nil || len(page.Tasks) != 0 {
			t.Errorf("at the end: %d open tasks, %v", len(page.Tasks), err)
		}
		w.stored(t, "a")
	})
}
