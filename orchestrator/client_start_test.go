package orchestrator

// The client's Start. The peers' checks of instance_creation that are not here are in behaviour_queue_test.go.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// eventOffice runs stepThenEvent, as "other" an orchestrator that ends immediately, and as "bad" one that fails
// immediately.
func eventOffice(t *testing.T) *office {
	t.Helper()
	o := newOffice(t)
	step := o.ledger.step("step")
	bad := NewOrchestrator("bad", func(*Context, int) (int, error) { return 0, errors.New("no") })
	o.orchestrators, o.activities = []AnyOrchestrator{stepThenEvent(step), other(), bad}, []AnyActivity{step}
	return o
}

func TestStart(t *testing.T) {
	t.Parallel()
	inBubbles(t, map[string]func(*testing.T){
		"pending until it is taken up": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			s := startRequest("a", 1, "r", ReuseNever)
			s.Carry, s.Reference = []byte("carried"), &Reference{Key: "order", Parts: map[string]string{"id": "7"}}
			out, err := rt.Start(t.Context(), s)
			isError(t, "start", err, nil)
			status, err := rt.Status(t.Context(), "a")
			isError(t, "status", err, nil)
			wants(t, "states", []Status{out.Status, mustGet(t, rt, "a").Status, status.Status}, []Status{Pending, Pending, Pending})
			wants(t, "calls", len(o.ledger.all()), 0)
			wants(t, "executions, messages", []int{o.executions(t, "a"), o.waitingMessages(t)}, []int{1, 1})
			o.rest(t, o.open(t, nil)) // another process
			out = mustGet(t, rt, "a")
			wants(t, "state", out.Status, Running)
			wants(t, "what it carries", []string{string(out.Carry), out.Reference.Key, out.CorrelationID, string(out.Input)}, []string{"carried", "order", "corr", "1"})
			wants(t, "calls", o.ledger.all(), map[string]int{"step(1)": 1})
		},
		"a run takes it up": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			s := startRequest("a", 1, "r", ReuseNever)
			noError(t, errorOf(rt.Start(t.Context(), s)))
			if out := mustRun(t, rt, s); out.Status != Running || !out.Woken || out.Execution != 1 {
				t.Errorf("%+v", out)
			}
			o.settle(t, rt)
			wants(t, "calls", o.ledger.all(), map[string]int{"step(1)": 1})
		},
		"events and commands before it is taken up": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			noError(t, errorOf(rt.Start(t.Context(), startOf("a", 1))))
			noError(t, errorOf(o.open(t, nil).Deliver(t.Context(), eventSignal("a", "1", "number", "7"))))
			o.settle(t, rt)
			wants(t, "output", string(mustGet(t, rt, "a").Output), "8")
			o.stored(t, "a")
		},
		// The two ids are given by different callers for different things.
		"an event of the request's id": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			o.start(t, rt, startRequest("a", 1, "same", ReuseNever))
			noError(t, rt.Raise(t.Context(), "a", "number", 7, "same"))
			o.settle(t, rt)
			wants(t, "output", string(mustGet(t, rt, "a").Output), "8")
			wants(t, "counts", rt.Counts(), Counts{})
		},
		"a large input": func(t *testing.T) {
			o := eventOffice(t)
			o.orchestrators = []AnyOrchestrator{NewOrchestrator("test", func(_ *Context, s string) (int, error) { return len(s), nil })}
			rt := o.open(t, nil)
			out := o.start(t, rt, startOf("a", strings.Repeat("x", spillFrom)))
			wants(t, "output", string(out.Output), fmt.Sprint(spillFrom))
		},
		"what is refused": func(t *testing.T) {
			o := eventOffice(t)
			rt, plan := o.open(t, nil), &faults.Plan{}
			unknown := startOf("a", 1)
			unknown.Orchestrator = "nobody"
			_, err := rt.Start(t.Context(), unknown)
			isError(t, "unknown orchestrator", err, ErrUnknownOrchestrator)
			_, err = o.process(t, plan, o.orchestrators[0], o.activities...).Start(t.Context(), startOf("a", 1))
			isError(t, "without queues", err, ErrNoSignals)
			for what, change := range map[string]func(*Start){
				"id": func(s *Start) { s.ID = "" }, "input": func(s *Start) { s.Input = []byte("{") },
				"reference": func(s *Start) { s.Reference = &Reference{} }, "carry": func(s *Start) { s.Carry = make([]byte, maxCarry+1) },
			} {
				s := startOf("a", 1)
				change(&s)
				if _, err := rt.Start(t.Context(), s); err == nil {
					t.Errorf("%s: it is taken", what)
				}
			}
			if len(o.rows(t, "a")) != 0 || len(plan.Calls()) != 0 || o.waitingMessages(t) != 0 {
				t.Error("something is stored")
			}
		},
	})
}

