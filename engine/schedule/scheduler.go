package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// MaxItems is how many items of a schedule are sent.
	MaxItems = 20_000
	// Refresh is how old what a process knows may be.
	Refresh = 10 * time.Minute

	// adoption is how long before the first look of an app that has no rows yet slots are sent: what became due while the app was
	// being deployed.
	adoption = 15 * time.Minute
	// maxSkew is how far clocks of processes differ. A time in a row that is further in the future is a clock's that was wrong.
	maxSkew = 5 * time.Minute
	// absence is how long a fixed item is gone before its row is switched off: while an app is deployed, processes of two
	// settings run.
	absence = time.Hour
	// keepGone is how long the row of an item is kept that is gone.
	keepGone = 90 * 24 * time.Hour
)

// Config is what a Scheduler needs. Plan, Tables and Queues are required.
type Config struct {
	Plan   *Plan
	Tables tables.Store
	Queues engine.Sender
	// Log takes what was sent; nil means no log.
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Scheduler sends what is due, and tells what there is. It is safe for concurrent use.
type Scheduler struct {
	plan   *Plan
	tables tables.Store
	queues engine.Sender
	log    *slog.Logger
	clock  func() time.Time

	// tick is held by the tick that goes on, and guards what is below: what this process knows, and may be out of date.
	tick sync.Mutex
	// readAt is when storage was read last, zero when it has to be; next is when the first item is due.
	readAt, next time.Time
	// seen is when the items of a schedule were listed last.
	seen map[*line]time.Time
	// absent is since when fixed items are gone, by row key.
	absent map[string]time.Time
	// unwritten are items that were sent, and whose rows could not be written, by row key.
	unwritten map[string]pause
}

// New makes a scheduler. It touches no storage.
func New(c Config) (*Scheduler, error) {
	if c.Plan == nil || c.Tables == nil || c.Queues == nil {
		return nil, errors.New("schedules: plan, tables and queues are required")
	}
	s := &Scheduler{plan: c.Plan, tables: c.Tables, queues: c.Queues, log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), clock: c.Now,
		seen: map[*line]time.Time{}, absent: map[string]time.Time{}, unwritten: map[string]pause{}}
	if s.clock == nil {
		s.clock = time.Now
	}
	return s, nil
}

// CreateTable makes sure that the table exists.
func (s *Scheduler) CreateTable(ctx context.Context) error {
	if err := s.tables.CreateTable(ctx, Table); err != nil {
		return fmt.Errorf("create the table of schedules: %w", err)
	}
	return nil
}

func (s *Scheduler) now() time.Time { return s.clock().UTC() }

// rows reads all rows, by their keys.
func (s *Scheduler) rows(ctx context.Context) (map[string]state, error) {
	all := map[string]state{}
	for e, err := range tables.All(ctx, s.tables, Table, tables.Query{Partition: partition}) {
		if err != nil {
			return nil, fmt.Errorf("read what is known of schedules: %w", err)
		}
		all[e.Row] = stateOf(e)
	}
	return all, nil
}

// pause is how long something is not tried again that has failed.
type pause struct {
	failures int
	until    time.Time
}

// again is the pause after another failure: 1, 2, 4, and then 5 minutes, less a moment, so that the tick of that minute tries.
func (p pause) again(now time.Time) pause {
	minutes := min(1<<min(p.failures, 3), 5)
	return pause{p.failures + 1, now.Add(time.Duration(minutes)*time.Minute - 5*time.Second)}
}
