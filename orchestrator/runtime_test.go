package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// sequence calls step n times, each with the previous result.
func sequence(step *Activity[int, int]) *Orchestrator[int, int] {
	return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		v := 0
		for range n {
			var err error
			if v, err = step.Call(ctx, v).Await(); err != nil {
				return 0, err
			}
		}
		return v, nil
	})
}

func fanOut(step *Activity[int, int]) *Orchestrator[int, int] {
	return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		var futures []*Future[int]
		for i := range n {
			futures = append(futures, step.Call(ctx, i))
		}
		results, err := All(futures...)
		sum := 0
		for _, r := range results {
			sum += r
		}
		return sum, err
	})
}

func TestSequenceCostsOneTransactionAStep(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 3, 50} {
		w, l, plan := newWorld(t), &ledger{}, &faults.Plan{}
		step := l.step("step")
		out := mustRun(t, w.process(t, plan, sequence(step), step), startOf("a", n))
		if out.Status != Completed || string(out.Output) != fmt.Sprint(n) {
			t.Errorf("%d steps: %s %s %v", n, out.Status, out.Output, out.Failure)
		}
		want := []faults.Call{}
		for range n + 1 {
			want = append(want, faults.Call{Service: "tables", Operation: "Apply", Target: "orchestrations"})
		}
		if diff := cmp.Diff(want, plan.Calls()); diff != "" {
			t.Errorf("%d steps: storage calls (-want +got):\n%s", n, diff)
		}
		w.stored(t, "a")
	}
}

// The budget of the design, less the five transactions that the pipeline and the host need.
func TestFanOutIsAFewRounds(t *testing.T) {
	t.Parallel()
	for n, budget := range map[int]int{100: 12 - 4, 1000: 60 - 4} {
		synctest.Test(t, func(t *testing.T) {
			w, l, plan := newWorld(t), &ledger{}, &faults.Plan{}
			// Each activity takes a little longer than the previous one, so results arrive one by one.
			step := NewActivity("step", func(ctx context.Context, i int) (int, error) {
				l.add("step")
				time.Sleep(time.Duration(i) * time.Millisecond)
				return 1, nil
			})
			out := mustRun(t, w.process(t, plan, fanOut(step), step), startOf("a", n))
			if string(out.Output) != fmt.Sprint(n) || l.count("step") != n {
				t.Errorf("fan-out of %d: output %s after %d calls", n, out.Output, l.count("step"))
			}
			if got := applies(plan.Calls()); got > budget {
				t.Errorf("fan-out of %d took %d rounds, %d are allowed", n, got, budget)
			}
			w.stored(t, "a")
		})
	}
}

func TestAwaitGivesTheActivitysError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	step := NewActivity("step", func(context.Context, int) (int, error) { return 0, Permanent(errors.New("no such vault")) })
	var got error
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		_, got = step.Call(ctx, n).Await()
		return "handled", nil
	})
	out := mustRun(t, w.process(t, nil, o, step), startOf("a", 1))
	failed, ok := errors.AsType[*ActivityError](got)
	if !ok || failed.Activity != "step" || failed.Failure.Message != "no such vault" || !IsPermanent(got) {
		t.Errorf("Await gave %v", got)
	}
	if out.Status != Completed || string(out.Output) != `"handled"` {
		t.Errorf("%s %s", out.Status, out.Output)
	}
}

