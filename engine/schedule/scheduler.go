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
	// MaxItems bounds the targets of a schedule.
	MaxItems = 20_000
	// Refresh is the maximum age of a process's data.
	Refresh = 10 * time.Minute

	// adoption is the time before the first read of an app without rows from which slots are sent: those that became
	// due during the deployment.
	adoption = 15 * time.Minute
	// maxSkew bounds the difference of the processes' clocks. A stored time further in the future comes from a wrong
	// clock.
	maxSkew = 5 * time.Minute
	// absence is the time after which a missing fixed target is switched off: during a deployment, processes with two
	// settings run.
	absence = time.Hour
	// keepGone is the retention of the row of a missing target.
	keepGone = 90 * 24 * time.Hour
)

// Config configures a Scheduler. Plan, Tables and Queues are required.
type Config struct {
	Plan   *Plan
	Tables tables.Store
	Queues engine.Sender
	// Log logs sent slots; nil means no log.
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Scheduler sends due slots, and lists targets. It is safe for concurrent use.
type Scheduler struct {
	plan   *Plan
	tables tables.Store
	queues engine.Sender
	log    *slog.Logger
	clock  func() time.Time

	// tick is held by the running tick, and guards the fields below: this process's data, which may be out of date.
	tick sync.Mutex
	// readAt is the last read of storage, zero to force one; next is when the first target is due.
	readAt, next time.Time
	// seen is when the targets of a schedule were listed last.
	seen map[*line]time.Time
	// absent is since when fixed targets are missing, by row key.
	absent map[string]time.Time
	// unwritten holds sent targets whose rows could not be written, by row key.
	unwritten map[string]pause
}

// New makes a scheduler. It does not access storage.
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

// pause is the pause after failures.
type pause struct {
	failures int
	until    time.Time
}

// again returns the pause after another failure: 1, 2, 4, and then 5 minutes, less a moment, so that the tick of that
// minute tries.
func (p pause) again(now time.Time) pause {
	minutes := min(1<<min(p.failures, 3), 5)
	return pause{p.failures + 1, now.Add(time.Duration(minutes)*time.Minute - 5*time.Second)}
}
