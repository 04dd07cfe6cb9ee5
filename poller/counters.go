package poller

import (
	"cmp"
	"sync"
	"time"
)

// Counters are what a Runner has counted since it was made, in this process.
type Counters struct {
	// Rows and Batches were delivered and committed, Quarantined rows were given up.
	Rows, Batches, Quarantined int64
	// Ticks is how often Tick ran. Idle ticks found nothing, and Skipped ones left the work to another process or time.
	Ticks, Idle, Skipped int64
	// Failures counts ticks that ended with an error, Failed deliveries that did, and LeasesLost leases that ended
	// early.
	Failures, Failed, LeasesLost int64
	// Unconfirmed counts rows that were delivered and are not known to be committed: as many may be delivered twice.
	Unconfirmed int64
	// BatchSize is how many rows the next batch may have.
	BatchSize int
	// Lag is how old the last row was when it was committed, 0 when there are no more rows. It is -1 while it is not
	// known: at first, and with more rows to come when the cursor is not a time. It does not change while the poller is
	// stopped: alert on LastSuccess.
	Lag time.Duration
	// LastSuccess is when the poller last came to the end of its rows or committed a batch, by the state store's clock.
	LastSuccess time.Time
	// HeldBack says why existing rows are not read yet, "" when none are known to be held back.
	HeldBack string
}

// Plus adds the counters of a later Runner of the same poller to those of an earlier one, c.
func (c Counters) Plus(later Counters) Counters {
	sum := later
	sum.Rows += c.Rows
	sum.Batches += c.Batches
	sum.Quarantined += c.Quarantined
	sum.Ticks += c.Ticks
	sum.Idle += c.Idle
	sum.Skipped += c.Skipped
	sum.Failures += c.Failures
	sum.Failed += c.Failed
	sum.LeasesLost += c.LeasesLost
	sum.Unconfirmed += c.Unconfirmed
	sum.BatchSize = cmp.Or(later.BatchSize, c.BatchSize)
	if later.Lag < 0 {
		sum.Lag = c.Lag
	}
	if later.LastSuccess.IsZero() {
		sum.LastSuccess = c.LastSuccess
	}
	return sum
}

type counters struct {
	mu sync.Mutex
	c  Counters
}

func (c *counters) add(change func(*Counters)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.c)
}

func (c *counters) snapshot() Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.c
}
