package orchestrator

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
)

// runOf returns the start of a run; all runs share the id "a".
func runOf(correlationID string, input int) Start {
	s := startOf("a", input)
	s.CorrelationID, s.Reuse, s.Resume = correlationID, ReuseEnded, true
	return s
}

func TestASeriesOfRuns(t *testing.T) {
	t.Parallel()
	inBubbles(t, map[string]func(*testing.T){
		"each begins when the one before has ended": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			first := mustRun(t, rt, runOf("one", 1))
			wants(t, "it waits", []any{first.Status, first.Execution}, []any{Running, 1})
			_, err := rt.Run(t.Context(), runOf("two", 2))
			isError(t, "while another runs", err, ErrConflict)
			wants(t, "executions", o.executions(t, "a"), 1)
			isError(t, "raise", rt.Raise(t.Context(), "a", "number", 7, "e1"), nil)
			o.rest(t, rt)
			second := mustRun(t, o.open(t, nil), runOf("two", 2))
			wants(t, "the next", []any{second.Status, second.Execution, second.CorrelationID, len(second.Earlier)}, []any{Running, 2, "two", 0})
			again := mustRun(t, rt, runOf("one", 1))
			wants(t, "the first, looked up", []any{again.Status, again.Execution, again.CorrelationID}, []any{Completed, 1, "one"})
			wants(t, "executions", o.executions(t, "a"), 2)
			wants(t, "calls", o.ledger.all(), map[string]int{"step(1)": 1, "step(7)": 1, "step(2)": 1})
			o.replays(t, rt)
		},
		"one that failed goes on as itself, and begins anew behind another": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			bad := func(correlationID string) Start {
				s := runOf(correlationID, 1)
				s.Orchestrator = "bad"
				return s
			}
			for i, c := range []struct {
				correlationID string
				earlier       int
			}{{"one", 0}, {"one", 1}, {"two", 0}, {"one", 0}, {"one", 1}} {
				out := mustRun(t, rt, bad(c.correlationID))
				wants(t, "run", []any{out.Status, out.Execution, out.CorrelationID, len(out.Earlier)}, []any{Failed, i + 1, c.correlationID, c.earlier})
			}
		},
		"another orchestrator has the id": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			s := runOf("one", 1)
			s.Orchestrator = "other"
			wants(t, "state", mustRun(t, rt, s).Status, Completed)
			_, err := rt.Run(t.Context(), runOf("two", 1))
			isError(t, "run", err, ErrConflict)
		},
		"it does not grow": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			rows := 0
			for i := range 30 {
				s := runOf(fmt.Sprint("run ", i), i)
				s.Orchestrator = "other"
				out := mustRun(t, rt, s)
				wants(t, "run", []any{out.Status, out.Execution, out.CorrelationID}, []any{Completed, i + 1, s.CorrelationID})
				if n := len(o.rows(t, "a")); i == 5 {
					rows = n
				} else if i > 5 && n != rows {
					t.Errorf("%d rows after %d runs, %d after 6", n, i+1, rows)
				}
			}
			o.replays(t, rt)
			isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
			o.gone(t, "a")
		},
	})
}

// A signal for the run that has the id meets, in this process, a message of another run, which has nothing to do here:
// the signal is applied nevertheless, and not judged by the other run.
func TestASignalMeetsAnotherRun(t *testing.T) {
	t.Parallel()
	inBubbles(t, map[string]func(*testing.T){
		"that has to wait": func(t *testing.T) {
			o := eventOffice(t)
			mustRun(t, o.open(t, nil), runOf("one", 1))
			o.meet(t, runOf("two", 2), ErrConflict, "one")
		},
		"that is over": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			mustRun(t, rt, runOf("one", 1))
			isError(t, "raise", rt.Raise(t.Context(), "a", "number", 7, "e0"), nil)
			o.rest(t, rt)
			mustRun(t, rt, runOf("two", 2))
			o.meet(t, runOf("one", 1), nil, "two")
		},
	})
}

// meet delivers the event that a run waits for while a message of another run makes its first read.
func (o *office) meet(t *testing.T, s Start, want error, waits string) {
	t.Helper()
	slow := true
	rt := o.intercepted(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if slow && c.Target == "orchestrations" {
			slow = false
			time.Sleep(time.Minute)
		}
		return next(ctx)
	}, Config{Orchestrators: o.orchestrators, Activities: o.activities, ScheduleQueue: signalQueue})
	met := runInBackground(t.Context(), rt, s)
	time.Sleep(time.Second)
	out, err := rt.Deliver(t.Context(), eventSignal("a", "e1", "number", "9"))
	wants(t, "the run of the signal", []any{out.Status, out.CorrelationID, err}, []any{Completed, waits, nil})
	isError(t, "the other run", (<-met).err, want)
	wants(t, "calls for the event", o.ledger.count("step(9)"), 1)
}

// told records the reported ends of runs.
type told struct {
	mu   sync.Mutex
	runs map[string]Status
}

func (l *told) hear(out Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[out.CorrelationID] = out.Status
}

// Two runs for one id, one of which ends by a signal, with every fault at every storage call, and a process that dies
// between the end of a run and its report. One runs, then the other; each end is reported, and no step is forgotten.
func TestFaultsInASeriesOfRuns(t *testing.T) {
	t.Parallel()
	everyFault(t, func(t *testing.T, plan *faults.Plan) {
		o, l := eventOffice(t), &told{runs: map[string]Status{}}
		open := func(plan *faults.Plan) *Runtime {
			return o.intercepted(t, plan.Intercept, Config{Orchestrators: o.orchestrators, Activities: o.activities, ScheduleQueue: signalQueue,
				Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
				Ended: func(ctx context.Context, out Outcome) error {
					return plan.Intercept(ctx, faults.Call{Service: "tables", Operation: "Apply", Target: "history"}, func(context.Context) error {
						l.hear(out)
						return nil
					})
				}})
		}
		rt := open(plan)
		waiting := []Start{runOf("one", 1), runOf("two", 2)}
		for n := 0; len(waiting) > 0; n++ {
			if n > 40 {
				t.Fatalf("the runs do not come to rest: %v", waiting)
			}
			if plan.Crashed() {
				rt = open(&faults.Plan{})
			}
			s := waiting[0]
			waiting = waiting[1:]
			out, err := rt.Run(t.Context(), s)
			switch {
			case err == nil && out.Ended():
				l.hear(out)
			case err == nil && out.Woken:
				noError(t, open(&faults.Plan{}).Raise(t.Context(), "a", "number", 7, "go "+s.CorrelationID))
			default:
				waiting = append(waiting, s)
			}
			if err != nil {
				time.Sleep(10 * time.Minute)
			}
			o.rest(t, rt)
		}
		for range 3 { // for failed messages
			o.settle(t, open(&faults.Plan{}))
		}
		wants(t, "ends", l.runs, map[string]Status{"one": Completed, "two": Completed})
		for _, step := range []string{"step(1)", "step(2)"} {
			if n := o.ledger.count(step); n < 1 || n > 2 {
				t.Errorf("%s ran %d times", step, n)
			}
		}
		o.replays(t, open(&faults.Plan{}))
	})
}
