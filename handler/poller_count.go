package handler

import (
	"sync"

	"github.com/vibedata/roundhouse/poller"
)

// pollerCount counts the work of a poller in this process, over all its runners. Its lock is held for moments only: a
// scrape does not wait for a database.
type pollerCount struct {
	mu     sync.Mutex
	runner *poller.Runner  // nil without one
	before poller.Counters // of closed runners, and of ticks without one
}

// begin counts from zero, with the size of the first batch.
func (c *pollerCount) begin(batch int) {
	c.before = poller.Counters{BatchSize: batch, Lag: -1}
}

// opened sets the runner that counts from now on.
func (c *pollerCount) opened(r *poller.Runner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runner = r
}

// closed keeps the runner's counts.
func (c *pollerCount) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before, c.runner = c.sum(), nil
}

// unopened counts a tick that failed because the source could not be opened.
func (c *pollerCount) unopened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before.Ticks++
	c.before.Failures++
}

// get returns all counts.
func (c *pollerCount) get() poller.Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum()
}

func (c *pollerCount) sum() poller.Counters {
	if c.runner == nil {
		return c.before
	}
	return c.before.Plus(c.runner.Counters())
}

// counters returns the counters of the pollers, by name: all of them from the start, so that the first work of a
// poller counts as an increase, and a failing source shows.
func (p *pollers) counters() map[string]poller.Counters {
	all := map[string]poller.Counters{}
	for _, j := range p.jobs {
		all[j.setting.Name] = j.count.get()
	}
	return all
}
