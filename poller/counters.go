package poller

import (
	"cmp"
	"sync"
	"time"
)

// Counters are the counts of a Runner in this process.
type Counters struct {
	// Rows and Batches were delivered and committed, Quarantined rows were quarantined.
	Rows, Batches, Quarantined int64
	// Ticks counts the calls of Tick. Idle ticks found no rows, and Skipped ones left the work to another process or time.
	Ticks, Idle, Skipped int64
	// Failures counts failed ticks, Failed failed deliveries, and LeasesLost leases that ended early.
	Failures, Failed, LeasesLost int64
	// Unconfirmed counts rows that were delivered without a confirmed commit, and so may be delivered twice.
	Unconfirmed int64
	// BatchSize is the limit of the next batch in rows.
	BatchSize int
	// Lag is the age of the last row at its commit, 0 without further rows. It is -1 while unknown: at first, and with
	// more rows to come when the cursor is not a time. It does not change while the poller is stopped: alert on
	// LastSuccess.
	Lag time.Duration
	// LastSuccess is when the poller last reached the end of its rows or committed a batch, by the state store's clock.
	LastSuccess time.Time
	// HeldBack is the reason why existing rows are not read yet, "" when none are known to be held back.
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