// Starts under an id that is taken.
func TestStartUnderAnIDThatIsTaken(t *testing.T) {
	t.Parallel()
	found := map[string]struct {
		status Status
		make   func(t *testing.T, o *office, rt *Runtime)
	}{
		"pending": {Pending, func(t *testing.T, _ *office, rt *Runtime) {
			t.Helper()
			noError(t, errorOf(rt.Start(t.Context(), startRequest("a", 1, "first", ReuseNever))))
		}},
		"waiting": {Running, func(t *testing.T, o *office, rt *Runtime) {
			t.Helper()
			o.start(t, rt, startRequest("a", 1, "first", ReuseNever))
		}},
		"suspended": {Suspended, func(t *testing.T, o *office, rt *Runtime) {
			t.Helper()
			o.start(t, rt, startRequest("a", 1, "first", ReuseNever))
			isError(t, "suspend", rt.Suspend(t.Context(), "a", ""), nil)
			o.rest(t, rt)
		}},
		"completed": {Completed, func(t *testing.T, o *office, rt *Runtime) {
			t.Helper()
			o.start(t, rt, startRequest("a", 1, "first", ReuseNever))
			isError(t, "raise", rt.Raise(t.Context(), "a", "number", 7, ""), nil)
			o.rest(t, rt)
		}},
		"failed": {Failed, func(t *testing.T, o *office, rt *Runtime) {
			t.Helper()
			s := startRequest("a", 1, "first", ReuseNever)
			s.Orchestrator = "bad"
			o.start(t, rt, s)
		}},
		"terminated": {Terminated, func(t *testing.T, o *office, rt *Runtime) {
			t.Helper()
			o.start(t, rt, startRequest("a", 1, "first", ReuseNever))
			isError(t, "terminate", rt.Terminate(t.Context(), "a", ""), nil)
			o.rest(t, rt)
		}},
	}
	for name, f := range found {
		active := slices.Contains([]Status{Pending, Running, Suspended}, f.status)
		for _, reuse := range []Reuse{ReuseNever, ReuseEnded, ReuseAny} {
			t.Run(fmt.Sprintf("%s, policy %d", name, reuse), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					o := eventOffice(t)
					rt := o.open(t, nil)
					f.make(t, o, rt)
					wants(t, "state before", mustGet(t, rt, "a").Status, f.status)
					before, messages := o.rows(t, "a"), o.waitingMessages(t)

					// The first start, repeated, with any policy.
					same := startRequest("a", 1, "first", reuse)
					same.Orchestrator = mustGet(t, rt, "a").Orchestrator
					out, err := rt.Start(t.Context(), same)
					isError(t, "the same", err, nil)
					wants(t, "the same: state", out.Status, f.status)
					o.unchanged(t, "a", before)
					if woken := o.waitingMessages(t) > messages; woken != (f.status == Pending) {
						t.Errorf("%d messages after %d", o.waitingMessages(t), messages)
					}

					want := map[Reuse]error{ReuseNever: ErrExists}[reuse]
					if reuse == ReuseEnded && active {
						want = ErrActive
					}
					s := startRequest("a", 5, "second", reuse)
					s.CorrelationID = "another"
					out, err = rt.Start(t.Context(), s)
					isError(t, "another", err, want)
					if want != nil {
						o.unchanged(t, "a", before)
						return
					}
					if out.Status != Pending || out.Execution != 2 || out.CorrelationID != "another" {
						t.Errorf("another: %+v", out)
					}
					o.settle(t, rt)
					isError(t, "raise", rt.Raise(t.Context(), "a", "number", 7, ""), nil)
					o.settle(t, rt)
					out = mustGet(t, rt, "a")
					if out.Status != Completed || string(out.Output) != "8" || out.Execution != 2 || o.executions(t, "a") != 2 || o.ledger.count("step(5)") != 1 {
						t.Errorf("%s %s in execution %d of %d", out.Status, out.Output, out.Execution, o.executions(t, "a"))
					}
					first := summarize("a", o.stored(t, "a")[0])
					if ended := map[bool]Status{true: Terminated, false: f.status}[active]; first.Status != ended {
						t.Errorf("the one before is %s", first.Status)
					}
				})
			})
		}
	}
}

// The driver of an orchestration that a start terminates stops, and so do its sub-orchestrations.
func TestStartTerminatesWhatRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := newOffice(t)
		told := false
		long := NewActivity("long", func(ctx context.Context, n int) (int, error) {
			if n != 1 {
				return n, nil
			}
			select {
			case <-ctx.Done():
				told = true
			case <-time.After(time.Hour):
			}
			return n, ctx.Err()
		}, WithHeartbeat(2*time.Hour))
		o.orchestrators, o.activities = []AnyOrchestrator{sequenceOf(long)}, []AnyActivity{long}
		slow := o.open(t, nil)
		done := runInBackground(t.Context(), slow, startRequest("a", 1, "first", ReuseNever))
		time.Sleep(time.Minute)
		rt := o.open(t, nil)
		noError(t, errorOf(rt.Start(t.Context(), startRequest("a", 2, "second", ReuseAny))))
		o.settle(t, rt)
		got := <-done // it reads, and finds that it was terminated, and that the id has another run since
		if got.err != nil || got.out.Execution != 1 || got.out.Status != Terminated || got.out.Output != nil || !told {
			t.Errorf("%+v, told %v", got, told)
		}
		wants(t, "the run that has the id", stands(t, rt, "a"), "Completed 2")
		wants(t, "executions", o.executions(t, "a"), 2)
		o.onceEach(t, "a")
	})
}

