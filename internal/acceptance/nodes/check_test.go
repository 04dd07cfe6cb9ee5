package nodes

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// bound is the time within which work of a dead node continues, if nothing else happens meanwhile.
const bound = 30 * time.Second

// boundOfHandler is the same for a handler with a living host, counted from the start of the next handler.
const boundOfHandler = 3 * time.Second

// check evaluates the run, and stops the machines.
func (s *simulation) check() {
	for _, m := range s.machines {
		m.unfreeze()
		m.disconnect(false)
	}
	s.checkEnds()
	s.checkDuties()
	s.checkFence()
	if s.nodes {
		s.checkRequests()
		s.checkCopies()
	}
	for _, m := range s.machines {
		m.kill()
	}
	for _, m := range s.machines {
		m.work.Wait()
	}
}

// checkCopies checks that a signal of a takeover or of the sweeper is sent once by each that has cause to: each takeover of a node, and
// each sweep of an entry.
func (s *simulation) checkCopies() {
	s.storage.mu.Lock()
	defer s.storage.mu.Unlock()
	for id, n := range s.storage.copies {
		kind, rest, _ := strings.Cut(id, ":")
		node, _, _ := strings.Cut(rest, ":")
		if most := s.storage.claims[node]; kind == "takeover" && n > most {
			s.t.Errorf("%d copies of signal %s, and %d takeovers of the node", n, id, most)
		}
	}
}

// checkEnds checks that each orchestration has its one result, and that every effect that counts occurred.
func (s *simulation) checkEnds() {
	rt, err := orchestrator.New(s.reader())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, id := range s.ids() {
		out, err := rt.Get(s.t.Context(), id)
		if want := fmt.Sprint(sum(s.subjects[id].steps)); err != nil || out.Status != orchestrator.Completed || string(out.Output) != want {
			s.t.Errorf("%s: %s with %s, not %s: %v %v", id, out.Status, out.Output, want, out.Failure, err)
			continue
		}
		s.checkEffects(rt, id)
	}
}

func (s *simulation) checkEffects(rt *orchestrator.Runtime, id string) {
	rounds, _, err := rt.Rounds(s.t.Context(), id, 1000, "")
	if err != nil {
		s.t.Errorf("%s: %v", id, err)
	}
	for _, r := range rounds {
		for _, e := range r.Learned {
			if key := fmt.Sprintf("%s/%d/%d", id, r.Execution, e.Call); e.Kind == "ActivityCompleted" && s.ledger.count(key) == 0 {
				s.t.Errorf("%s: the result of an activity is known that was never done", key)
			}
		}
		for _, e := range r.Decided {
			if e.Kind == "OrchestrationScheduled" {
				s.checkEffects(rt, e.Child)
			}
		}
	}
}

func (s *simulation) reader() orchestrator.Config {
	return orchestrator.Config{Tables: s.storage.tables, Blobs: s.storage.blobs, Queues: s.storage.queues}
}

// checkDuties checks that the work in flight on a machine continued elsewhere in time.
func (s *simulation) checkDuties() {
	late := s.late()
	for _, one := range late {
		s.t.Error(one)
	}
}

// late returns errors for the duties that were not taken over in time.
func (s *simulation) late() []error {
	var all []error
	for _, d := range s.duties {
		if !d.of.kind.ends() && d.of.end.Sub(d.of.begin) < 2*bound {
			continue // the machine may continue itself
		}
		limit := s.quiet(d.silent()).Add(bound)
		if at, swallowed := s.storage.swallowed(d.of.begin, limit); swallowed {
			limit = s.quiet(at.Add(hostLease)).Add(bound)
		}
		if !d.of.kind.ends() && limit.After(d.of.end) {
			continue
		}
		if d.of.kind == crashed && d.spread == nil && limit.Equal(d.of.begin.Add(bound)) {
			limit = d.of.end.Add(boundOfHandler)
		}
		if d.spread != nil {
			limit = limit.Add(pollingTo) // of another queue
			if d.of.kind == cutOff && !d.spread.gaveUp.IsZero() && d.spread.gaveUp.Before(limit) {
				continue // its host has released it, or tried to
			}
		}
		at, how, ok := s.wentOn(d)
		if !ok && time.Now().Before(limit) {
			continue
		}
		if !ok || at.After(limit) {
			all = append(all, fmt.Errorf("%s, which %s had in hand when it was %s at %s, went on at %s (%s), not by %s: %w", d, d.of.hit, d.of.kind,
				clock(d.of.begin), clock(at), how, clock(limit), errLate))
		}
	}
	return all
}

// silent returns the time of the machine's last sign of life. A disconnected machine may have sent some whose answers
// it did not get.
func (d duty) silent() time.Time {
	at := d.of.begin
	if d.of.kind == cutOff && d.of.hit.member != nil {
		if last := d.of.hit.member.renewedBefore(at.Add(bound)); last.After(at) {
			return last
		}
	}
	return at
}

// String names the work.
func (d duty) String() string {
	if d.spread != nil {
		return "message " + d.spread.message + " with activities of " + d.subject
	}
	return d.subject
}

// wentOn returns when another machine continued the work of a machine.
func (s *simulation) wentOn(d duty) (at time.Time, how string, ok bool) {
	if d.spread == nil {
		next, ok := s.storage.wentOn(d.subject, d.of.begin, func(c commit) bool { return c.by != d.of.hit || c.status.Ended() })
		return next.at, next.String(), ok
	}
	if at, ok = s.storage.cameAgain(d.spread.message, d.of.begin, d.of.hit); ok {
		return at, "it came again", true
	}
	end, ok := s.storage.wentOn(d.subject, d.of.begin, func(c commit) bool { return c.status.Ended() })
	return end.at, "it has ended", ok
}

func clock(at time.Time) string { return at.Format("15:04:05.000") }

var errLate = errors.New("too late")

// quiet returns the first time after which no trouble begins for the duration of a takeover, and some machine is
// healthy.
func (s *simulation) quiet(from time.Time) time.Time {
	for moved := true; moved; {
		moved = false
		for _, one := range s.troubles {
			if one.hit != nil && !one.begin.Before(from) && one.begin.Before(from.Add(bound)) && one.begin != from {
				from, moved = one.begin, true
			}
		}
		if at := s.healthyFrom(from); at.After(from) {
			from, moved = at, true
		}
	}
	return from
}

// healthyFrom returns the first time at which some slot has no trouble.
func (s *simulation) healthyFrom(from time.Time) time.Time {
	var first time.Time
	for slot := range s.machines {
		at := from
		for again := true; again; {
			again = false
			for _, one := range s.troubles {
				if one.hit != nil && one.slot == slot && !one.begin.After(at) && one.end.After(at) {
					at, again = one.end, true
				}
			}
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
