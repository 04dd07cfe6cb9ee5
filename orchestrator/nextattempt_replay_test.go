package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Live code sees the same values as every replay: each value has been through the recorded bytes. So it passes on the
// same values, for any error text and any formatting of JSON.
func TestLiveCodeSeesWhatReplaySees(t *testing.T) {
	t.Parallel()
	const odd = "bad byte \xff\xfe here"
	echo := NewActivity("echo", func(_ context.Context, s string) (string, error) { return s, nil })
	fail := NewActivity("fail", func(context.Context, int) (int, error) { return 0, errors.New(odd) })
	retried := NewActivity("retried", func(context.Context, int) (int, error) { return 0, errors.New(odd) },
		WithRetry(Retry{MaxAttempts: 2, FirstInterval: time.Second}))
	vault := NewActivity("vault", func(context.Context, int) (int, error) { return 0, &vaultError{odd, 1} }, WithError[*vaultError]())
	raw := NewActivity("raw", func(context.Context, int) (json.RawMessage, error) { return json.RawMessage(` {"a" :  1} `), nil })
	child := NewOrchestrator("child", func(*Context, int) (int, error) { return 0, errors.New(odd) })
	rawChild := NewOrchestrator("rawChild", func(*Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(` {"a" :  1} `), nil
	})
	// Each returns a text that is passed on.
	texts := map[string]func(*Context, json.RawMessage) string{
		"the error of an activity": func(ctx *Context, _ json.RawMessage) string {
			_, err := fail.Call(ctx, 1).Await()
			return err.Error()
		},
		"the error of an activity that is retried": func(ctx *Context, _ json.RawMessage) string {
			_, err := retried.Call(ctx, 1).Await()
			return err.Error()
		},
		"an error that keeps its type": func(ctx *Context, _ json.RawMessage) string {
			_, err := vault.Call(ctx, 1).Await()
			return err.Error()
		},
		"the error of a child": func(ctx *Context, _ json.RawMessage) string {
			_, err := child.Call(ctx, 1).Await()
			failed, _ := errors.AsType[*OrchestrationError](err)
			return failed.Failure.Message
		},
		"the error of a coroutine": func(ctx *Context, _ json.RawMessage) string {
			_, err := Go(ctx, func(ctx *Context) (int, error) { return fail.Call(ctx, 1).Await() }).Await()
			return err.Error()
		},
		"the input": func(_ *Context, in json.RawMessage) string { return string(in) },
		"the result of an activity": func(ctx *Context, _ json.RawMessage) string {
			out, _ := raw.Call(ctx, 1).Await()
			return string(out)
		},
		"the result of a child": func(ctx *Context, in json.RawMessage) string {
			out, _ := rawChild.Call(ctx, in).Await()
			return string(out)
		},
		"the value of an event": func(ctx *Context, _ json.RawMessage) string {
			out, _ := Event[json.RawMessage](ctx, "number").Await()
			return string(out)
		},
		"a side effect": func(ctx *Context, _ json.RawMessage) string {
			out, _ := SideEffect(ctx, "raw", func() json.RawMessage { return json.RawMessage(` {"a" :  1} `) })
			return string(out)
		},
		"a publication": func(ctx *Context, in json.RawMessage) string {
			err := ctx.Publish(Publication{TenantID: "t", Type: "news", Payload: json.RawMessage(` {"a" :  1} `)})
			return fmt.Sprint(err, ctx.Publish(Publication{TenantID: "t", Type: "news", Payload: in}))
		},
	}
	tests := map[string]func(*testing.T){}
	for name, text := range texts {
		tests[name] = func(t *testing.T) {
			w := newWorld(t)
			o := NewOrchestrator("test", func(ctx *Context, in json.RawMessage) (string, error) {
				said, err := echo.Call(ctx, text(ctx, in)).Await()
				if err == nil {
					_, err = Timer(ctx, time.Hour).Await()
				}
				return said, err
			})
			process := func() *Runtime {
				return w.publishing(t, nil, &post{}, []AnyOrchestrator{o, child, rawChild}, []AnyActivity{echo, fail, retried, vault, raw})
			}
			s := startOf("a", 1)
			s.Input = json.RawMessage(` {"b" :  [1, 2]} `)
			rt := process()
			mustRun(t, rt, s)
			event := eventSignal("a", "event", "number", ` {"c" :  1} `)
			noError(t, errorOf(rt.Deliver(t.Context(), event)))
			rt = process()
			w.attend(t, rt, 3*time.Hour)
			if got := stands(t, rt, "a"); !strings.HasPrefix(got, "Completed") {
				t.Errorf("another process: %s", got)
			}
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// Any over several events takes them in their order of arrival, so that none of them starves the others.
func TestAnyTakesEventsInTheOrderOfTheirArrival(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T){}
	for name, arrivals := range map[string]string{
		"the second comes first": "ba",
		"one is busy":            "aabaaabaaa",
		"in turn":                "babababa",
	} {
		tests[name] = func(t *testing.T) {
			w := newWorld(t)
			o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
				if _, err := Timer(ctx, time.Hour).Await(); err != nil { // they arrive meanwhile
					return "", err
				}
				got, a, b := "", Event[int](ctx, "a"), Event[int](ctx, "b")
				for range n {
					switch Any(ctx, a, b) {
					case 0:
						got, a = got+"a", Event[int](ctx, "a")
					case 1:
						got, b = got+"b", Event[int](ctx, "b")
					}
				}
				return got, nil
			})
			rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
			mustRun(t, rt, startOf("a", len(arrivals)))
			for _, event := range arrivals {
				noError(t, rt.Raise(t.Context(), "a", string(event), 1, ""))
				w.deliverDue(t, rt)
				time.Sleep(time.Second)
			}
			w.attend(t, rt, 2*time.Hour)
			wants(t, "taken", stands(t, rt, "a"), fmt.Sprintf("Completed %q", arrivals))
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// Deferred code can distinguish the end from a parking: its work for the end happens once, however often the
// orchestration leaves memory before.
func TestDeferredCodeForTheEndRunsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			defer func() {
				if !ctx.Parking() {
					l.add("the end")
				}
			}()
			for range 3 {
				if _, err := Timer(ctx, time.Hour).Await(); err != nil {
					return 0, err
				}
			}
			return Event[int](ctx, "number").Await()
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		mustRun(t, rt, startOf("a", 1))
		w.attend(t, rt, 4*time.Hour)
		wants(t, "ends while it waits", l.count("the end"), 0)
		raise(t, w, "a", 7, 0)
		w.attend(t, rt, time.Hour)
		wants(t, "it ends", stands(t, rt, "a"), "Completed 7")
		wants(t, "ends", l.count("the end"), 1)
	})
}

