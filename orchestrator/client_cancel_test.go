package orchestrator

// The client's Cancel and Terminate, and signals that come too late, too early or twice. The peers' checks of
// cancellation, by their names. Their checks of work queue entries do not apply: an activity has none while it runs in
// the process that drives it. For one that another process runs see the tests of the activity queue.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
)

// undoOffice runs an orchestration that waits as its input names, and undoes its work when it is canceled: one step, a
// pause of an hour, and another.
func undoOffice(t *testing.T) *office {
	t.Helper()
	o := newOffice(t)
	undo := NewActivity("undo", func(ctx context.Context, n int) (int, error) {
		o.ledger.add(fmt.Sprintf("undo(%d)", n))
		return n, ctx.Err()
	})
	long := NewActivity("long", func(ctx context.Context, n int) (int, error) {
		select {
		case <-ctx.Done():
			o.ledger.add("told")
		case <-time.After(24 * time.Hour):
		}
		return n, ctx.Err()
	})
	child := NewOrchestrator("child", func(ctx *Context, _ string) (int, error) {
		_, err := Event[int](ctx, "never").Await()
		if reason, canceled := ctx.Canceled(); canceled {
			o.ledger.add("child: " + strings.SplitN(reason, " ", 3)[2])
		}
		return 0, err
	})
	o.orchestrators = []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, how string) (string, error) {
		var err error
		switch how {
		case "timer":
			_, err = Timer(ctx, 100*time.Hour).Await()
		case "event":
			_, err = Event[int](ctx, "never").Await()
		case "activity":
			_, err = long.Call(ctx, 1).Await()
		case "child":
			_, err = child.Call(ctx, how).Await()
		case "retry":
			_, err = undo.Call(ctx, -1).Await()
		case "coroutine":
			_, err = Go(ctx, func(ctx *Context) (int, error) { return Event[int](ctx, "never").Await() }).Await()
		case "stubborn":
			_, err = Event[int](ctx, "never").Await()
			return fmt.Sprint(errors.Is(err, ErrCanceled)), nil
		}
		reason, canceled := ctx.Canceled()
		if !canceled || !errors.Is(err, ErrCanceled) {
			return "", fmt.Errorf("canceled %v: %w", canceled, err)
		}
		if _, err := undo.Call(ctx, 0).Await(); !errors.Is(err, ErrCanceled) {
			return "", fmt.Errorf("a call that is not shielded gives %w", err)
		}
		calm := WithoutCancel(ctx)
		if _, err := undo.Call(calm, 1).Await(); err != nil {
			return "", err
		}
		if err := calm.Sleep(time.Hour); err != nil {
			return "", err
		}
		if _, err := undo.Call(calm, 2).Await(); err != nil {
			return "", err
		}
		return "", fmt.Errorf("undone, because %s: %w", reason, err)
	}), child}
	o.activities = []AnyActivity{undo, long}
	return o
}

func commandSignal(id, command string) Signal {
	return Signal{SignalID: command + id, InstanceID: id, RuntimeProvider: provider, Type: ExternalSignal, Payload: Payload{Command: command, Reason: "enough"}}
}

