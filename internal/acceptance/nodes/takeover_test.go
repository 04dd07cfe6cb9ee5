package nodes

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// Without signs of life, work in flight on a killed machine waits for the host's lease. The simulation shows this and
// its check detects it.
func TestWithoutSignsOfLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, 1)
		s.nodes = false
		s.populate(1)
		for i := range 5 {
			s.add(fmt.Sprint("s", i), step{Kind: "activity", For: 3 * time.Minute})
		}
		s.until(time.Minute, func() bool { return len(s.machines[0].inHand()) == 5 })
		s.machines = append(s.machines, s.boot(1))
		killedAt := time.Now()
		s.strikeNow(killed, 0)
		s.until(longest, s.ended)
		if late := s.late(); len(late) != 5 {
			t.Errorf("%d were late, want all 5: %v", len(late), late)
		}
		for id := range s.subjects {
			if next, ok := s.storage.wentOn(id, killedAt, func(commit) bool { return true }); !ok || next.at.Sub(killedAt) < hostLease-time.Minute {
				t.Errorf("%s went on after %v", id, next.at.Sub(killedAt))
			}
		}
		s.duties = nil
		s.check()
	})
}

// add starts an orchestration now.
func (s *simulation) add(id string, steps ...step) {
	s.subjects[id] = &subject{id, steps}
	s.start(s.subjects[id], 0)
}

// until lets time pass until a condition holds, and gives up after a while.
func (s *simulation) until(atMost time.Duration, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(atMost); !is(); {
		if time.Now().After(end) {
			s.t.Fatalf("it is not so after %v", atMost)
		}
		pause(100 * time.Millisecond)
	}
}

// strikeNow starts a trouble without an end.
func (s *simulation) strikeNow(kind troubleKind, slot int) {
	now := time.Now()
	one := &trouble{kind: kind, slot: slot, begin: now, end: now.Add(10 * longest)}
	s.troubles = append(s.troubles, one)
	s.strike(one)
}

// Each machine that takes over is killed, sooner or later after it started. All work continues within the bound of the
// last death, and each result exists once.
func TestTakeoversOfTakeovers(t *testing.T) {
	t.Parallel()
	for _, seed := range sample.Seeds(t, 8) {
		after := seed - 1 // pauses grow quadratically
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			sample.Repeat(t)
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t, uint64(after))
				s.populate(5)
				for i := range 50 {
					s.add(fmt.Sprint("s", i), step{Kind: "activity", For: 5 * time.Minute}, step{Kind: "spread", Wide: 3, For: time.Second})
				}
				pause(bound)
				busy := slices.IndexFunc(s.machines, func(m *machine) bool { return len(m.inHand()) > 0 })
				s.strikeNow(killed, busy)
				for range 3 {
					lost := s.storage.takings()
					s.until(2*bound, func() bool { return s.storage.takings() > lost })
					pause(time.Duration(after*after) * 40 * time.Millisecond) // during the takeover, or after it
					s.strikeNow(killed, s.storage.lastTaker().slot)
				}
				s.until(longest, s.ended)
				if len(s.duties) < 20 {
					t.Errorf("only %d were in hand", len(s.duties))
				}
				s.check()
			})
		})
	}
}

// A thousand orchestrations (fewer in a sample) of one dead machine are taken over within a minute. All of them
// continue or have a signal in the queue, from which no machine receives more than its host allows. Short ones continue
// within the minute, too.
func TestThousandInHand(t *testing.T) {
	t.Parallel()
	for _, work := range []time.Duration{time.Second, 20 * time.Second} {
		t.Run(work.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { killThousand(t, work) })
		})
	}
}

func killThousand(t *testing.T, work time.Duration) {
	many := sample.Size(t, 1000, 100)
	s := newSimulation(t, 18)
	s.populate(1)
	first := s.machines[0]
	first.slow = 1000
	for i := range many {
		one := &subject{fmt.Sprint("s", i), []step{{Kind: "activity", For: work}}}
		s.subjects[one.id] = one
		first.work.Go(func() { first.invoke(one) })
	}
	s.until(time.Minute, func() bool { return len(first.inHand()) == many })
	for range 3 {
		s.machines = append(s.machines, s.boot(len(s.machines)))
	}
	pause(nodes.DefaultInterval + time.Second)
	killedAt := time.Now()
	s.strikeNow(killed, 0)
	if len(s.duties) != many {
		t.Errorf("%d were in hand, want %d", len(s.duties), many)
	}
	s.until(time.Minute, func() bool { return s.storage.finished(first) })
	finished := time.Since(killedAt)
	s.until(longest, s.ended)
	var last time.Time
	for id := range s.subjects {
		if next, ok := s.storage.wentOn(id, killedAt, func(c commit) bool { return c.by != first }); ok && next.at.After(last) {
			last = next.at
		}
	}
	t.Logf("with %v of work left for each, they were taken over after %v, and the last one went on after %v", work, finished, last.Sub(killedAt))
	if work == time.Second && last.Sub(killedAt) > time.Minute {
		t.Errorf("the last one went on after %v", last.Sub(killedAt))
	}
	s.duties = nil // hosts with full hands reach the rest later
	s.check()
}

// invoke drives an orchestration whose message a host holds for ten minutes.
func (m *machine) invoke(one *subject) {
	ctx, cancel := context.WithTimeout(m.ctx, budget)
	defer cancel()
	v := &invocation{queue: startQueue, subject: one.id, since: time.Now()}
	m.track(v, true)
	defer m.track(v, false)
	_ = m.begin(ctx, request{one.id, one.steps}) // the machine dies before it ends
}

// takings returns the number of takeovers started, or taken over.
func (s *storage) takings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.takers)
}

// lastTaker returns the machine that started the last takeover.
func (s *storage) lastTaker() *machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owner(s.takers[len(s.takers)-1])
}

// finished reports whether the takeover from the machine is complete.
func (s *storage) finished(lost *machine) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, one := range s.taken {
		if s.owner(name) == lost && one.finished {
			return true
		}
	}
	return false
}
