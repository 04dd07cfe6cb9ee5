package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	trialID = "tree"
	// restless is how long nothing may happen before a tree that has not ended counts as stuck: longer than the
	// recovery of lost messages takes.
	restless, restlessSweeps = 3 * 24 * time.Hour, 10
	// mostMessages exceeds the needs of every tree.
	mostMessages = 5_000
	// deliveries is the number of deliveries after which the host abandons activities: more than any that ends by
	// itself needs.
	deliveries = 25
	// mostUnluck bounds the messages that are duplicated or not acknowledged. Each of a timer that is far away becomes
	// two.
	mostUnluck = 60
)

// trial is one plan under a simulated host.
type trial struct {
	*simulation
	plan  plan
	deeds *deeds

	state    sync.Mutex // of the following fields; chance, nodes and open are the simulation's
	chains   map[string][]Signal
	sent     map[string]bool
	retried  map[int]bool // executions that the start was sent again after
	quiet    time.Time    // since when it has been idle
	swept    int          // successful sweeps since then
	received int          // messages
	troubles int          // faults, and messages that are lost, delivered twice or not acknowledged
	unluck   int          // those of the host
	rewinds  int
	refused  string // the first error that no storage, host or network explains
}

func newTrial(t *testing.T, seed uint64) *trial {
	s := &simulation{t: t, seed: seed, world: newWorld(t), chance: rand.New(rand.NewPCG(seed, 0))}
	r := &trial{simulation: s, plan: generate(seed), deeds: newDeeds(), chains: map[string][]Signal{}, sent: map[string]bool{}, retried: map[int]bool{}}
	if *programsPlan != "" {
		r.plan = plan{}
		noError(t, json.Unmarshal([]byte(*programsPlan), &r.plan))
	}
	if seed%4 == 0 {
		s.world.encrypt(t)
	}
	noError(t, s.world.queues.CreateQueue(t.Context(), startQueue))
	r.deeds.asked = r.asked
	if *programsCalm {
		r.plan.Faulty, r.plan.Lossy, r.plan.Skew, r.plan.Spread = 0, 0, 0, 1000
	}
	s.faulty, s.lossy, s.skew, s.spread = r.plan.Faulty, r.plan.Lossy, r.plan.Skew, r.plan.Spread
	for i := range s.nodes {
		s.nodes[i] = r.newNode()
	}
	data := must(json.Marshal(r.plan))(t)
	t.Logf("%s", data)
	return r
}

func (r *trial) newNode() *node {
	n := &node{simulation: r.simulation}
	n.ctx, n.die = context.WithCancel(r.t.Context())
	skew := time.Duration(0)
	if r.skew > 0 {
		skew = time.Duration(r.chance.Int64N(2*int64(r.skew))) - r.skew
	}
	n.now = func() time.Time { return time.Now().Add(skew) }
	m := newMachine(r.deeds)
	activities := m.activities()
	for i, a := range activities {
		activities[i] = slowActivity{a, r.simulation}
	}
	intercept := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		err := n.intercept(ctx, c, next)
		if errors.Is(err, faults.ErrCrashed) || errors.Is(err, tables.ErrOutcomeUnknown) {
			r.trouble()
		}
		return err
	}
	rt, err := New(Config{Tables: faults.Tables(r.world.tables, intercept), Blobs: faults.Blobs(r.world.blobs, intercept),
		Queues: faults.Queues(r.world.queues, intercept), ScheduleQueue: signalQueue, CachedEvents: cachedEvents(r.seed), MaxInlineActivities: r.spread, Now: n.now,
		Orchestrators: m.orchestrators(), Activities: activities, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Publish: func(_ context.Context, all []Publication) error { return r.publish(n, all) },
		Ended:   func(_ context.Context, out Outcome) error { return r.ended(n, out) }})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(rt.Close)
	if r.plan.Narrow {
		rt.roundBudget = narrow()
	}
	n.runtimes = map[string]*Runtime{"": rt}
	return n
}

