package orchestrator

// The client's Restart and Rewind.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// flakyOffice runs an orchestration that calls a step, and a child which calls a step and then fails as often as
// failures; after that, it waits for the event "number".
func flakyOffice(failures int) func(*testing.T) *office {
	return func(t *testing.T) *office {
		t.Helper()
		o := newOffice(t)
		step := o.ledger.step("step")
		doubtful := NewActivity("doubtful", func(_ context.Context, n int) (int, error) {
			if o.ledger.add("doubtful") <= failures {
				return 0, errors.New("not yet")
			}
			return n, nil
		})
		child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
			v, err := step.Call(ctx, n).Await()
			if err != nil {
				return 0, err
			}
			return doubtful.Call(ctx, v).Await()
		})
		main := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			v, err := step.Call(ctx, n).Await()
			if err != nil {
				return 0, err
			}
			if v, err = child.Call(ctx, 10*v).Await(); err != nil {
				return 0, err
			}
			e, err := Event[int](ctx, "number").Await()
			return v + e, err
		})
		o.orchestrators, o.activities = []AnyOrchestrator{main, child}, []AnyActivity{step, doubtful}
		return o
	}
}

// generationOffice runs an orchestration that continues as new twice.
func generationOffice(t *testing.T) *office {
	t.Helper()
	o := newOffice(t)
	step := o.ledger.step("step")
	o.orchestrators = []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		v, err := step.Call(ctx, n).Await()
		if err != nil {
			return "", err
		}
		if v < 3 {
			return "", ContinueAsNew(v)
		}
		return fmt.Sprint("from ", n), nil
	})}
	o.activities = []AnyActivity{step}
	return o
}

func TestRestart(t *testing.T) {
	t.Parallel()
	inBubbles(t, map[string]func(*testing.T){
		"with the input of before it continued as new": func(t *testing.T) {
			o := generationOffice(t)
			rt := o.open(t, nil)
			s := startOf("a", 0)
			s.Carry, s.Reference, s.Timeout = []byte("carried"), &Reference{Key: "order"}, time.Hour
			if out := o.start(t, rt, s); out.Execution != 3 || string(out.Output) != `"from 2"` {
				t.Fatalf("%+v", out)
			}
			created := o.status(t, "a").Time("CreatedAtUtc")
			time.Sleep(time.Minute)
			for n := 2; n <= 3; n++ { // also of one that was restarted
				out, err := rt.Restart(t.Context(), "a", fmt.Sprint("r", n))
				if err != nil || out.Status != Pending || string(out.Input) != "0" || string(out.Carry) != "carried" || out.Reference.Key != "order" || out.CorrelationID != "corr" {
					t.Errorf("%+v %v", out, err)
				}
				o.settle(t, rt)
				if out = mustGet(t, rt, "a"); out.Execution != 3*n || string(out.Output) != `"from 2"` || o.ledger.count("step(0)") != n {
					t.Errorf("execution %d, calls %v", out.Execution, o.ledger.all())
				}
			}
			if again := o.status(t, "a"); !again.Time("CreatedAtUtc").Equal(created) {
				t.Errorf("created at %v, then %v", created, again.Time("CreatedAtUtc"))
			}
			started, _ := o.stored(t, "a")[3].start()
			wants(t, "timeout", started.start().Timeout, time.Hour.Microseconds())
		},
		"everything runs again": func(t *testing.T) {
			o := flakyOffice(1)(t)
			rt := o.open(t, nil)
			if out := o.start(t, rt, startOf("a", 1)); out.Status != Failed {
				t.Fatalf("%+v", out)
			}
			noError(t, errorOf(rt.Restart(t.Context(), "a", "")))
			o.rest(t, rt)
			out := mustGet(t, rt, "a")
			if out.Status != Running || out.Execution != 2 || o.ledger.count("step(1)") != 2 || o.ledger.count("step(20)") != 2 || out.Calls[0].Reused {
				t.Errorf("%s in execution %d, calls %v", out.Status, out.Execution, o.ledger.all())
			}
			if first := summarize("a", o.stored(t, "a")[0]); first.Calls[1].Child == out.Calls[1].Child {
				t.Errorf("both executions call the child %s", out.Calls[1].Child)
			}
		},
		"what it applied before": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			o.start(t, rt, startOf("a", 1))
			approved := eventSignal("a", "approval", "number", "7")
			if out, err := rt.Deliver(t.Context(), approved); err != nil || out.Status != Completed {
				t.Fatalf("%+v %v", out, err)
			}
			noError(t, errorOf(rt.Restart(t.Context(), "a", "r")))
			o.settle(t, rt)
			// Its acknowledgement was lost, so it is redelivered.
			if out, err := rt.Deliver(t.Context(), approved); err != nil || out.Status != Running {
				t.Errorf("an event of the execution before: %s %v", out.Status, err)
			}
			wants(t, "counts", rt.Counts(), Counts{Duplicates: 1})
			if out, err := rt.Deliver(t.Context(), eventSignal("a", "another", "number", "8")); err != nil || string(out.Output) != "9" {
				t.Errorf("%s %v", out.Output, err)
			}
		},
		"what is refused": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			_, err := rt.Restart(t.Context(), "a", "")
			isError(t, "of nobody", err, ErrNotFound)
			noError(t, errorOf(rt.Start(t.Context(), startOf("a", 1))))
			for range 2 { // pending, then waiting
				before := o.rows(t, "a")
				_, err = rt.Restart(t.Context(), "a", "")
				isError(t, "of one that runs", err, ErrActive)
				o.unchanged(t, "a", before)
				o.rest(t, rt)
			}
			isError(t, "terminate", rt.Terminate(t.Context(), "a", ""), nil)
			o.settle(t, rt)
			_, err = rt.Restart(t.Context(), "a", "")
			isError(t, "of one that was terminated", err, nil)
			o.settle(t, rt)
			wants(t, "status", mustGet(t, rt, "a").Status, Running)
		},
	})
}

