package orchestratortest

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// simulation runs a world as a host would, on the goroutine of the test. It does one thing at a time and waits until
// everybody is done with it, so that runs repeat.
type simulation struct {
	t       *testing.T
	world   *world
	process *process
	begun   atomic.Bool // the message that starts the orchestration is acknowledged
}

// simulate runs the world to its end, the first process with the plan.
func simulate(t *testing.T, w *world, plan *faults.Plan) orchestrator.Outcome {
	t.Helper()
	s := &simulation{t: t, world: w}
	limit := time.NewTimer(w.limit)
	defer limit.Stop()
	w.schedule()
	s.launch(plan)
	defer func() { s.process.stop() }()
	for over := false; ; {
		synctest.Wait()
		if s.process.plan.Crashed() {
			s.process.stop()
			s.launch(&faults.Plan{})
			continue
		}
		if s.act() {
			continue
		}
		if over || s.idle() {
			return s.end()
		}
		select {
		case <-w.stir:
		case <-limit.C:
			over = true
		}
	}
}

// launch starts a process. What was begun is not begun again once it ended, but looked after: a host that brings the
// message of a failed orchestration again asks for another try, which is none of the scenario's.
func (s *simulation) launch(plan *faults.Plan) {
	s.t.Helper()
	var err error
	if s.process, err = s.world.process(s.t.Context(), plan); err != nil {
		s.t.Fatalf("process: %v", err)
	}
	if s.begun.Load() {
		return
	}
	out, err := s.world.outside.Get(s.t.Context(), id)
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		s.t.Fatal(err)
	}
	s.process.begin(out.Ended(), func() { s.begun.Store(true) })
}

// act does the next thing there is to do, if any.
func (s *simulation) act() bool {
	s.t.Helper()
	_, err := s.process.state()
	if err != nil {
		s.t.Fatalf("the run cannot go on: %v", err)
	}
	acted, err := s.process.deliver()
	if err == nil && !acted {
		acted, err = s.world.step(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return acted
}

// idle says that nothing will happen any more.
func (s *simulation) idle() bool {
	s.t.Helper()
	running, _ := s.process.state()
	waiting, err := s.world.queues.Length(s.t.Context(), s.process.rt.SignalQueue())
	if err != nil {
		s.t.Fatal(err)
	}
	return running == 0 && waiting == 0 && !s.world.coming()
}

// end checks the end of a run and gives the outcome.
func (s *simulation) end() orchestrator.Outcome {
	s.t.Helper()
	all, err := s.world.tree(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if len(all) == 0 || !all[0].Ended() {
		s.t.Fatalf("after %v the orchestration has not ended:%s", time.Since(s.world.begin), s.world.waitsFor(s.t.Context()))
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
