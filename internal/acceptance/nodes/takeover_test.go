package nodes

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Without signs of life, what a killed machine had in hand waits for the host's lease: the simulation and its check see it.
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

// until lets time pass until something is so, and gives up after a while.
func (s *simulation) until(atMost time.Duration, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(atMost); !is(); {
		if time.Now().After(end) {
			s.t.Fatalf("it is not so after %v", atMost)
		}
		pause(100 * time.Millisecond)
	}
}

// strikeNow lets a trouble begin that has no end.
func (s *simulation) strikeNow(kind troubleKind, slot int) {
	now := time.Now()
	one := &trouble{kind: kind, slot: slot, begin: now, end: now.Add(10 * longest)}
	s.troubles = append(s.troubles, one)
	s.strike(one)
}
