package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
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

// sequence calls step n times, each with the result of the one before.
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

// The budget of the design, less the five transactions that the pipeline and the host need around it.
func TestFanOutIsAFewRounds(t *testing.T) {
	t.Parallel()
	for n, budget := range map[int]int{100: 12 - 4, 1000: 60 - 4} {
		synctest.Test(t, func(t *testing.T) {
			w, l, plan := newWorld(t), &ledger{}, &faults.Plan{}
			// Each activity takes a little longer than the one before, so results come one by one.
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

func TestRetryFollowsItsPolicy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options   []CallOption
		failures  int
		permanent bool
		attempts  int
		elapsed   time.Duration
		status    Status
	}{
		"no policy, no retry":   {failures: 1, attempts: 1, status: Failed},
		"succeeds at the third": {options: []CallOption{WithRetry(Retry{MaxAttempts: 3})}, failures: 2, attempts: 3, elapsed: 3 * time.Second, status: Completed},
		"gives up":              {options: []CallOption{WithRetry(Retry{MaxAttempts: 3})}, failures: 9, attempts: 3, elapsed: 3 * time.Second, status: Failed},
		"permanent at once":     {options: []CallOption{WithRetry(Retry{MaxAttempts: 3})}, failures: 9, permanent: true, attempts: 1, status: Failed},
		"capped": {options: []CallOption{WithRetry(Retry{MaxAttempts: 4, FirstInterval: time.Minute, Coefficient: 10, MaxInterval: 2 * time.Minute})},
			failures: 3, attempts: 4, elapsed: 5 * time.Minute, status: Completed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				boom := errors.New("boom")
				step := NewActivity("step", func(ctx context.Context, n int) (int, error) {
					if got := l.add("step"); got > tt.failures {
						return n, nil
					} else if info := Info(ctx); info.Attempt != got || info.IdempotencyKey() != "a/1/1" {
						t.Errorf("call %d has info %+v", got, info)
					}
					if tt.permanent {
						return 0, Permanent(boom)
					}
					return 0, boom
				}, tt.options...)
				begin := time.Now()
				out := mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 1))
				if got := l.count("step"); out.Status != tt.status || got != tt.attempts || time.Since(begin) != tt.elapsed {
					t.Errorf("%s after %d attempts in %v (%v)", out.Status, got, time.Since(begin), out.Failure)
				}
				if out.Calls[0].Attempts != tt.attempts {
					t.Errorf("the rounds count %d attempts", out.Calls[0].Attempts)
				}
				if out.Failure != nil && out.Failure.Permanent != tt.permanent {
					t.Errorf("failure: %+v", out.Failure)
				}
				w.stored(t, "a")
			})
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
	// What is stored of an execution that took results over can be read back, too.
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

func TestReplayThatDecidesDifferentlyStalls(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step, other := l.step("step"), l.step("other")
	block := NewActivity("block", func(ctx context.Context, n int) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	flow := func(first *Activity[int, int], input int) *Orchestrator[int, int] {
		return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			v, err := first.Call(ctx, input).Await()
			if err != nil {
				return 0, err
			}
			return block.Call(ctx, v).Await()
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	rt := w.process(t, nil, flow(step, 1), step, block, other)
	go func() {
		for l.count("step(1)") == 0 {
			runtime.Gosched()
		}
		cancel()
	}()
	if out, err := rt.Run(ctx, startOf("a", 1)); err != nil || out.Status != Running {
		t.Fatalf("%+v %v", out, err)
	}
	before := w.stored(t, "a")
	tests := map[string]AnyOrchestrator{
		"another activity": flow(other, 1),
		"another input":    flow(step, 2),
		"no call at all":   NewOrchestrator("test", func(*Context, int) (int, error) { return 0, nil }),
		"a panic":          NewOrchestrator("test", func(*Context, int) (int, error) { panic("new bug") }),
	}
	for name, o := range tests {
		plan := &faults.Plan{}
		_, err := w.process(t, plan, o, step, block, other).Run(t.Context(), Start{ID: "a", Orchestrator: "test", Input: []byte("1"), CorrelationID: "corr", Resume: true})
		stalled, ok := errors.AsType[*DeterminismError](err)
		if !ok || stalled.Round != 1 || !strings.Contains(stalled.Recorded, "activity step with input 1") || stalled.Decided == stalled.Recorded {
			t.Errorf("%s: %v", name, err)
		}
		if applies(plan.Calls()) != 0 {
			t.Errorf("%s: a stalled orchestration was changed", name)
		}
	}
	if diff := cmp.Diff(before, w.stored(t, "a"), cmp.AllowUnexported(generation{})); diff != "" {
		t.Errorf("rounds (-before +after):\n%s", diff)
	}
}

func TestParkAtTheDeadlineAndResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		first := l.step("first")
		slow := NewActivity("slow", func(ctx context.Context, n int) (int, error) {
			if l.add("slow") == 1 {
				<-ctx.Done()
				return 0, fmt.Errorf("interrupted: %w", ctx.Err())
			}
			return n, nil
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			v, err := first.Call(ctx, n).Await()
			if err != nil {
				return 0, err
			}
			return slow.Call(ctx, v).Await()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := w.process(t, nil, o, first, slow).Run(ctx, startOf("a", 1))
		if err != nil || out.Status != Running || out.ResumeAt.After(time.Now()) {
			t.Fatalf("%+v %v", out, err)
		}
		out = mustRun(t, w.process(t, nil, o, first, slow), startOf("a", 1))
		if out.Status != Completed || out.Execution != 1 || string(out.Output) != "2" || out.Calls[1].Attempts != 1 {
			t.Errorf("resumed: %+v", out)
		}
		if l.count("first(1)") != 1 || l.count("slow") != 2 {
			t.Errorf("calls: %v", l.calls)
		}
		w.stored(t, "a")
	})
}

func TestParkWhenTheNextAttemptIsFarAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := NewActivity("step", func(_ context.Context, n int) (int, error) {
			if l.add("step") == 1 {
				return 0, errors.New("boom")
			}
			return n, nil
		}, WithRetry(Retry{MaxAttempts: 2, FirstInterval: time.Hour, MaxInterval: time.Hour}))
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		out, err := w.process(t, nil, sequence(step), step).Run(ctx, startOf("a", 1))
		if err != nil || out.Status != Running || time.Since(begin) > time.Second {
			t.Fatalf("%+v %v after %v", out, err, time.Since(begin))
		}
		if got := out.ResumeAt.Sub(begin).Round(time.Second); got != time.Hour {
			t.Errorf("to be resumed after %v", got)
		}
		out = mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 1))
		if out.Status != Completed || time.Since(begin).Round(time.Second) != time.Hour || l.count("step") != 2 {
			t.Errorf("%s after %v and %d attempts", out.Status, time.Since(begin), l.count("step"))
		}
		w.stored(t, "a")
	})
}

func TestActivityTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		step := NewActivity("step", func(ctx context.Context, n int) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, WithTimeout(time.Minute))
		out := mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 1))
		if out.Status != Failed || !strings.Contains(out.Failure.Message, "no result within 1m0s") {
			t.Errorf("%s: %v", out.Status, out.Failure)
		}
	})
}

func TestUserCodeThatMisbehaves(t *testing.T) {
	t.Parallel()
	step := NewActivity("step", func(_ context.Context, n int) (int, error) {
		switch n {
		case 1:
			panic("activity bug")
		case 2:
			runtime.Goexit()
		}
		return n, nil
	})
	unregistered := NewActivity("unregistered", func(_ context.Context, n int) (int, error) { return n, nil })
	unencodable := NewActivity("step", func(context.Context, func()) (int, error) { return 0, nil })
	tests := map[string]struct {
		fn   func(*Context, int) (int, error)
		want string
	}{
		"activity panics":  {func(ctx *Context, _ int) (int, error) { return step.Call(ctx, 1).Await() }, "panic: activity bug"},
		"activity Goexits": {func(ctx *Context, _ int) (int, error) { return step.Call(ctx, 2).Await() }, "called runtime.Goexit"},
		"panics":           {func(ctx *Context, _ int) (int, error) { panic("orchestrator bug") }, "panic: orchestrator bug"},
		"panics later": {func(ctx *Context, _ int) (int, error) {
			if _, err := step.Call(ctx, 3).Await(); err != nil {
				return 0, err
			}
			panic("late bug")
		}, "panic: late bug"},
		"input that is no JSON": {func(ctx *Context, _ int) (int, error) {
			return unencodable.Call(ctx, func() {}).Await()
		}, "unsupported type"},
		"policy that makes no sense": {func(ctx *Context, _ int) (int, error) {
			return step.Call(ctx, 3, WithRetry(Retry{Coefficient: 0.5, Jitter: 2})).Await()
		}, "Coefficient is below 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			out := mustRun(t, w.process(t, nil, NewOrchestrator("test", tt.fn), step), startOf("a", 0))
			if out.Status != Failed || !strings.Contains(out.Failure.Message, tt.want) {
				t.Errorf("%s: %v", out.Status, out.Failure)
			}
			w.stored(t, "a")
		})
	}
	t.Run("unknown activity", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) { return unregistered.Call(ctx, 1).Await() })
		if _, err := w.process(t, nil, o).Run(t.Context(), startOf("a", 0)); !errors.Is(err, ErrUnknownActivity) || !strings.Contains(err.Error(), `"unregistered"`) {
			t.Errorf("error %v", err)
		}
		// It waits for a process that knows the activity.
		if out := mustRun(t, w.process(t, nil, o, unregistered), startOf("a", 0)); out.Status != Completed || out.Execution != 1 {
			t.Errorf("%+v", out)
		}
	})
	t.Run("orchestrator Goexits", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		o := NewOrchestrator("test", func(*Context, int) (int, error) { runtime.Goexit(); return 0, nil })
		if _, err := w.process(t, nil, o).Run(t.Context(), startOf("a", 0)); err == nil || !strings.Contains(err.Error(), "Goexit") {
			t.Errorf("error %v", err)
		}
	})
}

