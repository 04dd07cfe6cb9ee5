package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
)

// scenario has a sequence, a fan-out, an attempt that fails and a call that fails for good.
func scenario(l *ledger) (*Orchestrator, []AnyActivity) {
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
	return o, []AnyActivity{step, flaky, doomed}
}

const scenarioOutput = `"[3 100 4] 5 true"`

// drive runs the scenario in one process after the other, the first with the plan, until one says that it is over.
func drive(t *testing.T, w *world, l *ledger, plans ...*faults.Plan) {
	t.Helper()
	for i := 0; ; i++ {
		plan := &faults.Plan{}
		if i < len(plans) {
			plan = plans[i]
		}
		o, activities := scenario(l)
		out, err := w.process(t, plan, o, activities...).Run(t.Context(), startOf("a", 1))
		w.stored(t, "a")
		if err == nil {
			if out.Status != Completed || string(out.Output) != scenarioOutput {
				t.Fatalf("%s: %s %v", out.Status, out.Output, out.Failure)
			}
			return
		}
		if i >= len(plans) {
			t.Fatalf("without a fault: %v", err)
		}
	}
}

// Every storage call of the scenario fails in every way. Whatever happens, the orchestration ends once and rightly, a
// result that a round holds is never asked for again, and no call is forgotten.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	count := &faults.Plan{}
	drive(t, newWorld(t), &ledger{}, count)
	total := len(count.Calls())
	if total < 5 {
		t.Fatalf("the scenario makes only %d storage calls", total)
	}
	for at := 1; at <= total; at++ {
		for _, fault := range faults.Faults() {
			t.Run(fmt.Sprintf("%s-%d", fault, at), func(t *testing.T) {
				t.Parallel()
				w, l := newWorld(t), &ledger{}
				drive(t, w, l, &faults.Plan{At: at, Fault: fault})
				all := w.stored(t, "a")
				if len(all) != 1 || summarize("a", all[0]).Status != Completed {
					t.Errorf("%d executions", len(all))
				}
				// One crash can make each activity run at most once more.
				for name, n := range l.calls {
					most := 2
					if name == "flaky" {
						most = 4
					}
					if n > most {
						t.Errorf("%s ran %d times", name, n)
					}
				}
			})
		}
	}
}

// A round that was committed is never repeated: after a crash behind the last round, nothing runs.
func TestNothingRunsAgainAfterTheEnd(t *testing.T) {
	t.Parallel()
	w, l, count := newWorld(t), &ledger{}, &faults.Plan{}
	drive(t, w, l, count)
	before := fmt.Sprint(l.calls)
	drive(t, w, l)
	if after := fmt.Sprint(l.calls); after != before {
		t.Errorf("calls before %s, after %s", before, after)
	}
}

// Several faults in a row, drawn by chance; rapid prints and shrinks what breaks.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var plans []*faults.Plan
		for range rapid.IntRange(1, 5).Draw(rt, "processes") {
			plans = append(plans, &faults.Plan{
				At:    rapid.IntRange(1, 12).Draw(rt, "at"),
				Fault: rapid.SampledFrom(faults.Faults()).Draw(rt, "fault"),
			})
		}
		drive(t, newWorld(t), &ledger{}, plans...)
		if t.Failed() {
			rt.FailNow()
		}
	})
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
