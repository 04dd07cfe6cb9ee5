package orchestrator

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/sample"
)

var (
	simulationSeeds = flag.Int("simulation.seeds", 0, "how many seeds TestSimulation runs, from 1; 0: a sample of the nightly ones")
	simulationSeed  = flag.Int("simulation.seed", 0, "the only seed that TestSimulation runs, with a trace; 0: all")
)

const startQueue = "orchestration-starts"

// Several nodes, several orchestrations of each kind, and a host and a storage with all allowed faults.
func TestSimulation(t *testing.T) {
	t.Parallel()
	for _, seed := range sample.Chosen(t, 1000, *simulationSeeds, *simulationSeed) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			sample.Repeat(t, fmt.Sprintf("-simulation.seed=%d", seed))
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t, uint64(seed))
				s.host()
				s.check()
			})
		})
	}
}

// simulation draws everything from its seed. Nearly nothing happens at the same time as anything else, so that the
// order of goroutines decides little and a seed repeats.
type simulation struct {
	t         *testing.T
	seed      uint64
	world     *world
	scenarios map[string]scenario
	ledgers   map[string]*ledger
	faulty    float64 // share of the storage calls
	lossy     float64 // share of the messages within the program that are lost
	skew      time.Duration
	spread    int  // Config.SpreadAbove
	narrow    bool // a round holds one event or decision
	subjects  map[string]*subject

	mu     sync.Mutex
	chance *rand.Rand
	wakes  map[string]int // how many wakes of the sweeper were lost, by orchestration
	nodes  [3]*node
	open   int // invocations, and calls that storage has not carried out yet
}

// subject is one orchestration.
type subject struct {
	scenario string
	outside  []Signal // signals of others, each after the previous one was delivered
	told     bool     // an acknowledging process has seen its end
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{t: t, seed: seed, world: newWorld(t), scenarios: scenarios(), chance: rand.New(rand.NewPCG(seed, 0)),
		ledgers: map[string]*ledger{}, subjects: map[string]*subject{}}
	noError(t, s.world.queues.CreateQueue(t.Context(), startQueue))
	s.scenarios["events in any order"] = scenario{make: withAnyOrder, output: `[1,2,3,4,5]`}
	s.scenarios["large values"] = scenario{make: withLargeValues, output: fmt.Sprint(3 * largeValue)}
	s.scenarios["terminated"] = scenario{make: withNoEnd, status: Terminated}
	s.scenarios["canceled"] = scenario{make: withNoEnd, status: Canceled}
	maps.Copy(s.scenarios, secondChanceScenarios())
	delete(s.scenarios, "a clean-up that fails") // its message, which is repeated, revives it
	names := slices.Sorted(maps.Keys(s.scenarios))
	for _, name := range names {
		s.ledgers[name] = &ledger{}
	}
	s.faulty = []float64{0, 0.01, 0.05, 0.15}[s.chance.IntN(4)]
	s.lossy = []float64{0, 0, 0.05, 0.3}[s.chance.IntN(4)]
	s.skew = []time.Duration{0, time.Second, 5 * time.Minute}[s.chance.IntN(3)]
	s.spread = []int{1, 2, 1000}[s.chance.IntN(3)]
	s.narrow = s.chance.IntN(4) == 0
	t.Logf("faults %v, losses %v, skew %v, activities of one in a process %d, narrow rounds %v", s.faulty, s.lossy, s.skew, s.spread, s.narrow)
	for i := range s.nodes {
		s.nodes[i] = s.newNode()
	}
	for i := range 3 + s.chance.IntN(12) {
		id, name := fmt.Sprint("s", i), names[s.chance.IntN(len(names))]
		s.subjects[id] = &subject{scenario: name, outside: s.outside(id, name)}
		s.send(startQueue, []byte(id))
		s.raiseNext(id)
	}
	return s
}

// outside returns the signals of others to an orchestration.
func (s *simulation) outside(id, name string) []Signal {
	number := func(id string, n int) Signal {
		return Signal{SignalID: fmt.Sprint("event", n), InstanceID: id, RuntimeProvider: provider, Type: ExternalSignal,
			Payload: Payload{Event: "number", Data: fmt.Append(nil, n)}}
	}
	command := func(name string, n int) Signal {
		return Signal{SignalID: fmt.Sprint(name, n), InstanceID: id, RuntimeProvider: provider, Type: ExternalSignal,
			Payload: Payload{Command: name, Reason: "no need"}}
	}
	var all []Signal
	switch name {
	case "events", "events and generations", "drained before it continues as new":
		all = []Signal{number(id, 1), number(id, 2), number(id, 3)}
	case "tried again by its message", "a signal lets it fail, and it is tried again":
		all = []Signal{number(id, 1), number(id, 2)}
	case "canceled, with a clean-up":
		return []Signal{command(commandCancel, 1), command(commandCancel, 2)}
	case "a child that waits", "a child that fails by a signal", "a child with a retry":
		all = []Signal{number(fmt.Sprintf("%s:1-child-%s-1", id, hashOf([]byte("7"))[:16]), 2)}
	case "events in any order":
		for n := range 5 {
			s.sendSignal(number(id, n+1))
		}
	}
	switch name {
	case "terminated":
		return []Signal{{SignalID: "terminate", InstanceID: id, RuntimeProvider: provider, Type: ExternalSignal, Payload: Payload{Command: commandTerminate}}}
	case "canceled":
		return []Signal{{SignalID: "cancel", InstanceID: id, RuntimeProvider: provider, Type: ExternalSignal, Payload: Payload{Command: commandCancel}}}
	}
	if s.likely(0.3) {
		all = append([]Signal{command(commandSuspend, 1), command(commandResume, 1)}, all...)
	}
	return all
}

