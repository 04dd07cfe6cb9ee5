package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
)

// scenario is an orchestration that is to survive everything.
type scenario struct {
	make   func(l *ledger) ([]AnyOrchestrator, []AnyActivity)
	output string
	// most says how often an activity may run when one process dies; 2 unless it is here.
	most map[string]int
}

func scenarios() map[string]scenario {
	return map[string]scenario{
		"sequence and fan-out": {mixed, `"[3 100 4] 5 true"`, map[string]int{"flaky": 4}},
		"timers":               {withTimers, `"2 1 true"`, nil},
		"sub-orchestrations":   {withChildren, `"[11 12] failed: child trouble"`, map[string]int{"trouble": 4}},
		"fibers":               {withFibers, `"[2 12 22]"`, nil},
		"continue as new":      {withGenerations, `"1 2 3 4"`, nil},
		"recorded values":      {withValues, `"same"`, nil},
	}
}

func mixed(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	flaky := NewActivity("flaky", func(ctx context.Context, n int) (int, error) {
		l.add("flaky")
		if Info(ctx).Attempt == 1 {
			return 0, errors.New("once")
		}
		return n, nil
	}, WithRetry(Retry{MaxAttempts: 2, FirstInterval: 1}))
	doomed := NewActivity("doomed", func(context.Context, int) (int, error) {
		l.add("doomed")
		return 0, Permanent(errors.New("never"))
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		a, err := step.Call(ctx, n).Await()
		if err != nil {
			return "", err
		}
		fan, err := All(step.Call(ctx, a), flaky.Call(ctx, 100), step.Call(ctx, a+1))
		if err != nil {
			return "", err
		}
		_, never := doomed.Call(ctx, fan[2]).Await()
		b, err := step.Call(ctx, fan[2]).Await()
		return fmt.Sprint(fan, b, never != nil), err
	})
	return []AnyOrchestrator{o}, []AnyActivity{step, flaky, doomed}
}

// withTimers waits for a timer, and twice for the first of an activity and a timer.
func withTimers(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	slow := NewActivity("slow", func(ctx context.Context, d time.Duration) (int, error) {
		l.add(fmt.Sprint("slow", d))
		select {
		case <-time.After(d):
			return 2, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		begin := ctx.Now()
		ctx.Sleep(48 * time.Hour)
		fast := slow.Call(ctx, time.Second)
		Any(ctx, fast, Timer(ctx, time.Hour))
		v, err := fast.Await()
		if err != nil {
			return "", err
		}
		first := Any(ctx, slow.Call(ctx, time.Hour), Timer(ctx, time.Second))
		return fmt.Sprint(v, " ", first, " ", ctx.Now().Sub(begin) >= 48*time.Hour+2*time.Second), nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{slow}
}

func withChildren(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	trouble := NewActivity("trouble", func(context.Context, int) (int, error) {
		l.add("trouble")
		return 0, errors.New("child trouble")
	})
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
		ctx.Sleep(time.Hour)
		return step.Call(ctx, n).Await()
	})
	sad := NewOrchestrator("sad", func(ctx *Context, n int) (int, error) { return trouble.Call(ctx, n).Await() })
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		sums, err := All(child.Call(ctx, 10), child.Call(ctx, 11))
		if err != nil {
			return "", err
		}
		_, err = sad.Call(ctx, 1, WithRetry(Retry{MaxAttempts: 2})).Await()
		failed, ok := errors.AsType[*OrchestrationError](err)
		if !ok || failed.Orchestrator != "sad" {
			return "", fmt.Errorf("sub-orchestration gave %w", err)
		}
		var cause *Failure
		errors.As(err, &cause)
		return fmt.Sprint(sums, " failed: ", cause.Message[len(cause.Message)-len("child trouble"):]), nil
	})
	return []AnyOrchestrator{o, child, sad}, []AnyActivity{step, trouble}
}

func withFibers(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		var branches []*Future[int]
		for i := range 3 {
			branches = append(branches, Go(ctx, func(ctx *Context) (int, error) {
				v, err := step.Call(ctx, 10*i).Await()
				if err != nil {
					return 0, err
				}
				ctx.Sleep(time.Duration(3-i) * time.Second)
				return step.Call(ctx, v).Await()
			}))
		}
		results, err := All(branches...)
		return fmt.Sprint(results), err
	})
	return []AnyOrchestrator{o}, []AnyActivity{step}
}