// A cancellation interrupts every kind of wait; half-done work is undone, and then the run ends as Canceled.
func TestCancelRuns(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"timer", "event", "child", "coroutine"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				o := undoOffice(t)
				rt := o.open(t, nil)
				o.start(t, rt, startOf("a", how))
				begin := time.Now()
				isError(t, "cancel", rt.Cancel(t.Context(), "a", "enough"), nil)
				o.rest(t, rt)
				if out := mustGet(t, rt, "a"); out.Status != Running || o.ledger.count("undo(1)") != 1 || time.Since(begin) != 0 {
					t.Errorf("%s after %v, calls %v", out.Status, time.Since(begin), o.ledger.all())
				}
				// A second one does not interrupt the undoing.
				isError(t, "cancel", rt.Cancel(t.Context(), "a", "again"), nil)
				stale, rounds := rt.Counts().Stale, len(o.stored(t, "a")[0].rounds)
				o.rest(t, rt)
				wants(t, "stale", rt.Counts().Stale, stale+1)
				wants(t, "rounds", len(o.stored(t, "a")[0].rounds), rounds)
				o.settle(t, rt)
				out := mustGet(t, rt, "a")
				if out.Status != Canceled || out.Failure.Code != "Canceled" || !out.Failure.Permanent || !strings.Contains(out.Failure.Message, "enough") || !errors.Is(out.Failure, ErrCanceled) {
					t.Errorf("%s %+v", out.Status, out.Failure)
				}
				if out.EndedAt.Sub(begin) < time.Hour || o.ledger.count("undo(1)") != 1 || o.ledger.count("undo(2)") != 1 {
					t.Errorf("it ended after %v, calls %v", out.EndedAt.Sub(begin), o.ledger.all())
				}
				if c := out.Calls[0]; c.Failure == nil || c.Failure.Code != "Canceled" || c.EndedAt.IsZero() {
					t.Errorf("what was interrupted: %+v", c)
				}
				if how == "child" {
					child := mustGet(t, rt, out.Calls[0].Child)
					wants(t, "child", child.Status, Canceled)
					wants(t, "child was told", o.ledger.count("child: a canceled it"), 1)
				}
				for _, c := range out.Calls[1:] {
					if c.Failure != nil {
						t.Errorf("the undoing was interrupted: %+v", c)
					}
				}
				o.onceEach(t, "a")
				// A message does not revive it, but a restart does.
				wants(t, "run", mustRun(t, rt, startOf("a", how)).Status, Canceled)
				_, err := rt.Rewind(t.Context(), "a", "")
				isError(t, "rewind", err, ErrEnded)
				_, err = rt.Restart(t.Context(), "a", "")
				isError(t, "restart", err, nil)
				o.rest(t, rt)
				wants(t, "restarted", mustGet(t, rt, "a").Status, Running)
			})
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	inBubbles(t, map[string]func(*testing.T){
		"a running activity is told": func(t *testing.T) {
			o := undoOffice(t)
			rt := o.open(t, nil)
			done := runInBackground(t.Context(), rt, startOf("a", "activity"))
			time.Sleep(time.Minute)
			begin := time.Now()
			ended := make(chan ran, 1)
			go func() {
				out, err := rt.Deliver(t.Context(), commandSignal("a", commandCancel))
				ended <- ran{out, err}
			}()
			synctest.Wait()
			if o.ledger.count("told") != 1 || o.ledger.count("undo(1)") != 1 || time.Since(begin) != 0 {
				t.Errorf("calls %v", o.ledger.all())
			}
			for _, c := range []<-chan ran{done, ended} {
				if got := <-c; got.err != nil {
					t.Error(got.err)
				}
			}
			o.settle(t, rt)
			wants(t, "status", mustGet(t, rt, "a").Status, Canceled)
			o.onceEach(t, "a")
		},
		"code that goes on regardless": func(t *testing.T) {
			o := undoOffice(t)
			rt := o.open(t, nil)
			o.start(t, rt, startOf("a", "stubborn"))
			isError(t, "cancel", rt.Cancel(t.Context(), "a", ""), nil)
			o.settle(t, rt)
			if out := mustGet(t, rt, "a"); out.Status != Completed || string(out.Output) != `"true"` {
				t.Errorf("%s %s", out.Status, out.Output)
			}
		},
		"while it is suspended": func(t *testing.T) {
			o := undoOffice(t)
			rt := o.open(t, nil)
			o.start(t, rt, startOf("a", "event"))
			isError(t, "suspend", rt.Suspend(t.Context(), "a", ""), nil)
			o.settle(t, rt)
			wants(t, "suspended", mustGet(t, rt, "a").Status, Suspended)
			isError(t, "cancel", rt.Cancel(t.Context(), "a", "enough"), nil)
			o.settle(t, rt)
			if out := mustGet(t, rt, "a"); out.Status != Canceled || o.ledger.count("undo(2)") != 1 {
				t.Errorf("%s, calls %v", out.Status, o.ledger.all())
			}
			o.stored(t, "a")
		},
		"while it is pending": func(t *testing.T) {
			for command, want := range map[string]Status{commandCancel: Canceled, commandTerminate: Terminated} {
				o := undoOffice(t)
				rt := o.open(t, nil)
				s := startOf("a", "event")
				noError(t, errorOf(rt.Start(t.Context(), s)))
				out, err := rt.Deliver(t.Context(), commandSignal("a", command))
				if err != nil || out.Status != want || len(out.Calls) != 0 || !strings.Contains(out.Failure.Message, "enough") {
					t.Errorf("%s: %+v %v", command, out, err)
				}
				o.settle(t, rt) // the message that was to begin it
				if out := mustGet(t, rt, "a"); out.Status != want || len(o.ledger.all()) != 0 {
					t.Errorf("%s: %+v", command, out)
				}
				o.stored(t, "a")
				again, err := rt.Start(t.Context(), s) // the start that is repeated now
				if err != nil || again.Status != want || o.waitingMessages(t) != 0 {
					t.Errorf("%s: %+v %v", command, again, err)
				}
			}
		},
		"missing": func(t *testing.T) {
			o := undoOffice(t)
			rt := o.open(t, nil)
			for range 2 {
				_, err := rt.Deliver(t.Context(), commandSignal("a", commandCancel))
				isError(t, "of nobody", err, ErrNotFound)
			}
			wants(t, "rows", len(o.rows(t, "a")), 0)
		},
		"terminal": func(t *testing.T) {
			o := undoOffice(t)
			rt := o.open(t, nil)
			o.start(t, rt, startOf("a", "stubborn"))
			isError(t, "cancel", rt.Cancel(t.Context(), "a", ""), nil)
			o.settle(t, rt)
			before, counts := o.rows(t, "a"), rt.Counts()
			for i, command := range []string{commandCancel, commandTerminate, commandSuspend, commandResume} {
				s := commandSignal("a", command)
				s.SignalID = "late" + command
				if out, err := rt.Deliver(t.Context(), s); err != nil || out.Status != Completed {
					t.Errorf("%s: %+v %v", command, out, err)
				}
				counts.Stale++
				if rt.Counts() != counts {
					t.Errorf("%dth: counted %+v, want %+v", i+1, rt.Counts(), counts)
				}
			}
			o.unchanged(t, "a", before)
		},
	})
}

