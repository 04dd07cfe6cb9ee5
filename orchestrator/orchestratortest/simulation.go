package orchestratortest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// simulation runs a world as a host would, on the goroutine of the test. It does one action at a time and waits until
// it is finished, so that runs are reproducible.
type simulation struct {
	t       *testing.T
	world   *world
	process *process
}

// simulate runs the world to its end, with the plan for the first process.
func simulate(t *testing.T, w *world, plan *faults.Plan) orchestrator.Outcome {
	t.Helper()
	s := &simulation{t: t, world: w}
	limit := time.NewTimer(w.limit)
	defer limit.Stop()
	w.on.Store(true)
	defer w.on.Store(false)
	w.schedule()
	w.sendStart = s.sendStart
	s.startProcess(plan)
	defer func() { s.process.stop() }()
	for over := false; ; {
		synctest.Wait()
		w.beat()
		if s.process.plan.Crashed() {
			s.process.stop()
			s.startProcess(&faults.Plan{})
			continue
		}
		if s.act() {
			continue
		}
		if over || s.idle() {
			return s.end()
		}
		select {
		case <-w.changed:
		case <-limit.C:
			over = true
		}
	}
}

// startProcess starts a process, which gets the start message unless it is acknowledged. The process does not repeat
// an attempt that has ended, because the scenario contains no other one; it only finishes the rest.
func (s *simulation) startProcess(plan *faults.Plan) {
	s.t.Helper()
	var err error
	if s.process, err = s.world.process(s.t.Context(), plan); err != nil {
		s.t.Fatalf("process: %v", err)
	}
	s.begin()
}

// get returns the state of the orchestration; the zero value before it begins.
func (s *simulation) get() orchestrator.Outcome {
	s.t.Helper()
	out, err := s.world.outside.Get(s.t.Context(), id)
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		s.t.Fatal(err)
	}
	return out
}

// rests reports whether nothing is running and the start message is acknowledged.
func (s *simulation) rests() bool {
	running, _ := s.process.state()
	return running == 0 && s.world.message.acknowledged.Load()
}

// act does the next action, if any.
func (s *simulation) act() bool {
	s.t.Helper()
	_, err := s.process.state()
	switch {
	case errors.Is(err, orchestrator.ErrStalled):
		s.t.Fatalf("the run is stalled: %s", strings.TrimPrefix(err.Error(), orchestrator.ErrStalled.Error()+": "))
	case err != nil:
		s.t.Fatalf("the run cannot go on: %v", err)
	}
	acted, err := s.process.deliver()
	if err == nil && !acted {
		acted = s.retry()
	}
	if err == nil && !acted {
		acted, err = s.world.step(s.t.Context())
	}
	if err == nil && !acted {
		acted, err = s.rewindFailed()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return acted
}

// idle reports whether no further action is possible.
func (s *simulation) idle() bool {
	s.t.Helper()
	running, _ := s.process.state()
	waiting, err := s.world.queues.Length(s.t.Context(), s.process.rt.SignalQueue())
	if err != nil {
		s.t.Fatal(err)
	}
	return running == 0 && waiting == 0 && s.world.retryAt.IsZero() && !s.world.stepsToCome()
}

// end checks the end of a run and returns the outcome.
func (s *simulation) end() orchestrator.Outcome {
	s.t.Helper()
	all, err := s.world.tree(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, out := range all {
		if out.Status == orchestrator.Stalled {
			s.t.Fatalf("the run is stalled: %s", out.Failure.Message)
		}
	}
	if len(all) == 0 || !all[0].Ended() {
		s.t.Fatalf("after %v the orchestration has not ended:%s", time.Since(s.world.begin), s.world.waitsFor(s.t.Context()))
	}
	for _, orphan := range orphans(all) {
		s.t.Errorf("the orchestration that called %s has ended, but it goes on:%s", orphan, s.world.waitsFor(s.t.Context()))
	}
	for _, step := range s.world.missed() {
		s.t.Errorf("the orchestration ended before this step could happen: %v", step)
	}
	for _, out := range all {
		if err := s.world.replay(s.t.Context(), out); err != nil {
			s.t.Errorf("replay of the finished history: %v", err)
		}
	}
	return all[0]
}

// orphans returns the sub-orchestrations that are running although their caller's execution has ended and has not
// abandoned them.
func orphans(all []orchestrator.Outcome) []string {
	open := map[string]bool{}
	for _, out := range all {
		open[out.ID] = !out.Ended()
	}
	var found []string
	for _, out := range all {
		for _, x := range executions(out) {
			for _, c := range x.Calls {
				if out.Ended() && open[c.Child] && c.Close != orchestrator.AbandonChild {
					found = append(found, fmt.Sprintf("%s (%s)", c.Name, c.Child))
				}
			}
		}
	}
	return found
}
