package outbox

import (
	"sync"
	"time"
)

// maxCooldown is how much a circuit's cooldown grows at most, as a multiple.
const maxCooldown = 10

// circuit stops the deliveries to a destination that fails: after so many transient failures in a row it opens for a
// while, then lets one message try, and closes when that gets through. It is this process's view.
type circuit struct {
	failures int
	cooldown time.Duration
	changed  func(open bool)

	mu sync.Mutex
	// inARow counts the failures since the last success.
	consecutive int
	// openUntil is zero while the circuit is closed; pause is what it was set by.
	openUntil time.Time
	pause     time.Duration
	// probing: the one message that may try is under way.
	probing bool
}

// admit says how many of so many messages may be claimed now; the others are to come back at until.
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

// begin asks for one delivery. When ok is false, come back at until; else leave has to follow.
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

// end tells how the delivery ended: whether the destination worked, which it also did when it refused the message.
func (c *circuit) end(now time.Time, worked bool) {
	c.mu.Lock()
	was := !c.openUntil.IsZero()
	c.record(now, worked)
	is := !c.openUntil.IsZero()
	c.mu.Unlock()
	if was != is {
		c.changed(is)
	}
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
		// A straggler of before the circuit opened says nothing new.
		return
	}
	c.probing = false
	c.openUntil = now.Add(c.pause)
}
