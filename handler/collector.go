package handler

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/tables/hostlock"
)

const (
	// collectorJob is the lock of the process that collects the metrics of shared storage.
	collectorJob = "collector"
	// collectorLease is its lease: longer than the interval between scrapes.
	collectorLease = 2 * time.Minute
)

// collector decides whether this process collects for all. It checks when it is scraped, and keeps the lock while it
// is.
type collector struct {
	locks hostlock.Locks
	log   *slog.Logger
	now   func() time.Time

	mu   sync.Mutex
	lock hostlock.Lock
	held bool
}

// Held renews the lock when half of its lease is over, or tries to acquire it.
func (c *collector) Held(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	switch {
	case c.held && c.lock.Until.Sub(c.now()) > collectorLease/2:
		return true
	case c.held:
		c.lock, err = c.locks.Renew(ctx, c.lock, collectorLease)
	default:
		c.lock, err = c.locks.Acquire(ctx, collectorJob, collectorLease)
	}
	c.held = err == nil
	if err != nil && !errors.Is(err, hostlock.ErrHeld) && !errors.Is(err, hostlock.ErrLost) {
		c.log.WarnContext(ctx, "who collects the metrics is not known", "error", err.Error())
	}
	return c.held
}
