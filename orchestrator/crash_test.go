package orchestrator

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
)

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
