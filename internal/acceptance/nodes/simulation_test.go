package nodes

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	seeds = flag.Int("seeds", 0, "how many seeds TestNodes runs, from 1; 0: a sample of the nightly ones")
	seed  = flag.Int("seed", 0, "the only seed that TestNodes runs, with a trace; 0: all")
)

const (
	horizon = 40 * time.Minute // end of all troubles
	longest = 8 * time.Hour    // end of the run
)

// TestNodes lets three to five machines do random work while they are killed, frozen and disconnected.
func TestNodes(t *testing.T) {
	t.Parallel()
	for _, seed := range sample.Chosen(t, 300, *seeds, *seed) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			sample.Repeat(t, fmt.Sprintf("-seed=%d", seed))
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t, uint64(seed))
				s.run()
				s.check()
			})
		})
	}
}

// simulation draws its events from its seed.
type simulation struct {
	t        *testing.T
	seed     uint64
	script   *rand.Rand // only for the goroutine of the test
	storage  *storage
	ledger   *ledger
	nodes    bool          // machines exchange signs of life
	skew     time.Duration // maximum skew of the machines' clocks
	inline   int           // Config.MaxInlineActivities
	subjects map[string]*subject
	lives    int
	machines []*machine
	began    time.Time
	swept    time.Time // when the sweepers ran

	duties   []duty
	troubles []*trouble
}

// subject is one orchestration of the simulation.
type subject struct {
	id    string
	steps []step
}

// request is a message that starts an orchestration.
type request struct {
	ID    string
	Steps []step
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{t: t, seed: seed, script: rand.New(rand.NewPCG(seed, 18)), storage: newStorage(t), nodes: true, began: time.Now(),
		ledger: &ledger{runs: map[string][]activityRun{}, done: map[string]int{}}, subjects: map[string]*subject{}}
	first, err := orchestrator.New(s.reader())
	if err == nil {
		err = errors.Join(first.Prepare(t.Context()), s.storage.queues.CreateQueue(t.Context(), startQueue), s.storage.tables.CreateTable(t.Context(), nodesTable))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.skew = []time.Duration{0, time.Second, time.Minute}[s.script.IntN(3)]
	s.inline = []int{2, 4, 1000}[s.script.IntN(3)]
	return s
}

// populate boots n machines.
func (s *simulation) populate(n int) {
	for slot := range n {
		s.machines = append(s.machines, s.boot(slot))
	}
}

// run lets time pass until all orchestrations have ended.
func (s *simulation) run() {
	s.populate(3 + s.script.IntN(3))
	s.t.Logf("%d machines, clocks wrong by up to %v, %d activities in a process", len(s.machines), s.skew, s.inline)
	s.drawSubjects(5 + s.script.IntN(60))
	s.drawTroubles()
	for time.Since(s.began) < horizon || !s.ended() {
		if time.Since(s.began) > longest {
			break
		}
		pause(time.Second)
		s.advance()
	}
}

// drawSubjects sends the messages that start orchestrations, and their events.
func (s *simulation) drawSubjects(n int) {
	for i := range n {
		one := &subject{id: fmt.Sprint("s", i), steps: randomPlan(s.script, 0)}
		s.subjects[one.id] = one
		at := upTo(s.script, horizon-10*time.Minute)
		s.start(one, at)
		for i, step := range one.steps {
			if step.Kind == "event" {
				s.raise(one.id, i, at+upTo(s.script, 20*time.Minute))
			}
		}
	}
}

func (s *simulation) start(one *subject, at time.Duration) {
	s.send(startQueue, request{one.id, one.steps}, at)
}

func (s *simulation) raise(id string, number int, at time.Duration) {
	s.send(signalQueue, orchestrator.Signal{SignalID: fmt.Sprint("event", number), InstanceID: id, RuntimeProvider: "roundhouse", Type: orchestrator.ExternalSignal,
		Payload: orchestrator.Payload{Event: eventName, Data: mustJSON(eventValue)}}, at)
}

func (s *simulation) send(queue string, message any, at time.Duration) {
	if _, err := s.storage.queues.Send(s.t.Context(), queue, mustJSON(message), at); err != nil {
		s.t.Fatal(err)
	}
}

func mustJSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // no value of this package fails
	}
	return text
}

func (s *simulation) ended() bool {
	for id := range s.subjects {
		if !s.storage.status(id).status.Ended() {
			return false
		}
	}
	return true
}

// ids returns the orchestrations in a fixed order.
func (s *simulation) ids() []string { return slices.Sorted(maps.Keys(s.subjects)) }

// tell traces a single seed.
func (s *simulation) tell(format string, args ...any) {
	if *seed != 0 {
		s.t.Logf("%s "+format, append([]any{clock(time.Now())}, args...)...)
	}
}
