package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ended is an engine at the end of a run: it repeats the start after a failure that another attempt can fix, as long
// as it has attempts.
func (r *trial) ended(n *node, out Outcome) error {
	if r.likely(r.faulty) || n.ctx.Err() != nil {
		r.trouble()
		return errors.New("the end was not noted")
	}
	if out.ID != trialID || out.Status != Retrying {
		return nil
	}
	r.state.Lock()
	failed := out.Execution
	known := r.retried[failed]
	r.retried[failed] = true
	attempts := len(r.retried)
	r.state.Unlock()
	if !known && attempts < r.plan.Attempts {
		r.post(startQueue, []byte(trialID), 10*time.Minute)
	}
	return nil
}

// giveUp gives up a tree that has no attempts left, when no other attempt runs.
func (r *trial) giveUp() {
	r.state.Lock()
	exhausted := len(r.retried) >= r.plan.Attempts
	r.state.Unlock()
	if !exhausted {
		return
	}
	for r.busy() {
		r.pause(time.Second)
	}
	if r.world.status(r.t, trialID).String("RuntimeStatus") != string(Retrying) {
		return
	}
	rt := r.world.configured(r.t, nil, Config{Orchestrators: newMachine(newDeeds()).orchestrators(), Queues: r.world.queues,
		Publish: func(_ context.Context, all []Publication) error { r.deeds.publish(all); return nil }})
	if err := rt.GiveUp(r.t.Context(), trialID, "corr", errors.New("it has no attempts left")); err != nil {
		r.t.Errorf("give up: %v", err)
	}
}

// revive retries failed orchestrations like an operator. It reports whether more will follow.
func (r *trial) revive() bool {
	if r.t.Failed() {
		return false
	}
	r.faulty, r.plan.Faulty = 0, r.faulty
	defer func() { r.faulty = r.plan.Faulty }()
	rt := r.alive().runtimes[""]
	out, err := rt.Get(r.t.Context(), trialID)
	if err != nil || out.Status != Failed || r.rewinds >= r.plan.Rewinds {
		return false
	}
	r.rewinds++
	if _, err := rt.Rewind(r.t.Context(), trialID, fmt.Sprint("rewind", r.rewinds)); err != nil {
		r.t.Errorf("rewind: %v", err)
	}
	return true
}
