package queueprobe

import "time"

// skew is how far the clocks of two processes may be apart.
const skew = time.Minute

// State is what is known of a queue.
type State struct {
	// Queue is its name.
	Queue string
	// SentAt is when the last probe was sent, Missing how many looks have not found it since, and LookedAt when the last look was
	// that has left a trace. HeardAt is when a message has come from the queue. Times are UTC, and zero when there was none.
	SentAt, LookedAt, HeardAt time.Time
	Missing                   int
}

// outstanding says that nothing has come since the last probe was sent. One that arrives is recorded by another clock.
func (s State) outstanding() bool {
	return s.HeardAt.Add(skew).Before(s.SentAt) || s.HeardAt.IsZero() && !s.SentAt.IsZero()
}

// Deaf says that messages of the queue do not come.
func (s State) Deaf() bool { return s.outstanding() && s.Missing >= deafAfter }

// Silent says that nobody looks any more, now, in a process that has been up since started: timers do not fire.
func (s State) Silent(now, started time.Time) bool {
	for _, t := range []time.Time{started, s.LookedAt, s.HeardAt} {
		if now.Sub(t) < silentAfter {
			return false
		}
	}
	return true
}
