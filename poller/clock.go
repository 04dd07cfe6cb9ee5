package poller

import (
	"sync"
	"time"
)

// clock estimates the clock of the state store: the time in its last answer, plus the time that has passed here since
// the request was sent. It lags at most by the store's precision (a second).
type clock struct {
	// now is a clock of this process. Only differences between its times are used, so it may be wrong.
	now func() time.Time

	mu      sync.Mutex
	service time.Time // the time in the last answer
	local   time.Time // when that request was sent
}

// observe processes the time in the answer to a request that was sent at this local time. An answer that agrees with
// the estimate, within the store's precision, does not move the clock back.
func (c *clock) observe(said, sent time.Time) {
	if said.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.service.IsZero() {
		if ahead := c.service.Add(sent.Sub(c.local)).Sub(said); ahead >= 0 && ahead < time.Second {
			return
		}
	}
	c.service, c.local = said, sent
}

// time returns the store's time.
func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.service.Add(c.now().Sub(c.local)).UTC()
}