// A cancellation reaches everything, wherever the process that carries it out died.
func TestCancelInterrupted(t *testing.T) {
	t.Parallel()
	everyFault(t, func(t *testing.T, plan *faults.Plan) {
		o := undoOffice(t)
		rt := o.open(t, nil)
		out := o.start(t, rt, startOf("a", "child"))
		noError(t, rt.Cancel(t.Context(), "a", "enough"))
		dying := o.open(t, plan)
		for range 4 {
			o.deliver(t.Context(), t, dying) // it may die
		}
		o.settle(t, rt)
		wants(t, "states", []Status{mustGet(t, rt, "a").Status, mustGet(t, rt, out.Calls[0].Child).Status}, []Status{Canceled, Canceled})
		wants(t, "executions", []int{o.executions(t, "a"), o.executions(t, out.Calls[0].Child)}, []int{1, 1})
		if first, second := o.ledger.count("undo(1)"), o.ledger.count("undo(2)"); first < 1 || second < 1 || first+second > 3 { // one of them twice
			t.Errorf("calls %v", o.ledger.all())
		}
		o.onceEach(t, "a")
	})
}

// The subject of a signal can be over, or not begun yet. Then the signal changes nothing, is counted, and may be
// acknowledged.
func TestStaleSignals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := newOffice(t)
		step := o.ledger.step("step")
		o.orchestrators, o.activities = []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			first := Event[int](ctx, "number")
			if _, err := first.Await(); err != nil {
				return 0, err
			}
			v, err := Event[int](ctx, "number").Await()
			if err != nil {
				return 0, err
			}
			timer := Timer(ctx, 100*time.Hour)
			Cancel(ctx, timer)
			if _, err := Event[int](ctx, "number").Await(); err != nil {
				return 0, err
			}
			return step.Call(ctx, n+v).Await()
		})}, []AnyActivity{step}
		rt := o.open(t, nil)
		o.start(t, rt, startOf("a", 1))
		version := func() int64 { return o.status(t, "a").Int("StateVersion") }
		with := func(id string, change func(*Signal)) Signal {
			s := eventSignal("a", id, "number", "7")
			change(&s)
			return s
		}
		wake := func(change func(*Signal)) Signal {
			s := Signal{SignalID: "w", InstanceID: "a", RuntimeProvider: provider, Type: TimerDue}
			change(&s)
			return s
		}
		want := rt.Counts()
		check := func(what string, s Signal, stale, duplicates, rounds int) {
			t.Helper()
			before := version()
			if _, err := rt.Deliver(t.Context(), s); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			want.Stale, want.Duplicates = want.Stale+stale, want.Duplicates+duplicates
			if rt.Counts() != want || version()-before != int64(rounds) {
				t.Errorf("%s: counted %+v, want %+v; %d rounds", what, rt.Counts(), want, version()-before)
			}
			want = rt.Counts()
		}
		check("an event for a wait that never was", with("1", func(s *Signal) { s.WaitingToken = "1-9" }), 1, 0, 0)
		check("an event for a wait of another execution", with("2", func(s *Signal) { s.WaitingToken = "2-1" }), 1, 0, 0)
		check("an event with a token that is none", with("3", func(s *Signal) { s.WaitingToken = "x" }), 1, 0, 0)
		check("an event of an older version", with("4", func(s *Signal) { s.ExpectedVersion = version() - 1 }), 1, 0, 0)
		check("an event of a newer version", with("5", func(s *Signal) { s.ExpectedVersion = version() + 1 }), 1, 0, 0)
		check("a wake of a newer version", wake(func(s *Signal) { s.ExpectedVersion = version() + 1 }), 1, 0, 0)
		check("a wake of this version", wake(func(s *Signal) { s.ExpectedVersion = version() }), 0, 0, 0)
		check("a wake", wake(func(*Signal) {}), 0, 0, 0)
		check("an event for the wait", with("6", func(s *Signal) { s.WaitingToken, s.ExpectedVersion = "1-1", version() }), 0, 0, 1)
		check("the same again", with("6", func(s *Signal) { s.WaitingToken = "1-1" }), 0, 1, 0)
		check("another for the wait that is over", with("7", func(s *Signal) { s.WaitingToken = "1-1" }), 1, 0, 0)
		check("an event for no wait in particular", with("8", func(*Signal) {}), 0, 0, 1)
		check("a wake of the timer that was canceled", wake(func(s *Signal) { s.WaitingToken = "1-3" }), 1, 0, 0)
		check("the end", with("9", func(*Signal) {}), 0, 0, 2)
		check("an event after the end", with("10", func(*Signal) {}), 1, 0, 0)
		check("a wake after the end", wake(func(*Signal) {}), 0, 0, 0)
		if out := mustGet(t, rt, "a"); string(out.Output) != "9" || o.ledger.count("step(8)") != 1 {
			t.Errorf("%s %s", out.Status, out.Output)
		}
		o.onceEach(t, "a")
		isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
		_, err := rt.Deliver(t.Context(), wake(func(*Signal) {}))
		isError(t, "after the purge", err, nil)
		want.Stale++
		wants(t, "counts", rt.Counts(), want)
	})
}

// A repeated command is applied once, whether its process or its caller repeats it.
func TestCommandsAreIdempotent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := eventOffice(t)
		rt := o.open(t, nil)
		o.start(t, rt, startOf("a", 1))
		for _, step := range []struct {
			command string
			status  Status
		}{{commandSuspend, Suspended}, {commandResume, Running}, {commandTerminate, Terminated}} {
			s := commandSignal("a", step.command)
			for i := range 3 {
				before := o.rows(t, "a")
				out, err := rt.Deliver(t.Context(), s)
				if err != nil || out.Status != step.status {
					t.Errorf("%s, %d: %s %v", step.command, i, out.Status, err)
				}
				if i > 0 {
					o.unchanged(t, "a", before)
				}
			}
		}
		wants(t, "counts", rt.Counts(), Counts{Duplicates: 6}) // also those from before the end
	})
}
