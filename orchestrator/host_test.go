package orchestrator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
)

const (
	// budget is the duration of an invocation of the simulated processes: shorter than the scenarios' timers.
	budget = 10 * time.Minute
	// The miniature host polls for messages after shortestIdle, which doubles up to longestIdle: less than the pause
	// between events, so that they arrive in order.
	shortestIdle = time.Minute
	longestIdle  = 40 * time.Minute
	// patience is how long a message hides, and an operator waits, after a failure.
	patience = 30 * time.Second
	// retryPause is how long a message hides after an attempt that failed: events arrive in between.
	retryPause = 90 * time.Minute
)

// host delivers a scenario's messages to one process after the other.
type host struct {
	scenario scenario
	world    *world
	ledger   *ledger
	plans    []*faults.Plan // of the future processes; after them, no faults occur
	used     []*faults.Plan
	runtime  *Runtime
	started  bool      // the message that starts the orchestration is acknowledged
	again    time.Time // when that message is redelivered
	begin    time.Time
	requests []request
	idle     time.Duration
}

// drive runs a scenario as a host would, in one process after the other, the first ones with the plans. The message
// that starts the orchestration is delivered until it is acknowledged, then signals are delivered and operators make
// their requests, until no request is left and the queue is empty. Every caller runs under synctest.
func (s scenario) drive(t *testing.T, w *world, l *ledger, plans ...*faults.Plan) {
	t.Helper()
	if s.narrow {
		w.roundBudget = narrow()
	}
	if s.outside != nil {
		s.outside(t, w)
	}
	h := &host{scenario: s, world: w, ledger: l, plans: plans, requests: s.operate}
	h.run(t)
}

// rouse checks a scenario that has ended after everything is repeated.
func (s scenario) rouse(t *testing.T, w *world, l *ledger) {
	t.Helper()
	rt := w.signalling(t, nil, nil, nil)
	noError(t, rt.send(t.Context(), Signal{SignalID: "late", InstanceID: "a", Type: InternalContinue}, 0))
	if s.end() == Failed { // its message, and an operator, would revive it
		h := &host{scenario: s, world: w, ledger: l, started: true}
		h.run(t)
		return
	}
	s.drive(t, w, l)
}

func (h *host) run(t *testing.T) {
	t.Helper()
	h.begin, h.idle = time.Now(), shortestIdle
	h.launch(t)
	for range 20_000 {
		if h.over() {
			h.launch(t)
		}
		if h.act(t) {
			h.idle = shortestIdle
			h.world.stored(t, "a")
			continue
		}
		if h.rests(t) {
			h.scenario.check(t, h.world)
			h.world.traced(t)
			return
		}
		wait := h.idle
		if len(h.requests) > 0 {
			wait = min(wait, time.Until(h.begin.Add(h.requests[0].at)))
		}
		if !h.started {
			wait = min(wait, time.Until(h.again))
		}
		time.Sleep(wait)
		h.idle = min(2*h.idle, longestIdle)
	}
	t.Fatal("it does not come to an end")
}

// launch starts a process, with the next of the plans.
func (h *host) launch(t *testing.T) {
	t.Helper()
	plan := &faults.Plan{}
	if len(h.plans) > 0 {
		plan, h.plans = h.plans[0], h.plans[1:]
	}
	h.used = append(h.used, plan)
	orchestrators, activities := h.scenario.make(h.ledger)
	c := Config{Orchestrators: orchestrators, Activities: activities, Queues: faults.Queues(h.world.queues, plan.Intercept)}
	if h.scenario.retries {
		c.Ended = func(_ context.Context, out Outcome) error {
			if plan.Crashed() {
				return faults.ErrCrashed
			}
			if out.Status == Retrying {
				h.started, h.again = false, time.Now().Add(retryPause)
			}
			return nil
		}
	}
	h.runtime = h.world.configured(t, plan, c)
}

// over reports whether another process has to take over: this one is dead, or its purpose is fulfilled. One that only
// counts has its turn once.
func (h *host) over() bool {
	plan := h.used[len(h.used)-1]
	return plan.Crashed() || len(h.plans) > 0 && (plan.Done() || plan.At == 0 && h.started)
}

