package nodes

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// troubleKind is the kind of a trouble.
type troubleKind string

const (
	sweepEvery = 5 * time.Minute
	// restart is the time until a host starts another handler.
	restart = 2 * time.Second
)

const (
	killed troubleKind = "killed" // another machine boots in its slot at the end
	frozen troubleKind = "frozen"
	cutOff troubleKind = "cut off"
	// crashed is a handler that dies while its host lives: the host requeues its messages, and starts another handler.
	crashed troubleKind = "crashed"
	// slowed is a machine for which some services answer late.
	slowed troubleKind = "slowed"
	// told is a machine that is shut down: its node leaves, and its messages are not requeued.
	told troubleKind = "told to end"
)

// ends reports whether the trouble ends the machine.
func (k troubleKind) ends() bool { return k == killed || k == crashed || k == told }

// trouble is drawn for a slot, and hits the machine in it.
type trouble struct {
	kind       troubleKind
	slot       int
	begin, end time.Time
	late       lateness // of a machine that is slowed
	hit        *machine
	over       bool
}

// lateness is how much later services answer. Calls within inLease are quick enough for a sign of life.
type lateness struct {
	by                     time.Duration
	tables, queues, others bool
}

// inLease is the duration of a call with which a node keeps its sign of life.
const inLease = nodes.DefaultDeath - nodes.DefaultInterval

// drawLateness draws for each service whether it answers late.
func drawLateness(random *rand.Rand) lateness {
	by := []time.Duration{500 * time.Millisecond, 2 * time.Second, inLease - 100*time.Millisecond, 2 * inLease}[random.IntN(4)]
	return lateness{by, random.IntN(2) == 0, random.IntN(2) == 0, random.IntN(2) == 0}
}

// of is how much later a call is answered.
func (l lateness) of(c faults.Call) time.Duration {
	if late := map[string]bool{"tables": l.tables, "queues": l.queues}; late[c.Service] || c.Service == "blobs" && l.others {
		return l.by
	}
	return 0
}

// duty is work in flight on a machine at the start of its trouble.
type duty struct {
	subject string
	spread  *invocation // of activities; nil when the orchestration itself was in flight
	of      *trouble
}

func (s *simulation) drawTroubles() {
	n := s.script.IntN(16)
	for range n {
		one := &trouble{kind: []troubleKind{killed, frozen, cutOff, crashed, told, slowed}[s.script.IntN(6)], slot: s.script.IntN(len(s.machines))}
		one.begin = s.began.Add(upTo(s.script, horizon))
		most := []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, 30 * time.Minute}[s.script.IntN(4)]
		if one.end = one.begin.Add(time.Second + upTo(s.script, most)); one.kind == crashed {
			one.end = one.begin.Add(restart)
		}
		if one.kind == slowed {
			one.late = drawLateness(s.script)
		}
		s.troubles = append(s.troubles, one)
	}
	if s.script.IntN(4) == 0 { // all together
		at := s.began.Add(upTo(s.script, horizon))
		for slot := range s.machines {
			s.troubles = append(s.troubles, &trouble{kind: killed, slot: slot, begin: at.Add(upTo(s.script, 2*time.Second)), end: at.Add(upTo(s.script, 10*time.Minute))})
		}
	}
	slices.SortFunc(s.troubles, func(a, b *trouble) int { return cmp.Compare(a.begin.UnixNano(), b.begin.UnixNano()) })
}

// advance starts and ends due troubles, and runs the sweepers.
func (s *simulation) advance() {
	if time.Since(s.swept) >= sweepEvery {
		s.swept = time.Now()
		s.sweep()
	}
	for _, one := range s.troubles {
		now := time.Now()
		if one.hit == nil && !one.over && !now.Before(one.begin) {
			one.begin = now
			s.strike(one)
		}
		if one.hit != nil && !one.over && !now.Before(one.end) {
			one.over, one.end = true, now
			s.relieve(one)
		}
	}
}

// strike starts a trouble. A machine has one at a time, except that a machine in trouble can be killed.
func (s *simulation) strike(one *trouble) {
	m := s.machines[one.slot]
	if !m.alive() || !one.kind.ends() && !m.healthy() || one.kind == told && !m.healthy() {
		one.over = true
		return
	}
	one.hit = m
	for _, before := range s.troubles { // its current trouble continues
		if before != one && before.hit == m && !before.over {
			before.over, before.end = true, one.end
			s.tell("%s is %s, too", m, one.kind)
			m.hostLives = one.kind == crashed
			m.kill()
			return
		}
	}
	in := m.inHand()
	s.tell("%s is %s until %s with %v in hand", m, one.kind, clock(one.end), in)
	if one.kind == slowed { // it continues its work
		m.slowDown(one.late)
		return
	}
	for _, subject := range in {
		s.duties = append(s.duties, duty{subject, nil, one})
	}
	for _, v := range m.activities() {
		s.duties = append(s.duties, duty{v.subject, v, one})
	}
	switch one.kind {
	case killed:
		m.kill()
	case crashed:
		m.hostLives = true
		m.kill()
	case told:
		m.leave()
	case frozen:
		m.freeze()
	case cutOff:
		m.disconnect(true)
	}
}

func (s *simulation) relieve(one *trouble) {
	switch one.kind {
	case killed, crashed, told:
		host := ""
		if one.kind == crashed {
			host = one.hit.host
		}
		s.machines[one.slot] = s.bootUnder(one.slot, host)
		s.tell("%s boots", s.machines[one.slot])
	case frozen:
		one.hit.unfreeze()
		s.tell("%s is thawed", one.hit)
	case cutOff:
		one.hit.disconnect(false)
		s.tell("%s is connected", one.hit)
	case slowed:
		one.hit.slowDown(lateness{})
		s.tell("%s is quick", one.hit)
	}
}

// inHand returns the orchestrations in flight on a machine: it has committed rounds in running invocations.
func (m *machine) inHand() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for v := range m.hand {
		if v.queue != activityQueue && m.drives(v.subject, v.since) && !slices.Contains(all, v.subject) {
			all = append(all, v.subject)
		}
	}
	for _, id := range m.member.driven() {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

// activities returns the messages of spread activities in flight on a machine that it has had time to announce.
func (m *machine) activities() []*invocation {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*invocation
	for v := range m.hand {
		if v.queue == activityQueue && time.Since(v.since) > nodes.DefaultInterval+2*time.Second && m.storage.lastHanded(v.message) == m {
			all = append(all, v)
		}
	}
	return all
}

// drives reports whether the machine has committed the last round of an orchestration since a time.
func (m *machine) drives(subject string, since time.Time) bool {
	last := m.storage.status(subject)
	return last.by == m && !last.at.Before(since) && !last.status.Ended()
}

// driven returns the orchestrations that the runtime has reported to the node.
func (b *member) driven() []string {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for one := range b.held {
		if b.of.drives(one.subject, one.since) {
			all = append(all, one.subject)
		}
	}
	return all
}

// sweep runs the timer of the sweepers on one of the machines.
func (s *simulation) sweep() {
	m := s.machines[s.script.IntN(len(s.machines))]
	if !m.healthy() || m.member == nil {
		return
	}
	m.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithValue(m.ctx, sweeping{}, true), budget)
		defer cancel()
		m.member.helps()
		defer m.member.helps()
		woken, err := m.runtime.Sweep(ctx, 1000)
		m.tell("%s sweeps: %d, %v, %v", m, woken, err, m.member.Sweep(ctx))
	})
}

type sweeping struct{}
