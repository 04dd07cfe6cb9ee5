// Package drain stops the work of an app for an update, in all of its processes, without losing time or attempts.
//
// A flag in storage drains the app until a time, at which a forgotten flag expires. Every process reads it at an
// invocation, and while it works every few seconds; an idle one reads nothing. While the flag is set, a process
// requeues received messages, without using up attempts, and ends the contexts of its work, so that orchestrations
// park at their last round. It reports how much still runs until nothing does.
//
// Once Store.Look reports that nothing runs, Notice after Begin or later, no process works on a delivery: every
// orchestration is committed, every message answered or requeued, and killing a process then delays nothing. Limits:
// a host still receives messages, which are requeued, and a message that it receives in the moment in which it is
// killed is redelivered when the host's lease expires. A process that does not reach storage is not seen. An activity
// that ignores its context is left behind, as after an invocation's timeout, and starts over afterwards.
//
// It owns the partition "drain" of the table hostLocks.
package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

const (
	// Interval is the interval at which a working process reads the flag.
	Interval = 3 * time.Second
	// Notice is the time after Begin by which every working process has reported: one that read just before admits
	// work for an interval, and reads again within another.
	Notice = 2*Interval + readLimit + reportLimit + Interval
	// DefaultLength is the default duration of a drain.
	DefaultLength = 30 * time.Minute
	// MaxLength bounds that.
	MaxLength = 24 * time.Hour

	readLimit   = 3 * time.Second
	reportLimit = 3 * time.Second
	// maxNodes bounds the processes that are read.
	maxNodes = 10_000
	// batch bounds the rows that a transaction deletes.
	batch = 100
)

// The keys and columns of the flag, and of the reports.
const (
	partition     = "drain"
	flagRow       = "flag"
	nodePrefix    = "node-"
	columnID      = "DrainId"
	columnUntil   = "UntilUtc"
	columnBegan   = "BeganUtc"
	columnBy      = "By"
	columnRunning = "Running"
	columnSeen    = "SeenUtc"
)

// ErrLength: a duration is out of bounds.
var ErrLength = errors.New("an app is drained for a second to a day")

// Flag is the flag of a drained app.
type Flag struct {
	// ID identifies a drain.
	ID string `json:"id"`
	// By is the operator that began it.
	By    string    `json:"by"`
	Began time.Time `json:"began"`
	// Until is its expiry.
	Until time.Time `json:"until"`
}

// Set reports whether the app is drained at a time.
func (f Flag) Set(now time.Time) bool { return f.ID != "" && now.Before(f.Until) }

// Node is the report of a process.
type Node struct {
	Name    string    `json:"name"`
	Running int       `json:"running"`
	Seen    time.Time `json:"seen"`
}

// Store stores the flag and the reports. Tables is required.
type Store struct {
	Tables tables.Store
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (s Store) now() time.Time {
	if s.Now != nil {
		return s.Now().UTC()
	}
	return time.Now().UTC()
}

// Begin drains the app, or restarts a drain.
func (s Store) Begin(ctx context.Context, by string, length time.Duration) (Flag, error) {
	if length < time.Second || length > MaxLength {
		return Flag{}, fmt.Errorf("%v: %w", length, ErrLength)
	}
	if err := s.Tables.CreateTable(ctx, hostlock.DefaultTable); err != nil {
		return Flag{}, fmt.Errorf("begin to drain: %w", err)
	}
	if err := s.forget(ctx); err != nil {
		return Flag{}, err
	}
	now, err := s.serviceTime(ctx)
	if err != nil {
		return Flag{}, err
	}
	f := Flag{ID: uuid.NewString(), By: by, Began: now, Until: now.Add(length)}
	return f, s.write(ctx, "begin to drain", flagRow, map[string]any{columnID: f.ID, columnBy: f.By, columnBegan: f.Began, columnUntil: f.Until})
}

// End ends the drain. It may be repeated.
func (s Store) End(ctx context.Context) error {
	f, err := s.Flag(ctx)
	if err != nil || f.ID == "" {
		return err
	}
	return s.write(ctx, "end the drain", flagRow, map[string]any{columnID: "", columnBy: f.By, columnBegan: f.Began, columnUntil: s.now()})
}

// serviceTime returns the clock of storage: the operator's clock may be wrong, and processes would not see the drain.
func (s Store) serviceTime(ctx context.Context) (time.Time, error) {
	var answer tables.Response
	if _, err := s.Flag(tables.WithCaptureResponse(ctx, &answer)); err != nil {
		return time.Time{}, err
	}
	if date := answer.Date(); !date.IsZero() {
		return date, nil
	}
	return s.now(), nil
}

// Flag reads the flag; its zero value means that the app has never been drained.
func (s Store) Flag(ctx context.Context) (Flag, error) {
	row, err := s.Tables.Get(ctx, hostlock.DefaultTable, tables.Key{Partition: partition, Row: flagRow})
	if errors.Is(err, tables.ErrNotFound) {
		return Flag{}, nil
	}
	if err != nil {
		return Flag{}, fmt.Errorf("read whether the app is drained: %w", err)
	}
	return Flag{ID: row.String(columnID), By: row.String(columnBy), Began: row.Time(columnBegan), Until: row.Time(columnUntil)}, nil
}

// Look returns the processes that have reported running work since the flag was set. Before Notice has passed, a
// working process may not have reported yet.
func (s Store) Look(ctx context.Context, f Flag) (running []Node, err error) {
	q := nodeRows()
	for seen := 0; seen < maxNodes; {
		page, err := s.Tables.Query(ctx, hostlock.DefaultTable, q)
		if err != nil {
			return nil, fmt.Errorf("read what still runs: %w", err)
		}
		for _, row := range page.Entities {
			if n := row.Int(columnRunning); row.String(columnID) == f.ID && n > 0 {
				name, _ := tables.UnescapeKey(row.Row[len(nodePrefix):]) // an unreadable name is empty
				running = append(running, Node{Name: cmp.Or(name, row.Row), Running: int(n), Seen: row.Time(columnSeen)})
			}
		}
		if page.Next == "" {
			return running, nil
		}
		seen, q.Continuation = seen+len(page.Entities), page.Next
	}
	return running, nil
}

func nodeRows() tables.Query {
	return tables.Query{Partition: partition, From: nodePrefix, To: tables.PrefixEnd(nodePrefix)}
}

// forget deletes the reports of the previous drain.
func (s Store) forget(ctx context.Context) error {
	for {
		page, err := s.Tables.Query(ctx, hostlock.DefaultTable, nodeRows())
		if err != nil || len(page.Entities) == 0 {
			return within("delete old reports", err)
		}
		for rows := range slices.Chunk(page.Entities, batch) {
			var ops []tables.Op
			for _, row := range rows {
				ops = append(ops, tables.Delete(row.Key, ""))
			}
			if err := s.Tables.Apply(ctx, hostlock.DefaultTable, ops...); err != nil && !errors.Is(err, tables.ErrNotFound) {
				return within("delete old reports", err)
			}
		}
	}
}

func within(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// report records how much runs in a process.
func (s Store) report(ctx context.Context, f Flag, node string, running int) error {
	return s.write(ctx, "report what still runs", nodePrefix+tables.EscapeKey(node), map[string]any{columnID: f.ID, columnRunning: int64(running), columnSeen: s.now()})
}

func (s Store) write(ctx context.Context, what, row string, properties map[string]any) error {
	e := tables.Entity{Key: tables.Key{Partition: partition, Row: row}, Properties: properties}
	if err := s.Tables.Apply(ctx, hostlock.DefaultTable, tables.Upsert(e)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