// Leaving an orchestrator that waits runs its deferred functions once, and no recover keeps it going.
func TestLeavingRunsDeferredFunctions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	var deferred, survived atomic.Int32
	block := NewActivity("block", func(ctx context.Context, n int) (int, error) {
		cancel()
		<-ctx.Done()
		return 0, ctx.Err()
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		defer func() { deferred.Add(1); panic("in a deferred function") }()
		for {
			func() {
				defer func() { _ = recover() }()
				_, _ = block.Call(ctx, n).Await()
				survived.Add(1)
			}()
		}
	})
	out, err := w.process(t, nil, o, block).Run(ctx, startOf("a", 0))
	if err != nil || out.Status != Running || deferred.Load() != 1 || survived.Load() != 0 {
		t.Errorf("%v %v, deferred %d times, went on %d times", out.Status, err, deferred.Load(), survived.Load())
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

func TestLargePayloadsSpill(t *testing.T) {
	t.Parallel()
	w, plan := newWorld(t), &faults.Plan{}
	// Random enough not to compress away, and several rounds of it.
	big := NewActivity("big", func(_ context.Context, size int) (string, error) {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, "%x", hashOf([]byte(fmt.Sprint(size, i))))
		}
		return b.String()[:size], nil
	})
	length := NewActivity("length", func(_ context.Context, s string) (int, error) { return len(s), nil })
	o := NewOrchestrator("test", func(ctx *Context, sizes []int) (int, error) {
		var all []*Future[string]
		for _, size := range sizes {
			all = append(all, big.Call(ctx, size))
		}
		texts, err := All(all...)
		if err != nil {
			return 0, err
		}
		return length.Call(ctx, strings.Join(texts, "")).Await()
	})
	sizes := []int{100, spillFrom - 3, spillFrom, 900_000, 60_000, 60_001, 60_002, 60_003, 60_004, 60_005, 60_006, 60_007, 60_008, 60_009, 60_010, 60_011, 60_012}
	total := 0
	for _, s := range sizes {
		total += s
	}
	warm := mustRun(t, w.process(t, plan, o, big, length), startOf("a", sizes))
	if string(warm.Output) != fmt.Sprint(total) {
		t.Errorf("output %s, want %d (%v)", warm.Output, total, warm.Failure)
	}
	puts := 0
	for i, c := range plan.Calls() {
		if c.Operation == "Put" {
			puts++
			if plan.Calls()[len(plan.Calls())-1].Operation == "Put" {
				t.Errorf("call %d puts a blob after the last round", i)
			}
		}
	}
	if puts < 3 {
		t.Errorf("%d payloads spilled", puts)
	}
	cold := mustRun(t, w.process(t, nil, o, big, length), startOf("a", sizes))
	for i, c := range cold.Calls {
		if !bytes.Equal(c.Output, warm.Calls[i].Output) {
			t.Errorf("call %d: %d bytes read back of %d", i, len(c.Output), len(warm.Calls[i].Output))
		}
	}
}

