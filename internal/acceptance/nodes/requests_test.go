package nodes

import "time"

// The request budget of a node.
const (
	requestsPerMinute = 8
	// lull is the time without work after which a node sends no requests.
	lull = 135 * time.Second
)

// checkRequests checks the number of requests of nodes without trouble.
func (s *simulation) checkRequests() {
	for _, m := range s.storage.machines {
		m.member.mu.Lock()
		calls, work, takes := m.member.calls, m.member.work, m.member.takes
		m.member.mu.Unlock()
		for i, at := range calls {
			if at.Before(m.booted.Add(lull)) || !m.wasWell(at.Add(-lull), at.Add(time.Minute)) || anyWithin(takes, at.Add(-lull), at.Add(time.Minute)) {
				continue
			}
			if !worked(work, at.Add(-lull), at) {
				s.t.Errorf("%s asks for something at %s without having work", m, clock(at))
			}
			n := 0
			for _, other := range calls[i:] {
				if other.Sub(at) < time.Minute {
					n++
				}
			}
			if n > requestsPerMinute {
				s.t.Errorf("%s asks %d times in the minute from %s on", m, n, clock(at))
			}
		}
	}
}

func anyWithin(times []time.Time, from, to time.Time) bool {
	for _, at := range times {
		if !at.Before(from) && at.Before(to) {
			return true
		}
	}
	return false
}

func worked(work []span, from, to time.Time) bool {
	for _, one := range work {
		if !one.begin.After(to) && (one.end.IsZero() || one.end.After(from)) {
			return true
		}
	}
	return false
}