func withGenerations(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	type state struct {
		N    int
		Said string
	}
	o := NewOrchestrator("test", func(ctx *Context, raw any) (string, error) {
		var s state
		if m, ok := raw.(map[string]any); ok {
			s.N, s.Said = int(m["N"].(float64)), m["Said"].(string)
		}
		v, err := step.Call(ctx, s.N).Await()
		if err != nil {
			return "", err
		}
		if s.Said += fmt.Sprint(" ", v); v < 4 {
			return "", ContinueAsNew(state{v, s.Said})
		}
		return s.Said[1:], nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{step}
}

// withValues hands values that are not deterministic to activities, before and behind a step, and compares them later.
func withValues(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	echo := NewActivity("echo", func(_ context.Context, s string) (string, error) { return s, nil })
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		said := ""
		for i := range 3 {
			drawn, err := SideEffect(ctx, "draw", func() int { return l.add("draw") })
			if err != nil {
				return "", err
			}
			now := fmt.Sprint(ctx.NewUUID(), ctx.Rand().IntN(1e6), drawn, ctx.Patched("p"), ctx.Now())
			first, err := echo.Call(ctx, now).Await()
			if err != nil {
				return "", err
			}
			if _, err := step.Call(ctx, i).Await(); err != nil {
				return "", err
			}
			if first != now || said == now {
				return "", fmt.Errorf("%s became %s", first, now)
			}
			said = now
		}
		return "same", nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{step, echo}
}

// budget is how long an invocation of the simulated processes lasts: shorter than the scenarios' timers.
const budget = 10 * time.Minute

// drive runs a scenario in one process after the other, the first ones with the plans, until one says that it is over.
// What parks is driven again when it asked for it. Every caller runs under synctest.
func (s scenario) drive(t *testing.T, w *world, l *ledger, plans ...*faults.Plan) {
	t.Helper()
	for i := 0; i < 100; i++ {
		plan := &faults.Plan{}
		if i < len(plans) {
			plan = plans[i]
		}
		orchestrators, activities := s.make(l)
		ctx, cancel := context.WithTimeout(t.Context(), budget)
		out, err := w.runtime(t, plan, orchestrators, activities).Run(ctx, startOf("a", 1))
		cancel()
		w.stored(t, "a")
		switch {
		case err != nil && i >= len(plans):
			t.Fatalf("without a fault: %v", err)
		case err != nil:
		case out.Status == Running:
			time.Sleep(time.Until(out.ResumeAt))
		case out.Status != Completed || string(out.Output) != s.output:
			t.Fatalf("%s: %s %v", out.Status, out.Output, out.Failure)
		default:
			return
		}
	}
	t.Fatal("it does not come to an end")
}

// Every storage call of every scenario fails in every way. Whatever happens, the orchestration ends once and rightly, a
// result that a round holds is never asked for again, and no call is forgotten.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var plans []*faults.Plan
			synctest.Test(t, func(t *testing.T) {
				for range 20 {
					plans = append(plans, &faults.Plan{})
				}
				s.drive(t, newWorld(t), &ledger{}, plans...)
			})
			for process, plan := range plans {
				for at := range plan.Calls() {
					for _, fault := range faults.Faults() {
						t.Run(fmt.Sprintf("process-%d-%s-%d", process+1, fault, at+1), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) { s.crash(t, process, &faults.Plan{At: at + 1, Fault: fault}) })
						})
					}
				}
			}
		})
	}
}

// crash runs the scenario with a fault in one of its processes.
func (s scenario) crash(t *testing.T, process int, plan *faults.Plan) {
	t.Helper()
	w, l := newWorld(t), &ledger{}
	plans := make([]*faults.Plan, process+1)
	for i := range plans {
		plans[i] = &faults.Plan{}
	}
	plans[process] = plan
	s.drive(t, w, l, plans...)
	for name, n := range l.all() {
		most := 2 // once more than without the crash
		if m, ok := s.most[name]; ok {
			most = m
		}
		if n > most && name != "draw" { // a side effect runs in every turn that is not committed
			t.Errorf("%s ran %d times", name, n)
		}
	}
	// Nothing runs after the end; only the turn of a start that turns out to be none.
	before := l.all()
	s.drive(t, w, l)
	after := l.all()
	delete(before, "draw")
	delete(after, "draw")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("calls (-before +after the end):\n%s", diff)
	}
}

// Several faults in a row, drawn by chance; rapid prints and shrinks what breaks.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				var plans []*faults.Plan
				for range rapid.IntRange(1, 6).Draw(rt, "processes") {
					plans = append(plans, &faults.Plan{
						At:    rapid.IntRange(1, 12).Draw(rt, "at"),
						Fault: rapid.SampledFrom(faults.Faults()).Draw(rt, "fault"),
					})
				}
				synctest.Test(t, func(t *testing.T) { s.drive(t, newWorld(t), &ledger{}, plans...) })
				if t.Failed() {
					rt.FailNow()
				}
			})
		})
	}
}

func FuzzDecodeRound(f *testing.F) {
	var c codec
	for _, r := range []round{{}, {Learned: []event{{Kind: executionStarted, Payload: []byte(`"in"`)}}}} {
		columns, err := c.encode(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(columns[columnEncoding].(string), columns[columnData].([]byte))
	}
	f.Add(encodingDeflate, c.deflate([]byte(`{"learned":[{"kind":"ExecutionStarted","at":1}]}`)))
	f.Fuzz(func(t *testing.T, encoding string, data []byte) {
		r, err := decodeRound(entityOf(encoding, data))
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		summarize("fuzz", generation{number: 1, rounds: []round{r}})
	})
}
