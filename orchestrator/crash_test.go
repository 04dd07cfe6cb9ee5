package orchestrator

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

var crashSeed = flag.Uint64("crash.seed", 1, "what TestPairsOfFaults draws from")

// often is how often something is tried: a quarter of it under the race detector.
func often(n int) int {
	if underRace {
		return n / 4
	}
	return n
}

// Every storage call of every scenario fails in every way. Whatever happens, the orchestration ends once and rightly, a
// result that a round holds is never asked for again, and no call is forgotten.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, s := range everyScenario() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var plans []*faults.Plan
			synctest.Test(t, func(t *testing.T) {
				for range 20 {
					plans = append(plans, &faults.Plan{})
				}
				s.drive(t, newWorld(t), &ledger{}, plans...)
			})
			if t.Failed() {
				return // faults would only say the same again
			}
			turn := 0
			for process, plan := range plans {
				for at, call := range plan.Calls() {
					for _, fault := range faults.Faults() {
						if turn++; underRace && turn%4 != 0 {
							continue
						}
						if fault != faults.Throttled && fault.Refusal(call) == tables.ErrThrottled {
							continue // storage cannot answer so, and what it answers is tried anyway
						}
						t.Run(fmt.Sprintf("process-%d-call-%d-%s-%s", process+1, at+1, call.Operation, fault), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) {
								plans := make([]*faults.Plan, process+1)
								for i := range plans {
									plans[i] = &faults.Plan{}
								}
								plans[process] = &faults.Plan{At: at + 1, Fault: fault}
								s.crash(t, 1, plans...)
							})
						})
					}
				}
			}
		})
	}
}

// crash runs the scenario with a number of faults in its processes.
func (s scenario) crash(t *testing.T, count int, plans ...*faults.Plan) {
	t.Helper()
	w, l := newWorld(t), &ledger{}
	s.drive(t, w, l, plans...)
	for name, n := range l.all() {
		most := 2 // once more than without a fault
		if m, ok := s.most[name]; ok {
			most = m
		}
		most = most * (count + 1) / 2   // which is what it is with one
		if n > most && name != "draw" { // a side effect runs in every turn that is not committed
			t.Errorf("%s ran %d times", name, n)
		}
	}
	// Nothing runs after the end; only the turn of a start that turns out to be none.
	before := l.all()
	s.rouse(t, w, l)
	after := l.all()
	delete(before, "draw")
	delete(after, "draw")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("calls (-before +after the end):\n%s", diff)
	}
}

// pairs is how many pairs of faults each scenario meets.
var pairs = often(40)

// A fault in the first process, and another in the one that takes over.
func TestPairsOfFaults(t *testing.T) {
	t.Parallel()
	for name, s := range everyScenario() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fnv.New64()
			_, _ = io.WriteString(h, name) // a hash takes everything
			chance, met := rand.New(rand.NewPCG(*crashSeed, h.Sum64())), 0
			all := s.calls(t)
			if t.Failed() {
				return // faults would only say the same again
			}
			for drawn := 0; drawn < pairs; {
				first := drawStrike(chance, all)
				left := s.calls(t, first)
				if left == 0 {
					continue // the first process has got over its fault and done all there was to do
				}
				drawn++
				second := drawStrike(chance, left)
				t.Run(fmt.Sprintf("%d-%s-then-%d-%s", first.At, first.Fault, second.At, second.Fault), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						last := second.plan()
						s.crash(t, 2, first.plan(), last)
						if last.Done() {
							met++
						}
					})
				})
			}
			if met < pairs/2 { // what runs at once can make a call more or less
				t.Errorf("only %d of %d pairs happened", met, pairs)
			}
			if t.Failed() {
				t.Logf("to repeat: go test ./orchestrator -timeout 100s -run '^TestPairsOfFaults$' -crash.seed=%d", *crashSeed)
			}
		})
	}
}

// strike is a fault that a process meets.
type strike struct {
	At    int
	Fault faults.Fault
}

func (s strike) plan() *faults.Plan { return &faults.Plan{At: s.At, Fault: s.Fault} }

func drawStrike(chance *rand.Rand, calls int) strike {
	return strike{1 + chance.IntN(calls), faults.Faults()[chance.IntN(len(faults.Faults()))]}
}

// calls counts those of the process that follows the ones that are struck.
func (s scenario) calls(t *testing.T, struck ...strike) int {
	t.Helper()
	counted := &faults.Plan{At: -1} // which keeps it in one process
	synctest.Test(t, func(t *testing.T) {
		var plans []*faults.Plan
		for _, e := range struck {
			plans = append(plans, e.plan())
		}
		s.drive(t, newWorld(t), &ledger{}, append(plans, counted)...)
	})
	return len(counted.Calls())
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
				s.narrow = rapid.Bool().Draw(rt, "narrow")
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
		columns, _, err := c.encode(new(roundBuffers), r)
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
		summarize("fuzz", storedExecution{number: 1, rounds: []round{r}})
	})
}
