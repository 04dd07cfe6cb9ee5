package outbox

import (
	"sync"
	"time"
)

// maxCooldown bounds the growth of a circuit's cooldown, as a multiple.
const maxCooldown = 10

// circuit is a circuit breaker for one destination. After a number of consecutive transient failures it opens for a
// while, then lets one message try, and closes when that succeeds. Its state belongs to this process.
type circuit struct {
	failures int
	cooldown time.Duration
	// changed is called when the circuit opens or closes, and moved also after a failed try; both may be nil.
	changed func(open bool)
	moved   func()

	mu sync.Mutex
	// consecutive counts the failures since the last success.
	consecutive int
	// openUntil is zero while the circuit is closed; pause is the duration of the last opening.
	openUntil time.Time
	pause     time.Duration
	// since is when it opened, and reason the kind of the last failure.
	since  time.Time
	reason string
	// probing is true while the trial message is being delivered.
	probing bool
}

// admit returns how many of the wanted messages may be claimed now; the others have to wait until the returned time.
func (c *circuit) admit(now time.Time, want int) (n int, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.openUntil.IsZero():
		return want, time.Time{}
	case now.Before(c.openUntil):
		return 0, c.openUntil
	case c.probing:
		return 0, now.Add(c.pause)
	}
	return min(want, 1), now.Add(c.pause)
}

// begin requests one delivery. When ok is false, wait until the returned time; otherwise end has to follow.
func (c *circuit) begin(now time.Time) (ok bool, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.openUntil.IsZero():
		return true, time.Time{}
	case now.Before(c.openUntil):
		return false, c.openUntil
	case c.probing:
		return false, now.Add(c.pause)
	}
	c.probing = true
	return true, time.Time{}
}

// end reports the outcome of the delivery: whether the destination worked, which it also did when it refused the
// message, and otherwise the kind of the failure.
func (c *circuit) end(now time.Time, worked bool, reason string) {
	c.mu.Lock()
	was := c.openUntil
	c.record(now, worked)
	is := c.openUntil
	if c.reason = reason; was.IsZero() {
		c.since = now
	}
	c.mu.Unlock()
	if was.IsZero() != is.IsZero() {
		c.changed(!is.IsZero())
	}
	if !was.Equal(is) && c.moved != nil {
		c.moved()
	}
}

// leave reports that the delivery did not reach the destination, and so has no information about it.
func (c *circuit) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
}

func (c *circuit) record(now time.Time, worked bool) {
	if worked {
		c.consecutive, c.openUntil, c.pause, c.probing = 0, time.Time{}, 0, false
		return
	}
	c.consecutive++
	switch {
	case c.probing && !now.Before(c.openUntil):
		c.pause = min(2*c.pause, maxCooldown*c.cooldown)
	case c.openUntil.IsZero() && c.consecutive >= c.failures:
		c.pause = c.cooldown
	default:
		// A delivery that started before the circuit opened has no new information.
		return
	}
	c.probing = false
	c.openUntil = now.Add(c.pause)
}

// open reports whether the circuit is open, or lets one message try.
func (c *circuit) open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.openUntil.IsZero()
}