func (r *trial) alive() *node {
	i := r.upTo(time.Duration(len(r.nodes))) - 1
	if *programsCalm {
		i = 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes[i].ctx.Err() != nil {
		r.nodes[i] = r.newNode()
	}
	return r.nodes[i]
}

// die ends all processes.
func (r *trial) die() {
	for _, n := range r.nodes {
		n.die()
	}
}

// refuse fails the test, once: the message is redelivered repeatedly.
func (r *trial) refuse(what string) {
	r.state.Lock()
	defer r.state.Unlock()
	if r.refused == "" {
		r.refused = what
		r.t.Error(what)
	}
}

func (r *trial) trouble() {
	r.state.Lock()
	defer r.state.Unlock()
	r.troubles++
}

// unlucky is likely for events of the host, up to a number that a tree can bear.
func (r *trial) unlucky(p float64) bool {
	r.state.Lock()
	enough := r.unluck >= mostUnluck
	r.state.Unlock()
	if *programsCalm || enough || !r.likely(p) {
		return false
	}
	r.state.Lock()
	defer r.state.Unlock()
	r.unluck++
	r.troubles++
	return true
}

// run drives the tree until nothing more happens, and no request is left.
func (r *trial) run() {
	r.begin()
	for r.host(); r.revive(); {
		r.host()
	}
}

// host delivers messages until none are left, no invocation runs, and nothing has to be recovered.
func (r *trial) host() {
	idle := time.Second
	r.quiet = time.Now()
	for r.received < mostMessages && r.refused == "" {
		found := false
		for _, queue := range []string{startQueue, signalQueue, activityQueue} {
			messages, err := r.world.queues.Receive(r.t.Context(), queue, 1, 30*time.Second+r.upTo(15*time.Minute))
			if err != nil {
				r.t.Fatal(err)
			}
			for _, m := range messages {
				found = true
				r.received++
				if r.loses(queue, m) {
					r.trouble()
					continue
				}
				for more := true; more; more = r.unlucky(0.15) {
					// The receipt of a message that was redelivered is out of date, so its first receiver cannot
					// delete it.
					if m.PopReceipt, err = r.world.queues.Renew(r.t.Context(), queue, m.ID, m.PopReceipt, 30*time.Second+r.upTo(15*time.Minute)); err != nil {
						r.t.Fatal(err)
					}
					delivery := m
					r.later(time.Second, func() { r.handle(queue, delivery) })
				}
			}
		}
		r.giveUp()
		if idle = min(2*idle, 3*time.Hour); found {
			idle, r.quiet = time.Second, time.Now()
			r.sweeps(0)
		} else if r.rests() && (r.endedAll() || time.Since(r.quiet) > restless && r.sweeps(-1) > restlessSweeps && !r.waits()) {
			return
		}
		if r.likely(0.2) || idle > time.Hour {
			r.later(time.Second, r.sweep)
		}
		r.pause(idle)
	}
	if r.refused == "" {
		r.t.Errorf("it does not come to rest: %d messages came", r.received)
	}
	r.die()
	for r.busy() {
		r.pause(time.Minute)
	}
}

// busy reports whether an invocation is running.
func (r *trial) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open > 0
}

func (r *trial) rests() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.open
	for _, queue := range []string{startQueue, signalQueue, activityQueue} {
		waiting, err := r.world.queues.Length(r.t.Context(), queue)
		if err != nil {
			r.t.Fatal(err)
		}
		n += waiting
	}
	return n == 0
}

// all returns every stored orchestration.
func (r *trial) all() []Summary {
	rt := r.world.process(r.t, nil, newMachine(newDeeds()).root)
	return r.world.all(r.t, rt)
}

func (r *trial) endedAll() bool {
	return !slices.ContainsFunc(r.all(), func(s Summary) bool { return !s.Ended() })
}

