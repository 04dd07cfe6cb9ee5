package handler

import (
	"sync"

	"github.com/vibedata/roundhouse/poller"
)

// pollerCount is what a poller has done in this process, over all runners that it had. Its lock is held for moments only: a
// scrape does not wait for a database.
type pollerCount struct {
	mu     sync.Mutex
	runner *poller.Runner   // nil while there is none
	before *poller.Counters // of those that were closed, nil without one
}

// opened takes the runner that counts from now on.
func (c *pollerCount) opened(r *poller.Runner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runner = r
}

// closed keeps what the runner has counted.
func (c *pollerCount) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all, ok := c.sum(); ok {
		c.before = &all
	}
	c.runner = nil
}

// get is all that was counted; ok is false before there was a runner.
func (c *pollerCount) get() (all poller.Counters, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum()
}

func (c *pollerCount) sum() (all poller.Counters, ok bool) {
	switch {
	case c.runner == nil && c.before == nil:
		return poller.Counters{}, false
	case c.runner == nil:
		return *c.before, true
	case c.before == nil:
		return c.runner.Counters(), true
	}
	return c.before.Plus(c.runner.Counters()), true
}

// counters are what the pollers have done, by their names, without those whose source was never opened.
func (p *pollers) counters() map[string]poller.Counters {
	all := map[string]poller.Counters{}
	for _, j := range p.jobs {
		if counts, ok := j.count.get(); ok {
			all[j.setting.Name] = counts
		}
	}
	return all
}
