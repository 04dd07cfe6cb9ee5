package handler

import (
	"sync"

	"github.com/vibedata/roundhouse/poller"
)

// pollerCount is what a poller has done in this process, over all runners that it had. Its lock is held for moments only: a
// scrape does not wait for a database.
type pollerCount struct {
	mu     sync.Mutex
	runner *poller.Runner  // nil while there is none
	before poller.Counters // of runners that were closed, and of ticks that had none
}

// begin counts from zero, with the size of the first batch.
func (c *pollerCount) begin(batch int) {
	c.before = poller.Counters{BatchSize: batch, Lag: -1}
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
	c.before, c.runner = c.sum(), nil
}

// unopened counts a tick that has failed because the source could not be opened.
func (c *pollerCount) unopened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before.Ticks++
	c.before.Failures++
}

// get is all that was counted.
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

// counters are what the pollers have done, by their names: all of them from the start, so that the first thing that a poller does
// counts as an increase, and one whose source cannot be opened shows that it fails.
func (p *pollers) counters() map[string]poller.Counters {
	all := map[string]poller.Counters{}
	for _, j := range p.jobs {
		all[j.setting.Name] = j.count.get()
	}
	return all
}