// sequenceOf calls an activity once with its input.
func sequenceOf(a *Activity[int, int]) AnyOrchestrator {
	return NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return a.Call(ctx, n).Await() })
}

// parentOffice runs a parent whose child waits for an event.
func parentOffice(t *testing.T) *office {
	t.Helper()
	o := newOffice(t)
	o.orchestrators, o.activities = withWaitingChild(o.ledger)
	return o
}

// A repeated Start is the same start, wherever its process died.
func TestStartInterrupted(t *testing.T) {
	t.Parallel()
	starting := func(s Start) func(context.Context, *Runtime) error {
		return func(ctx context.Context, rt *Runtime) error { _, err := rt.Start(ctx, s); return err }
	}
	for _, requestID := range []string{"", "r"} {
		t.Run("anew "+requestID, func(t *testing.T) {
			t.Parallel()
			interrupted(t, eventOffice, starting(startRequest("a", 1, requestID, ReuseNever)), func(t *testing.T, o *office, rt *Runtime) {
				t.Helper()
				if out := mustGet(t, rt, "a"); out.Status != Running || o.executions(t, "a") != 1 || o.ledger.count("step(1)") != 1 {
					t.Errorf("%+v", out)
				}
			})
		})
	}
	t.Run("over one that has ended", func(t *testing.T) {
		t.Parallel()
		prepare := func(t *testing.T) *office {
			t.Helper()
			o := eventOffice(t)
			s := startRequest("a", 1, "first", ReuseNever)
			s.Orchestrator = "bad"
			o.start(t, o.open(t, nil), s)
			return o
		}
		interrupted(t, prepare, starting(startRequest("a", 2, "second", ReuseEnded)), func(t *testing.T, o *office, rt *Runtime) {
			t.Helper()
			if out := mustGet(t, rt, "a"); out.Status != Running || o.executions(t, "a") != 2 || o.ledger.count("step(2)") != 1 {
				t.Errorf("%+v", out)
			}
		})
	})
	t.Run("over one that runs", func(t *testing.T) {
		t.Parallel()
		prepare := func(t *testing.T) *office {
			t.Helper()
			o := parentOffice(t)
			if out := o.start(t, o.open(t, nil), startRequest("a", 1, "first", ReuseNever)); len(out.Calls) != 1 {
				t.Fatalf("%+v", out)
			}
			return o
		}
		interrupted(t, prepare, starting(startRequest("a", 2, "second", ReuseAny)), func(t *testing.T, o *office, rt *Runtime) {
			t.Helper()
			all := o.stored(t, "a")
			if len(all) != 2 {
				t.Fatalf("%d executions", len(all))
			}
			first, second := summarize("a", all[0]), summarize("a", all[1])
			if first.Status != Terminated || second.Status != Running {
				t.Errorf("%s, then %s", first.Status, second.Status)
			}
			if child := mustGet(t, rt, first.Calls[0].Child); child.Status != Terminated {
				t.Errorf("the child of the one that was terminated is %s", child.Status)
			}
			if child := mustGet(t, rt, second.Calls[0].Child); child.Status != Running {
				t.Errorf("the child of the other is %s", child.Status)
			}
		})
	})
}

// Of many concurrent starts one succeeds: repeated ones all return it, others are rejected.
func TestStartRace(t *testing.T) {
	t.Parallel()
	for name, same := range map[string]bool{"the same request": true, "different requests": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				o := eventOffice(t)
				const processes = 8
				errs := make(chan error, processes)
				for i := range processes {
					s := startRequest("a", 1, "r", ReuseEnded)
					if !same {
						s.RequestID = fmt.Sprint("r", i)
					}
					rt := o.open(t, nil)
					go func() {
						_, err := rt.Start(t.Context(), s)
						errs <- err
					}()
				}
				refused := 0
				for range processes {
					if err := <-errs; errors.Is(err, ErrActive) {
						refused++
					} else if err != nil {
						t.Error(err)
					}
				}
				rt := o.open(t, nil)
				o.settle(t, rt)
				if same && refused != 0 || !same && refused != processes-1 {
					t.Errorf("%d are refused", refused)
				}
				wants(t, "executions, calls", []int{o.executions(t, "a"), o.ledger.count("step(1)")}, []int{1, 1})
			})
		})
	}
}

// Throttled storage is an error that names it, and changes nothing.
func TestStartThrottled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := eventOffice(t)
		rt := o.open(t, &faults.Plan{Refuse: func(c faults.Call) bool { return c.Operation == "Apply" }})
		_, err := rt.Start(t.Context(), startOf("a", 1))
		isError(t, "start", err, tables.ErrThrottled)
		if len(o.rows(t, "a"))+o.waitingMessages(t) != 0 {
			t.Error("something is stored")
		}
	})
}