// A restart is idempotent, wherever its process died, and also when the execution that it began has ended.
func TestRestartInterrupted(t *testing.T) {
	t.Parallel()
	prepare := func(t *testing.T) *office {
		t.Helper()
		o := generationOffice(t)
		o.start(t, o.open(t, nil), startOf("a", 0))
		return o
	}
	restart := func(ctx context.Context, rt *Runtime) error { _, err := rt.Restart(ctx, "a", "r"); return err }
	interrupted(t, prepare, restart, func(t *testing.T, o *office, rt *Runtime) {
		t.Helper()
		wants(t, "executions", o.executions(t, "a"), 6)
		wants(t, "calls", o.ledger.all(), map[string]int{"step(0)": 2, "step(1)": 2, "step(2)": 2})
		wants(t, "status", mustGet(t, rt, "a").Status, Completed)
	})
}

func TestRewind(t *testing.T) {
	t.Parallel()
	inBubbles(t, map[string]func(*testing.T){
		"completed calls keep their results": func(t *testing.T) {
			o := flakyOffice(2)(t)
			rt := o.open(t, nil)
			if out := o.start(t, rt, startOf("a", 1)); out.Status != Failed {
				t.Fatalf("%+v", out)
			}
			for n := 2; n <= 3; n++ {
				out, err := rt.Rewind(t.Context(), "a", fmt.Sprint("r", n))
				if err != nil || out.Status != Pending || out.Execution != n {
					t.Fatalf("%+v %v", out, err)
				}
				o.settle(t, rt)
				wants(t, "calls", o.ledger.all(), map[string]int{"step(1)": 1, "step(20)": 1, "doubtful": n})
			}
			out := mustGet(t, rt, "a")
			if out.Status != Running || !out.Calls[0].Reused || string(out.Calls[1].Output) != "21" || len(out.Earlier) != 2 {
				t.Errorf("%+v", out)
			}
			// The child also continued with its next executions.
			if child := mustGet(t, rt, out.Calls[1].Child); child.Execution != 3 || child.Status != Completed || !child.Calls[0].Reused {
				t.Errorf("%+v", child)
			}
			isError(t, "raise", rt.Raise(t.Context(), "a", "number", 4, ""), nil)
			o.settle(t, rt)
			wants(t, "output", string(mustGet(t, rt, "a").Output), "25")
			o.executions(t, out.Calls[1].Child)
		},
		// A mistake of the code itself would recur with the same results, so none of them is kept.
		"code that was repaired": func(t *testing.T) {
			o := newOffice(t)
			step := o.ledger.step("step")
			fixed := false
			o.orchestrators = []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				v, err := step.Call(ctx, n).Await()
				if err == nil && !fixed {
					err = errors.New("a mistake")
				}
				return v, err
			})}
			o.activities = []AnyActivity{step}
			rt := o.open(t, nil)
			o.start(t, rt, startOf("a", 1))
			fixed = true
			noError(t, errorOf(rt.Rewind(t.Context(), "a", "")))
			o.settle(t, rt)
			out := mustGet(t, rt, "a")
			if out.Status != Completed || string(out.Output) != "2" || out.Calls[0].Reused {
				t.Errorf("%+v", out)
			}
			wants(t, "calls", o.ledger.all(), map[string]int{"step(1)": 2})
		},
		"an activity that was repaired, and its caller": func(t *testing.T) {
			o := newOffice(t)
			step, more := o.ledger.step("step"), o.ledger.step("more")
			fixed := false
			check := NewActivity("check", func(_ context.Context, n int) (int, error) {
				if !fixed {
					return 0, errors.New("a mistake")
				}
				return n, nil
			})
			o.orchestrators = []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				if fixed {
					if _, err := more.Call(ctx, n).Await(); err != nil {
						return 0, err
					}
				}
				v, err := step.Call(ctx, n).Await()
				if err != nil {
					return 0, err
				}
				return check.Call(ctx, v).Await()
			})}
			o.activities = []AnyActivity{step, more, check}
			rt := o.open(t, nil)
			o.start(t, rt, startOf("a", 1))
			fixed = true
			noError(t, errorOf(rt.Rewind(t.Context(), "a", "")))
			o.settle(t, rt)
			if out := mustGet(t, rt, "a"); out.Status != Completed || string(out.Output) != "2" {
				t.Errorf("%+v", out)
			}
			wants(t, "calls", o.ledger.all(), map[string]int{"step(1)": 1, "more(1)": 1})
		},
		// The events that the failed execution has read are requested again, and delivered.
		"events that it has read": func(t *testing.T) {
			o := newOffice(t)
			bad := true
			o.orchestrators = []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
				v, err := Event[int](ctx, "number").Await()
				if err == nil && bad {
					err = errors.New("not yet")
				}
				return v, err
			})}
			rt := o.open(t, nil)
			o.start(t, rt, startOf("a", 1))
			event := eventSignal("a", "1", "number", "7")
			if out, err := rt.Deliver(t.Context(), event); err != nil || out.Status != Failed {
				t.Fatalf("%+v %v", out, err)
			}
			for n := 2; n <= 3; n++ { // it fails once more
				bad = n == 2
				noError(t, errorOf(rt.Rewind(t.Context(), "a", fmt.Sprint("r", n))))
				o.settle(t, rt)
			}
			wants(t, "output", string(mustGet(t, rt, "a").Output), "7")
			if _, err := rt.Deliver(t.Context(), event); err != nil {
				t.Error(err)
			}
			wants(t, "counts", rt.Counts(), Counts{Duplicates: 1}) // the run has received it
		},
		"only after a failure": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			refused := func(what string, want error) {
				t.Helper()
				before := o.rows(t, "a")
				_, err := rt.Rewind(t.Context(), "a", "r")
				isError(t, what, err, want)
				o.unchanged(t, "a", before)
			}
			refused("of nobody", ErrNotFound)
			noError(t, errorOf(rt.Start(t.Context(), startOf("a", 1))))
			refused("of one that is pending", ErrActive)
			o.rest(t, rt)
			refused("of one that waits", ErrActive)
			isError(t, "raise", rt.Raise(t.Context(), "a", "number", 1, ""), nil)
			o.rest(t, rt)
			refused("of one that completed", ErrEnded)
			noError(t, errorOf(rt.Restart(t.Context(), "a", "")))
			o.rest(t, rt)
			isError(t, "terminate", rt.Terminate(t.Context(), "a", ""), nil)
			o.rest(t, rt)
			refused("of one that was terminated", ErrEnded)
		},
	})
}

