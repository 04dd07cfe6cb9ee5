package queueprobe

import "time"

// skew bounds the difference between the clocks of two processes.
const skew = time.Minute

// State is the state of a queue.
type State struct {
	// Queue is its name.
	Queue string
	// SentAt is when the last probe was sent, Missing the number of checks without an arrival since, and LookedAt
	// when the last recorded check was. HeardAt is when a message last arrived. Times are UTC, zero for never.
	SentAt, LookedAt, HeardAt time.Time
	Missing                   int
}

// outstanding reports whether no message has arrived since the last probe was sent. An arrival is recorded by another
// clock.
func (s State) outstanding() bool {
	return s.HeardAt.Add(skew).Before(s.SentAt) || s.HeardAt.IsZero() && !s.SentAt.IsZero()
}

// Deaf reports whether messages of the queue do not arrive.
func (s State) Deaf() bool { return s.outstanding() && s.Missing >= deafAfter }

// Silent reports whether no check runs, now, in a process that has been up since started: timers do not fire.
func (s State) Silent(now, started time.Time) bool {
	for _, t := range []time.Time{started, s.LookedAt, s.HeardAt} {
		if now.Sub(t) < silentAfter {
			return false
		}
	}
	return true
}