// act performs the next action, if any.
func (h *host) act(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), budget)
	defer cancel()
	switch {
	case !h.started && !time.Now().Before(h.again):
		out, err := h.runtime.Run(ctx, h.scenario.start("a"))
		h.started = err == nil && (out.Ended() || out.Woken)
		if err == nil && out.Status == Retrying {
			h.again = time.Now().Add(retryPause)
		}
	case len(h.requests) > 0 && time.Since(h.begin) >= h.requests[0].at:
		if err := h.requests[0].send(ctx, h.runtime); err != nil {
			time.Sleep(patience)
		} else {
			h.requests = h.requests[1:]
		}
	default:
		return h.world.deliver(ctx, t, h.runtime)
	}
	return true
}

// rests reports whether nothing more will happen.
func (h *host) rests(t *testing.T) bool {
	t.Helper()
	for _, plan := range h.used {
		plan.Wait()
	}
	n := must(h.world.queues.Length(t.Context(), signalQueue))(t)
	return n == 0 && len(h.requests) == 0 && h.started
}

// deliver delivers one signal, if one is visible.
func (w *world) deliver(ctx context.Context, t *testing.T, rt *Runtime) bool {
	t.Helper()
	messages, err := w.queues.Receive(t.Context(), signalQueue, 1, time.Hour)
	if err != nil || len(messages) == 0 {
		return false
	}
	m := messages[0]
	signal, err := DecodeSignal(queues.Decode(m.Text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = rt.Deliver(ctx, signal); err == nil {
		err = w.queues.Delete(t.Context(), signalQueue, m.ID, m.PopReceipt)
	} else {
		_, err = w.queues.Renew(t.Context(), signalQueue, m.ID, m.PopReceipt, patience)
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// check verifies the final state.
func (s scenario) check(t *testing.T, w *world) {
	t.Helper()
	orchestrators, activities := s.make(&ledger{})
	rt := w.signalling(t, nil, orchestrators, activities)
	out, err := rt.Get(t.Context(), "a")
	said := string(out.Output)
	if out.Failure != nil {
		said = out.Failure.Message
	}
	if err != nil || out.Status != s.end() || said != s.output {
		t.Fatalf("%s: %s %v", out.Status, said, err)
	}
	s.checkBeside(t, w, rt, out)
	w.replays(t, rt)
	w.checkChildren(t, rt, out)
	w.checkTasks(t, rt, out)
}

// checkBeside checks the orchestrations that this one has called, started, and sent events to.
func (s scenario) checkBeside(t *testing.T, w *world, rt *Runtime, out Outcome) {
	t.Helper()
	for id, output := range s.others {
		other, err := rt.Get(t.Context(), out.ID+id)
		if err != nil || other.Status != Completed || string(other.Output) != output {
			t.Errorf("%s%s: %s %s %v %v", out.ID, id, other.Status, other.Output, other.Failure, err)
		}
		w.stored(t, out.ID+id)
	}
	for _, c := range out.Calls {
		if c.Kind != OrchestrationCall || s.children == "" {
			continue
		}
		if child, err := rt.Get(t.Context(), c.Child); err != nil || child.Status != s.children {
			t.Errorf("%s is %s %v, %v, not %s", c.Child, child.Status, child.Failure, err, s.children)
		}
	}
}

// checkChildren: no awaited sub-orchestration continues after the end of its caller, and all of a terminated one are
// terminated.
func (w *world) checkChildren(t *testing.T, rt *Runtime, out Outcome) {
	t.Helper()
	for _, c := range out.Calls {
		if c.Kind != OrchestrationCall {
			continue
		}
		child, err := rt.Get(t.Context(), c.Child)
		if errors.Is(err, ErrNotFound) {
			continue // its caller ended before it began
		}
		if err != nil || !child.Ended() || out.Status == Terminated && c.EndedAt.IsZero() && child.Status != Terminated {
			t.Errorf("%s ended as %s, and %s is %s: %v", out.ID, out.Status, c.Child, child.Status, err)
		}
		w.stored(t, c.Child)
		w.checkChildren(t, rt, child)
	}
}