// waits reports whether an orchestration waits for a time that has not come, so that its message is not missed yet.
func (r *trial) waits() bool {
	return slices.ContainsFunc(r.all(), func(s Summary) bool { return !s.Ended() && time.Since(s.WaitingUntil) < restless })
}

// sweeps counts a sweep (1), resets the count (0), or leaves it (-1), and returns it.
func (r *trial) sweeps(n int) int {
	r.state.Lock()
	defer r.state.Unlock()
	switch n {
	case 0:
		r.swept = 0
	case 1:
		r.swept++
	}
	return r.swept
}

func (r *trial) sweep() {
	n := r.alive()
	ctx, cancel := context.WithTimeout(n.ctx, 10*time.Minute)
	defer cancel()
	woken, err := n.runtimes[""].Sweep(ctx, 1000)
	if err == nil {
		r.sweeps(1)
	}
	if woken > 0 || err != nil {
		r.trace("node %p swept: %d, %v", n, woken, err)
	}
}

// trace logs a single program.
func (r *trial) trace(format string, args ...any) {
	if *programsSeed != 0 {
		r.t.Logf("%s "+format, append([]any{time.Now().Format("01-02 15:04:05.000")}, args...)...)
	}
}

// handle is one invocation. The dead acknowledge nothing; acknowledgements get lost.
func (r *trial) handle(queue string, m queues.Message) {
	n := r.alive()
	ctx, cancel := context.WithTimeout(n.ctx, 30*time.Second+r.upTo(10*time.Minute))
	defer cancel()
	body := queues.Decode(m.Text)
	r.trace("node %p takes  %s", n, body)
	err := r.invoke(ctx, n, queue, body)
	if err != nil && queue == activityQueue && m.DequeueCount >= deliveries {
		err = n.runtimes[""].GiveUpActivities(ctx, body, "it was delivered too often")
	}
	r.trace("node %p leaves %s: %v, dead %v", n, body, err, n.ctx.Err() != nil)
	for _, wrong := range []error{ErrConflict, ErrCorrupt, ErrSignal, ErrUnknownOrchestrator, ErrUnknownActivity, ErrStalled} {
		if errors.Is(err, wrong) || isDeterminismError(err) {
			r.refuse(fmt.Sprintf("%s: %v", body, err))
			break
		}
	}
	switch {
	case n.ctx.Err() != nil || r.unlucky(0.1):
	case err == nil:
		_ = r.world.queues.Delete(r.t.Context(), queue, m.ID, m.PopReceipt) // it may be another delivery's by now
	default:
		_, _ = r.world.queues.Renew(r.t.Context(), queue, m.ID, m.PopReceipt, r.upTo(time.Minute))
	}
}

func (r *trial) invoke(ctx context.Context, n *node, queue string, body []byte) error {
	rt := n.runtimes[""]
	switch queue {
	case startQueue:
		out, err := rt.Run(ctx, r.start())
		switch {
		case err != nil || out.Woken:
			return err
		case out.Ended(), out.Status == Retrying:
			return r.ended(n, out)
		default:
			return errors.New("the time ran out")
		}
	case activityQueue:
		return rt.RunActivities(ctx, body)
	}
	signal, err := DecodeSignal(body)
	if err != nil {
		return err
	}
	if _, err = rt.Deliver(ctx, signal); err == nil && n.ctx.Err() == nil {
		r.delivered(signal)
	}
	return err
}

func (r *trial) start() Start {
	s := startOf(trialID, order{Program: r.plan.Program})
	s.WillRetry = true
	return s
}

func (r *trial) publish(n *node, all []Publication) error {
	if r.likely(r.faulty) || n.ctx.Err() != nil {
		return errors.New("the outbox is away")
	}
	r.deeds.publish(all)
	return nil
}

// pathOf returns the path of an orchestration's program.
func pathOf(out Outcome) string {
	var o order
	_ = json.Unmarshal(out.Input, &o) // the input is an order
	return strings.TrimSpace(o.Path)
}