// A rewind is idempotent, wherever its process died.
func TestRewindInterrupted(t *testing.T) {
	t.Parallel()
	prepare := func(t *testing.T) *office {
		t.Helper()
		o := flakyOffice(1)(t)
		if out := o.start(t, o.open(t, nil), startOf("a", 1)); out.Status != Failed {
			t.Fatalf("%+v", out)
		}
		return o
	}
	rewind := func(ctx context.Context, rt *Runtime) error { _, err := rt.Rewind(ctx, "a", "r"); return err }
	interrupted(t, prepare, rewind, func(t *testing.T, o *office, rt *Runtime) {
		t.Helper()
		wants(t, "executions", o.executions(t, "a"), 2)
		out := mustGet(t, rt, "a")
		wants(t, "status", out.Status, Running)
		wants(t, "executions of the child", o.executions(t, out.Calls[1].Child), 2)
		wants(t, "calls", o.ledger.all(), map[string]int{"step(1)": 1, "step(20)": 1, "doubtful": 2})
	})
}

// A rewind that is repeated when the execution that it began has failed, and others have followed, begins no other.
func TestRewindRepeatedLater(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := flakyOffice(100)(t)
		rt := o.open(t, nil)
		s := startOf("a", 1)
		o.start(t, rt, s)
		noError(t, errorOf(rt.Rewind(t.Context(), "a", "r")))
		o.settle(t, rt)
		mustRun(t, rt, s) // the next attempt of a message
		wants(t, "executions before", o.executions(t, "a"), 3)
		out, err := rt.Rewind(t.Context(), "a", "r")
		o.settle(t, rt)
		if err != nil || out.Status != Failed || o.executions(t, "a") != 3 {
			t.Errorf("%s, %d executions, %v", out.Status, o.executions(t, "a"), err)
		}
	})
}
