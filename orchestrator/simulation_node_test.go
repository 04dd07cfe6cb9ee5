package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// node is one process, which may die at any storage call.
type node struct {
	*simulation
	ctx      context.Context
	die      context.CancelFunc
	now      func() time.Time    // a clock that is wrong
	runtimes map[string]*Runtime // by scenario, because scenarios use the same names
}

func (s *simulation) newNode() *node {
	n := &node{simulation: s, runtimes: map[string]*Runtime{}}
	n.ctx, n.die = context.WithCancel(s.t.Context())
	skew := time.Duration(0)
	if s.skew > 0 {
		skew = time.Duration(s.chance.Int64N(2*int64(s.skew))) - s.skew
	}
	n.now = func() time.Time { return time.Now().Add(skew) }
	for name, scenario := range s.scenarios {
		orchestrators, activities := scenario.make(s.ledgers[name])
		for i, a := range activities {
			activities[i] = slowActivity{a, s}
		}
		rt, err := New(Config{Tables: faults.Tables(s.world.tables, n.intercept), Blobs: faults.Blobs(s.world.blobs, n.intercept),
			Queues: faults.Queues(s.world.queues, n.intercept), CachedEvents: cachedEvents(s.seed), ScheduleQueue: signalQueue, MaxInlineActivities: s.spread, Now: n.now, Orchestrators: orchestrators, Activities: activities,
			Ended: n.ended, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(rt.Close)
		if s.narrow {
			rt.roundBudget = narrow()
		}
		n.runtimes[name] = rt
	}
	return n
}

// cachedEvents returns how much the nodes of a simulation keep in memory: nothing, too little, or everything.
func cachedEvents(seed uint64) int { return []int{0, 60, 100_000}[seed%3] }

// slowActivity takes the same time in every attempt: attempts begin at the same time, so that their order cannot
// decide.
type slowActivity struct {
	AnyActivity
	s *simulation
}

func (a slowActivity) invoke(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	h := fnv.New64()
	_, _ = io.WriteString(h, Info(ctx).IdempotencyKey()) // a hash accepts all writes
	chance := rand.New(rand.NewPCG(a.s.seed, h.Sum64()))
	most := []time.Duration{time.Second, time.Second, 5 * time.Minute}[chance.IntN(3)]
	if err := pause(ctx, time.Duration(chance.Int64N(int64(most)))); err != nil {
		return nil, err
	}
	return a.AnyActivity.invoke(ctx, input)
}

// intercept is the faults.Interceptor of a node: calls take time, and their effects and their answers may differ.
func (n *node) intercept(ctx context.Context, c faults.Call, next func(context.Context) error) error {
	fault := faults.None
	if n.likely(n.faulty) {
		fault = faults.Faults()[n.upTo(time.Duration(len(faults.Faults())))-1]
	}
	n.pause(50 * time.Millisecond)
	if n.ctx.Err() != nil {
		return faults.ErrCrashed
	}
	var err error
	switch fault {
	case faults.CrashBefore:
		n.die()
	case faults.Conflict, faults.Precondition, faults.Throttled:
		return fault.Refusal(c)
	case faults.Unknown:
		if n.likely(0.5) { // storage carries it out after the caller has stopped waiting
			n.later(5*time.Second, func() { _ = next(context.WithoutCancel(ctx)) })
		}
		err = tables.ErrOutcomeUnknown
	case faults.Slow:
		n.later(2*faults.Slowness, func() { _ = next(context.WithoutCancel(ctx)) })
		err = tables.ErrOutcomeUnknown
	default:
		err = next(ctx)
	}
	n.pause(50 * time.Millisecond)
	switch {
	case fault == faults.CrashAfter:
		n.die()
	case fault == faults.Applied && err == nil:
		err = tables.ErrOutcomeUnknown
	}
	if n.ctx.Err() != nil {
		return faults.ErrCrashed
	}
	return err
}

// alive returns one of the nodes, or a new one in place of a dead one.
func (s *simulation) alive() *node {
	i := s.upTo(time.Duration(len(s.nodes))) - 1
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[i].ctx.Err() != nil {
		s.nodes[i] = s.newNode()
	}
	return s.nodes[i]
}

// host delivers messages until none are left, and no invocation runs.
func (s *simulation) host() {
	idle := time.Second
	for range 100_000 {
		found := false
		for _, queue := range []string{startQueue, signalQueue, activityQueue} {
			messages, err := s.world.queues.Receive(s.t.Context(), queue, 1, 30*time.Second+s.upTo(15*time.Minute))
			if err != nil {
				s.t.Fatal(err)
			}
			for _, m := range messages {
				found = true
				if s.loses(queue, m) {
					continue
				}
				for more := true; more; more = s.likely(0.15) {
					// The receipt of a message that was redelivered is out of date, so its first receiver cannot
					// delete it.
					if m.PopReceipt, err = s.world.queues.Renew(s.t.Context(), queue, m.ID, m.PopReceipt, 30*time.Second+s.upTo(15*time.Minute)); err != nil {
						s.t.Fatal(err)
					}
					delivery := m
					s.later(time.Second, func() { s.handle(queue, delivery) })
				}
			}
		}
		if idle = min(2*idle, 30*time.Minute); found {
			idle = time.Second
		} else if s.rests() {
			return
		}
		if s.likely(0.2) {
			s.later(time.Second, s.sweep)
		}
		s.pause(idle)
	}
	for _, queue := range []string{startQueue, signalQueue, activityQueue} {
		n, err := s.world.queues.Length(s.t.Context(), queue)
		s.t.Logf("%s: %d messages, %v", queue, n, err)
	}
	s.t.Fatalf("it does not come to rest: %d invocations go on", s.open)
}

// loses decides whether to lose a message that the program sends to itself.
func (s *simulation) loses(queue string, m queues.Message) bool {
	signal, err := DecodeSignal(queues.Decode(m.Text))
	switch {
	case queue == startQueue, queue == signalQueue && err != nil:
		return false
	case m.DequeueCount > 1:
		return false // another process has done a part of it, and may be dead
	case queue == signalQueue && signal.Type == ExternalSignal:
		return false // it is the only trace of another process's work
	case !s.likely(s.lossy):
		return false
	case strings.HasPrefix(signal.SignalID, "sweep:") && !s.losesWake(signal.InstanceID):
		return false
	}
	s.tell("lost: %s", queues.Decode(m.Text))
	_ = s.world.queues.Delete(s.t.Context(), queue, m.ID, m.PopReceipt) // no other process has it
	return true
}

// losesWake counts a wake of the sweeper that has to be lost. The last one is not lost: an orchestration without any
// wake is never found.
func (s *simulation) losesWake(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wakes[id] == wakeTries-1 {
		return false
	}
	if s.wakes == nil {
		s.wakes = map[string]int{}
	}
	s.wakes[id]++
	return true
}

// sweep is the sweeper's timer.
func (s *simulation) sweep() {
	n := s.alive()
	ctx, cancel := context.WithTimeout(n.ctx, 10*time.Minute)
	defer cancel()
	first := slices.Sorted(maps.Keys(n.runtimes))[0] // they share storage
	if woken, err := n.runtimes[first].Sweep(ctx, 1000); woken > 0 || err != nil {
		s.tell("node %p swept: %d, %v", n, woken, err)
	}
}

func (s *simulation) rests() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	starts, err := s.world.queues.Length(s.t.Context(), startQueue)
	signals, errSignals := s.world.queues.Length(s.t.Context(), signalQueue)
	activities, errActivities := s.world.queues.Length(s.t.Context(), activityQueue)
	if err = errors.Join(err, errSignals, errActivities); err != nil {
		s.t.Fatal(err)
	}
	if starts+signals+activities+s.open > 0 {
		return false
	}
	if s.lossy == 0 {
		return true
	}
	page, err := s.world.tables.Query(s.t.Context(), "orchestrationsParked", tables.Query{Partition: indexPartition, Limit: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	return len(page.Entities) == 0 // otherwise the sweeper still has work
}

// handle is one invocation. The dead acknowledge nothing; acknowledgements get lost.
func (s *simulation) handle(queue string, m queues.Message) {
	n := s.alive()
	ctx, cancel := context.WithTimeout(n.ctx, 30*time.Second+s.upTo(10*time.Minute))
	defer cancel()
	s.tell("node %p takes  %s", n, queues.Decode(m.Text))
	err := n.invoke(ctx, queue, queues.Decode(m.Text))
	s.tell("node %p leaves %s: %v, dead %v", n, queues.Decode(m.Text), err, n.ctx.Err() != nil)
	for _, wrong := range []error{ErrConflict, ErrCorrupt, ErrSignal, ErrUnknownOrchestrator, ErrUnknownActivity} {
		if errors.Is(err, wrong) || isDeterminismError(err) {
			s.t.Errorf("%s: %v", queues.Decode(m.Text), err)
		}
	}
	switch {
	case n.ctx.Err() != nil || s.likely(0.1):
	case err == nil:
		_ = s.world.queues.Delete(s.t.Context(), queue, m.ID, m.PopReceipt) // it may be another delivery's by now
	default:
		_, _ = s.world.queues.Renew(s.t.Context(), queue, m.ID, m.PopReceipt, s.upTo(time.Minute))
	}
}

func (n *node) invoke(ctx context.Context, queue string, body []byte) error {
	if queue == startQueue {
		id := string(body)
		name := n.subjects[id].scenario
		out, err := n.runtimes[name].Run(ctx, n.scenarios[name].start(id))
		switch {
		case err != nil || out.Woken:
			return err
		case out.Ended():
			return n.ended(ctx, out)
		default:
			return errors.New("the time ran out")
		}
	}
	if queue == activityQueue {
		b, err := decodeBatch(body)
		if err != nil {
			return err
		}
		id, _, _ := strings.Cut(b.Orchestration, ":")
		return n.runtimes[n.subjects[id].scenario].RunActivities(ctx, body)
	}
	signal, err := DecodeSignal(body)
	if err != nil {
		return err
	}
	id, _, _ := strings.Cut(signal.InstanceID, ":")
	if _, err = n.runtimes[n.subjects[id].scenario].Deliver(ctx, signal); err == nil && n.ctx.Err() == nil {
		n.delivered(signal)
	}
	return err
}

// ended is the history of an engine, which may fail.
func (n *node) ended(_ context.Context, out Outcome) error {
	if n.likely(n.faulty) || n.ctx.Err() != nil {
		return errors.New("the end was not noted")
	}
	if out.Status == Retrying { // its message is repeated
		n.send(startQueue, []byte(out.ID))
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if subject := n.subjects[out.ID]; subject != nil { // not one that it only started
		subject.told = true
	}
	return nil
}
