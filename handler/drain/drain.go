// Package drain stops the work of an app for an update, in all of its processes, without losing time or attempts.
//
// A flag in storage says that the app is drained, and until when: one that is forgotten ends by itself. Every process reads it
// when an invocation comes, and while it works every few seconds; one without work reads nothing. While the flag is set, a
// process puts messages back that come, without using up attempts, and ends the contexts of what it runs, so that orchestrations
// park at their last round. It reports how much still runs until that is nothing.
//
// It promises that once Store.Look says that nothing runs, Notice after Begin or later, no process works on a delivery: every
// orchestration is committed, every message answered or put back, and a process that is killed then holds up nothing. What it
// cannot promise: a host still takes messages, to have them put back, and one that it takes in the moment in which it is killed
// comes back when the host's lease ends; a process that does not reach storage is not seen; and an activity that does not look at
// its context is left behind, as at the end of an invocation's time, and begins anew afterwards.
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
	// Interval is how often a process that works reads the flag.
	Interval = 3 * time.Second
	// Notice is how long after Begin every process that works has told of itself: one that looked just before lets work in for
	// an interval, and looks again within another.
	Notice = 2*Interval + readLimit + reportLimit + Interval
	// DefaultLength is how long an app is drained unless somebody ends it.
	DefaultLength = 30 * time.Minute
	// MaxLength bounds that.
	MaxLength = 24 * time.Hour

	readLimit   = 3 * time.Second
	reportLimit = 3 * time.Second
	// maxNodes bounds how many processes are looked at.
	maxNodes = 10_000
	// batch is how many rows a transaction may delete.
	batch = 100
)

// The keys and columns of the flag, and of what processes report.
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

// ErrLength: a time is out of bounds.
var ErrLength = errors.New("an app is drained for a second to a day")

// Flag says that an app is drained.
type Flag struct {
	// ID tells drains apart.
	ID string `json:"id"`
	// By is who began it.
	By    string    `json:"by"`
	Began time.Time `json:"began"`
	// Until is when it ends by itself.
	Until time.Time `json:"until"`
}

// Set reports whether the app is drained at a time.
func (f Flag) Set(now time.Time) bool { return f.ID != "" && now.Before(f.Until) }

// Node is what a process has reported of itself.
type Node struct {
	Name    string    `json:"name"`
	Running int       `json:"running"`
	Seen    time.Time `json:"seen"`
}

// Store is where flag and reports are. Tables is required.
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

// Begin drains the app, or drains it anew.
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

// End lets the app work again. It may be repeated.
func (s Store) End(ctx context.Context) error {
	f, err := s.Flag(ctx)
	if err != nil || f.ID == "" {
		return err
	}
	return s.write(ctx, "end the drain", flagRow, map[string]any{columnID: "", columnBy: f.By, columnBegan: f.Began, columnUntil: s.now()})
}

// serviceTime is the clock of storage: that of whoever drains an app may be wrong, and processes would not see that it is drained.
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

// Flag reads the flag; its zero value says that the app has never been drained.
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

// Look gives the processes that have reported since the flag was set and of which something still runs. Before Notice has
// passed since then, one that works may not have reported yet.
func (s Store) Look(ctx context.Context, f Flag) (running []Node, err error) {
	q := nodeRows()
	for seen := 0; seen < maxNodes; {
		page, err := s.Tables.Query(ctx, hostlock.DefaultTable, q)
		if err != nil {
			return nil, fmt.Errorf("read what still runs: %w", err)
		}
		for _, row := range page.Entities {
			if n := row.Int(columnRunning); row.String(columnID) == f.ID && n > 0 {
				name, _ := tables.UnescapeKey(row.Row[len(nodePrefix):]) // what cannot be read is not named
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

// forget deletes what was reported in the drain before.
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

// report notes how much runs in a process.
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
