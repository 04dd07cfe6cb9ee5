package orchestrator

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/tables"
)

var crashSeed = flag.Uint64("crash.seed", 1, "what TestPairsOfFaults draws from")

// Every storage call of every scenario fails in every way. Nevertheless the orchestration ends once and correctly, a
// result in a round is never requested again, and no call is forgotten.
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
				return // faults would add no information
			}
			for process, plan := range plans {
				for at, call := range plan.Calls() {
					for _, fault := range faults.Faults() {
						if fault != faults.Throttled && fault.Refusal(call) == tables.ErrThrottled {
							continue // storage cannot answer so, and its real answers are tried anyway
						}
						name := fmt.Sprintf("process-%d-call-%d-%s-%s", process+1, at+1, call.Operation, fault)
						inSample(t, name, func(t *testing.T) {
							plans := make([]*faults.Plan, process+1)
							for i := range plans {
								plans[i] = &faults.Plan{}
							}
							plans[process] = &faults.Plan{At: at + 1, Fault: fault}
							s.crash(t, 1, plans...)
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
		most = most * (count + 1) / 2   // which is its bound with one
		if n > most && name != "draw" { // a side effect runs in every turn that is not committed
			t.Errorf("%s ran %d times", name, n)
		}
	}
	// Nothing runs after the end, except the turn of a start that turns out to be a repeat.
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
const pairs = 40

// A fault in the first process, and another in the one that takes over.
func TestPairsOfFaults(t *testing.T) {
	t.Parallel()
	for name, s := range everyScenario() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := s.calls(t)
			if t.Failed() {
				return // faults would add no information
			}
			tried, met := 0, 0
			for n := range pairs {
				if !sample.Keep(t, n) {
					continue
				}
				tried++
				first, second := s.drawPair(t, chanceOf(*crashSeed, name, n), all)
				t.Run(fmt.Sprintf("%d-%s-at-%d-then-%s-at-%d", n, first.Fault, first.At, second.Fault, second.At), func(t *testing.T) {
					sample.Repeat(t, fmt.Sprintf("-crash.seed=%d", *crashSeed))
					synctest.Test(t, func(t *testing.T) {
						last := second.plan()
						s.crash(t, 2, first.plan(), last)
						if last.Done() {
							met++
						}
					})
				})
			}
			if tried == pairs && met < pairs/2 { // concurrent calls can add or save a call
				t.Errorf("only %d of %d pairs happened", met, pairs)
			}
		})
	}
}

// chanceOf depends only on a seed and the name of a case.
func chanceOf(seed uint64, what ...any) *rand.Rand {
	h := fnv.New64()
	_, _ = fmt.Fprintln(h, what...) // a hash accepts all writes
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// drawPair draws a fault of the first process that leaves work, and one of the process that does it.
func (s scenario) drawPair(t *testing.T, chance *rand.Rand, calls int) (first, second strike) {
	t.Helper()
	for left := 0; left == 0; {
		first = drawStrike(chance, calls)
		if left = s.calls(t, first); left > 0 {
			second = drawStrike(chance, left)
		}
	}
	return first, second
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

// calls counts the calls of the process after the struck ones.
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

// Several faults in a row, drawn from a seed.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range sample.Seeds(t, 100) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					sample.Repeat(t)
					chance := chanceOf(uint64(seed), name)
					var plans []*faults.Plan
					for range 1 + chance.IntN(6) {
						plans = append(plans, drawStrike(chance, 12).plan())
					}
					s.narrow = chance.IntN(2) == 0
					t.Log(plansText(plans), "narrow", s.narrow)
					synctest.Test(t, func(t *testing.T) { s.drive(t, newWorld(t), &ledger{}, plans...) })
				})
			}
		})
	}
}

func plansText(plans []*faults.Plan) (text string) {
	for _, p := range plans {
		text += fmt.Sprintf("%s at call %d, ", p.Fault, p.At)
	}
	return text
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