// A panic in a coroutine that is not awaited fails the run.
func TestAPanicInACoroutineFailsTheRun(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T){}
	for name, late := range map[string]bool{"at once": false, "behind a timer": true} {
		tests[name] = func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				Go(ctx, func(ctx *Context) (int, error) {
					if late {
						_, _ = Timer(ctx, time.Hour).Await()
					}
					panic("lost")
				})
				_, _ = Timer(ctx, 2*time.Hour).Await()
				return step.Call(ctx, n).Await()
			})
			rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step})
			mustRun(t, rt, startOf("a", 1))
			w.attend(t, rt, 4*time.Hour)
			if out := mustGet(t, rt, "a"); out.Status != Failed || out.Failure.Code != "panic" || !strings.Contains(out.Failure.Message, "lost") {
				t.Errorf("it ends: %s, want it to have failed with the panic", stands(t, rt, "a"))
			}
			wants(t, "calls behind the panic", l.count("step(1)"), 0)
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// A coroutine that only listens in the background does not prevent the end of an orchestration; calls that are not
// awaited are carried out nevertheless.
func TestABackgroundListenerDoesNotKeepARunFromEnding(t *testing.T) {
	t.Parallel()
	listeners := map[string]func(*Context) (int, error){
		"to events": func(ctx *Context) (int, error) {
			for n := 0; ; n++ {
				if _, err := Event[int](ctx, "number").Await(); err != nil {
					return n, err
				}
			}
		},
		"to a clock": func(ctx *Context) (int, error) {
			for n := 0; ; n++ {
				if _, err := Timer(ctx, 10*time.Minute).Await(); err != nil {
					return n, err
				}
			}
		},
	}
	tests := map[string]func(*testing.T){}
	for name, listen := range listeners {
		tests[name] = func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				Go(ctx, listen)
				Go(ctx, func(ctx *Context) (int, error) { return step.Call(ctx, n).Await() })
				step.Call(ctx, n+1)
				_, err := Timer(ctx, time.Hour).Await()
				return n, err
			})
			rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step})
			mustRun(t, rt, startOf("a", 1))
			raise(t, w, "a", 7, 10*time.Minute)
			w.attend(t, rt, 3*time.Hour)
			wants(t, "it ends", stands(t, rt, "a"), "Completed 1")
			wants(t, "calls", l.all(), map[string]int{"step(1)": 1, "step(2)": 1})
			wants(t, "messages left", w.waitingMessages(t), 0)
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}