func TestATurnThatDecidesTooMuchFailsWithAName(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := NewActivity("step", func(_ context.Context, s string) (int, error) { l.add("step"); return 0, nil })
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		for i := range n {
			step.Call(ctx, hashOf([]byte(fmt.Sprint(i)))+hashOf([]byte(fmt.Sprint(-i))))
		}
		return 0, nil
	})
	out := mustRun(t, w.process(t, nil, o, step), startOf("a", 20_000))
	if out.Status != Failed || !out.Failure.Permanent || !strings.Contains(out.Failure.Message, "the turn after ExecutionStarted") {
		t.Errorf("%s: %v", out.Status, out.Failure)
	}
	if l.count("step") != 0 {
		t.Errorf("%d calls of a round that was not committed ran", l.count("step"))
	}
	w.stored(t, "a")
}

func TestOneDriverInAProcess(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	running, release := make(chan struct{}), make(chan struct{})
	step := NewActivity("step", func(_ context.Context, n int) (int, error) {
		l.add("step")
		close(running)
		<-release
		return n, nil
	})
	rt := w.process(t, nil, sequence(step), step)
	outcomes := make(chan Outcome, 2)
	run := func() {
		out, err := rt.Run(context.Background(), startOf("a", 1))
		if err != nil {
			t.Error(err)
		}
		outcomes <- out
	}
	go run()
	<-running
	if _, err := rt.Run(t.Context(), Start{ID: "a", Orchestrator: "test", Input: []byte("1"), CorrelationID: "another"}); !errors.Is(err, ErrConflict) {
		t.Errorf("another correlation id: %v", err)
	}
	go run()
	close(release)
	first, second := <-outcomes, <-outcomes
	if l.count("step") != 1 || first.Status != Completed || second.Status != Completed {
		t.Errorf("%d calls, %s, %s", l.count("step"), first.Status, second.Status)
	}
}

func TestTwoProcessesCannotBothCommit(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := l.step("step")
	const processes = 4
	errs := make(chan error, processes)
	for range processes {
		rt := w.process(t, nil, sequence(step), step)
		go func() {
			for {
				out, err := rt.Run(context.Background(), startOf("a", 20))
				if errors.Is(err, ErrElsewhere) {
					continue
				}
				if err == nil && string(out.Output) != "20" {
					err = fmt.Errorf("output %s", out.Output)
				}
				errs <- err
				return
			}
		}()
	}
	for range processes {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	all := w.stored(t, "a")
	if len(all) != 1 || len(all[0].rounds) != 21 {
		t.Errorf("%d executions", len(all))
	}
}

func TestAnIDBelongsToOneOrchestration(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := l.step("step")
	mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 1))
	s := startOf("a", 1)
	s.CorrelationID = "another"
	if _, err := w.process(t, nil, sequence(step), step).Run(t.Context(), s); !errors.Is(err, ErrConflict) {
		t.Errorf("another correlation id: %v", err)
	}
	s = startOf("a", 1)
	s.Orchestrator = "unknown"
	if _, err := w.process(t, nil, sequence(step), step).Run(t.Context(), s); !errors.Is(err, ErrUnknownOrchestrator) {
		t.Errorf("unknown orchestrator: %v", err)
	}
	for _, s := range []Start{{Orchestrator: "test", Input: []byte("1")}, {ID: "a", Orchestrator: "test", Input: []byte("{")},
		{ID: strings.Repeat("x", 401), Orchestrator: "test", Input: []byte("1")}, {ID: "\xff", Orchestrator: "test", Input: []byte("1")}} {
		if _, err := w.process(t, nil, sequence(step), step).Run(t.Context(), s); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	for _, id := range []string{"a/b\\c#d?e", "zürich 日本", "-", strings.Repeat("?", 100)} {
		if out := mustRun(t, w.process(t, nil, sequence(step), step), startOf(id, 1)); out.Status != Completed {
			t.Errorf("%q: %s", id, out.Status)
		}
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
	if !strings.Contains(log.String(), "orchestration=a execution=1 correlationId=corr") {
		t.Error(log.String())
	}
}

func TestNewNamesEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := New(Config{MaxActivities: -1, Orchestrators: []AnyOrchestrator{&Orchestrator[int, int]{}, &Orchestrator[int, int]{name: "a"}, &Orchestrator[int, int]{name: "a"}},
		Activities: []AnyActivity{NewActivity[int, int]("", nil), (&ledger{}).step("x"), (&ledger{}).step("x")}})
	for _, want := range []string{"tables and blobs", "MaxActivities", "orchestrator needs a name", "orchestrator a is registered twice", "activity needs", "activity x is registered twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestPrepareCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rt, err := New(Config{Tables: w.tables, Blobs: w.blobs, Table: "others", Container: "others"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := rt.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.tables.Query(t.Context(), "others", tables.Query{Partition: "x"}); err != nil {
		t.Error(err)
	}
}
