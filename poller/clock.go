package poller

import (
	"sync"
	"time"
)

// clock is the state store's clock, as far as this process can know it: what the store said last, and the time that has
// passed here since it was asked. It is never more than the store's precision (a second) behind.
type clock struct {
	// now is a clock of this process. Only differences between its times are used, so it may be wrong.
	now func() time.Time

	mu      sync.Mutex
	service time.Time // what the store said
	local   time.Time // when it was asked
}

// observe takes what the store has said in answer to a request that was sent at that local time. An answer that agrees with
// what is known, within the store's precision, does not move the clock back.
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

// time is the store's time now.
func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.service.Add(c.now().Sub(c.local)).UTC()
}