func withAnyOrder(*ledger) ([]AnyOrchestrator, []AnyActivity) {
	return []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, raw any) ([]int, error) {
		var got []int
		before, _ := raw.([]any)
		for _, v := range before {
			got = append(got, int(v.(float64)))
		}
		v, err := Event[int](ctx, "number").Await()
		if err != nil {
			return nil, err
		}
		if got = append(got, v); len(got) < 5 {
			return nil, ContinueAsNew(got)
		}
		slices.Sort(got)
		return got, nil
	})}, nil
}

const largeValue = 70 << 10

// withLargeValues passes values from activity to activity that only blobs hold.
func withLargeValues(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	grow := NewActivity("grow", func(_ context.Context, s string) (string, error) {
		l.add("grow")
		return s + strings.Repeat("x", largeValue), nil
	})
	return []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
		s := ""
		for range 3 {
			var err error
			if s, err = grow.Call(ctx, s).Await(); err != nil {
				return 0, err
			}
		}
		return len(s), nil
	})}, []AnyActivity{grow}
}

// withNoEnd waits for an event that never comes, in a child, too, until an operator stops it.
func withNoEnd(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	undo := l.step("undo")
	child := NewOrchestrator("child", func(ctx *Context, _ int) (int, error) { return Event[int](ctx, "never").Await() })
	return []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		_, err := child.Call(ctx, 1).Await()
		if _, canceled := ctx.Canceled(); canceled {
			if _, err := undo.Call(WithoutCancel(ctx), 1).Await(); err != nil {
				return "", err
			}
		}
		return "", err
	}), child}, []AnyActivity{undo}
}

func (s *simulation) upTo(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(1 + s.chance.Int64N(int64(d)))
}

func (s *simulation) likely(p float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chance.Float64() < p
}

// later runs do on its own within d, and the simulation does not end before it.
func (s *simulation) later(d time.Duration, do func()) {
	wait := time.After(s.upTo(d)) // drawn here, because the order of goroutines is not
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	go func() {
		<-wait
		do()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
	}()
}

// tell logs a single seed.
func (s *simulation) tell(format string, args ...any) {
	if *simulationSeed != 0 {
		s.t.Logf("%s "+format, append([]any{time.Now().Format("02 15:04:05.000")}, args...)...)
	}
}

func (s *simulation) pause(d time.Duration) { <-time.After(s.upTo(d)) }

// send puts a message into a queue that becomes visible some time, and sometimes a second one.
func (s *simulation) send(queue string, body []byte) {
	for more := true; more; more = s.likely(0.2) {
		if _, err := s.world.queues.Send(s.t.Context(), queue, body, s.upTo(10*time.Minute)); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *simulation) sendSignal(signal Signal) {
	body, err := marshal(signal)
	if err != nil {
		s.t.Error(err)
	}
	s.send(signalQueue, body)
}

// raiseNext sends the next signal from outside.
func (s *simulation) raiseNext(id string) {
	if all := s.subjects[id].outside; len(all) > 0 {
		s.sendSignal(all[0])
	}
}

// delivered makes the following signal the next, once.
func (s *simulation) delivered(signal Signal) {
	id, _, _ := strings.Cut(signal.InstanceID, ":")
	s.mu.Lock()
	all := s.subjects[id].outside
	next := len(all) > 0 && all[0].SignalID == signal.SignalID
	if next {
		s.subjects[id].outside = all[1:]
	}
	s.mu.Unlock()
	if next {
		s.raiseNext(id)
	}
}

// check verifies the final state, and starts everything once more to check that it remains.
func (s *simulation) check() {
	s.faulty = 0
	for _, id := range slices.Sorted(maps.Keys(s.subjects)) {
		subject := s.subjects[id]
		scenario := s.scenarios[subject.scenario]
		rt := s.alive().runtimes[subject.scenario]
		out, err := rt.Get(s.t.Context(), id)
		output := scenario.output
		if scenario.end() != Completed {
			output = ""
		}
		if err != nil || out.Status != scenario.end() || string(out.Output) != output || !subject.told {
			s.t.Errorf("%s, %s: %s %s %v %v, told %v", id, subject.scenario, out.Status, out.Output, out.Failure, err, subject.told)
			continue
		}
		ends := 0
		before := s.world.stored(s.t, id)
		for _, g := range before {
			if end := g.end(); !g.old && (end == nil || end.Kind != executionContinued && !end.Retrying) {
				ends++
			}
		}
		if ends != 1 {
			s.t.Errorf("%s, %s: %d ends", id, subject.scenario, ends)
		}
		for _, c := range out.Calls {
			if c.Child != "" {
				s.world.stored(s.t, c.Child)
			}
		}
		scenario.checkBeside(s.t, s.world, rt, out)
		history, err := rt.Export(s.t.Context(), id)
		orchestrators, _ := scenario.make(&ledger{})
		if err := errors.Join(err, Replay(orchestrators[0], history)); err != nil {
			s.t.Errorf("%s, %s: replay: %v", id, subject.scenario, err)
		}
		calls := s.ledgers[subject.scenario].all()
		if _, err := rt.Run(s.t.Context(), scenario.start(id)); err != nil {
			s.t.Errorf("%s, %s: start after the end: %v", id, subject.scenario, err)
		}
		after := s.ledgers[subject.scenario].all()
		delete(calls, "draw") // in the turn of a start that turns out to be none
		delete(after, "draw")
		if diff := cmp.Diff(calls, after); diff != "" || len(s.world.stored(s.t, id)) != len(before) {
			s.t.Errorf("%s, %s: it goes on after its end (-before +after):\n%s", id, subject.scenario, diff)
		}
	}
	for _, n := range s.nodes {
		n.die()
	}
}