func TestAFailedOrchestrationKeepsWhatCompleted(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	first, third := l.step("first"), l.step("third")
	var broken atomic.Bool
	broken.Store(true)
	second := NewActivity("second", func(_ context.Context, n int) (int, error) {
		l.add("second")
		if broken.Load() {
			return 0, errors.New("boom")
		}
		return n, nil
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		v, err := first.Call(ctx, n).Await()
		if err != nil {
			return 0, err
		}
		if v, err = second.Call(ctx, v).Await(); err != nil {
			return 0, err
		}
		return third.Call(ctx, v).Await()
	})
	before := mustRun(t, w.process(t, nil, o, first, second, third), startOf("a", 1))
	if before.Status != Failed || before.Execution != 1 || !strings.Contains(before.Failure.Message, "boom") {
		t.Fatalf("first execution: %+v", before)
	}
	again := mustRun(t, w.process(t, nil, o, first, second, third), startOf("a", 1))
	if again.Status != Failed || again.Execution != 2 || len(again.Earlier) != 1 {
		t.Fatalf("second execution: %+v", again)
	}
	broken.Store(false)
	after := mustRun(t, w.process(t, nil, o, first, second, third), startOf("a", 1))
	if after.Status != Completed || after.Execution != 3 || string(after.Output) != "3" || len(after.Earlier) != 2 {
		t.Fatalf("third execution: %+v", after)
	}
	if l.count("first(1)") != 1 || l.count("second") != 3 || l.count("third(2)") != 1 {
		t.Errorf("calls: %v", l.calls)
	}
	if !after.Calls[0].EndedAt.Equal(before.Calls[0].EndedAt) || !after.Calls[0].ScheduledAt.Equal(before.Calls[0].ScheduledAt) {
		t.Error("a result that was taken over has lost its times")
	}
	// The stored execution that took results over can be read back, too.
	cold := mustRun(t, w.process(t, nil, o, first, second, third), startOf("a", 1))
	if diff := cmp.Diff(after, cold, cmp.AllowUnexported(Call{}, origin{}), cmpopts.IgnoreFields(Outcome{}, "Rounds")); diff != "" {
		t.Errorf("looked up again (-ran +looked up):\n%s", diff)
	}
	got, err := w.process(t, nil, o).Get(t.Context(), "a")
	if diff := cmp.Diff(after, got, cmp.AllowUnexported(Call{}, origin{}), cmpopts.IgnoreFields(Outcome{}, "Rounds")); diff != "" || err != nil {
		t.Errorf("Get: %v (-ran +got):\n%s", err, diff)
	}
	if _, err := w.process(t, nil, o).Get(t.Context(), "b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get of nothing: %v", err)
	}
	w.stored(t, "a")
}

func TestACompletedOrchestrationIsOnlyLookedUp(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := l.step("step")
	warm := mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 2))
	for _, resume := range []bool{false, true} {
		plan := &faults.Plan{}
		s := startOf("a", 2)
		s.Resume = resume
		// No activity is registered: nothing may run.
		cold := mustRun(t, w.process(t, plan, sequence(step)), s)
		if diff := cmp.Diff(warm, cold, cmp.AllowUnexported(Call{}, origin{}), cmpopts.IgnoreFields(Outcome{}, "Rounds")); diff != "" {
			t.Errorf("looked up (-ran +looked up):\n%s", diff)
		}
		for _, c := range plan.Calls() {
			if resume && c.Operation != "Query" {
				t.Errorf("a look-up made the call %v", c)
			}
		}
	}
	if l.count("step(0)") != 1 {
		t.Errorf("calls: %v", l.calls)
	}
}

func TestCallsThatNobodyWaitsForAreCarriedOut(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		step.Call(ctx, 1)
		step.Call(ctx, 2)
		return "done", nil
	})
	out := mustRun(t, w.process(t, nil, o, step), startOf("a", 0))
	if out.Status != Completed || out.Calls[0].Output == nil || out.Calls[1].Output == nil {
		t.Errorf("%+v", out)
	}
}

func TestLoggerKeepsSilentInReplay(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	var log bytes.Buffer
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		for i := range n {
			ctx.Logger().Info("before", "step", i)
			if _, err := step.Call(ctx, i).Await(); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	for _, plan := range []*faults.Plan{{At: 3, Fault: faults.CrashAfter}, {}} {
		rt := w.process(t, plan, o, step)
		rt.config.Log = slog.New(slog.NewTextHandler(&log, nil))
		s := startOf("a", 4)
		s.Resume = plan.At == 0
		out, err := rt.Run(t.Context(), s)
		if plan.Crashed() != (err != nil) || (err == nil && out.Status != Completed) {
			t.Fatal(out.Status, err)
		}
	}
	for i := range 4 {
		if got := strings.Count(log.String(), fmt.Sprintf("step=%d", i)); got != 1 {
			t.Errorf("step %d is logged %d times:\n%s", i, got, log.String())
		}
	}
	if !strings.Contains(log.String(), "orchestrationId=a correlationId=corr tenantId=contoso execution=1") {
		t.Error(log.String())
	}
}

func TestPrepareCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rt := must(New(Config{Tables: w.tables, Blobs: w.blobs, Table: "others", Container: "others"}))(t)
	for range 2 {
		noError(t, rt.Prepare(t.Context()))
	}
	if _, err := w.tables.Query(t.Context(), "others", tables.Query{Partition: "x"}); err != nil {
		t.Error(err)
	}
}
