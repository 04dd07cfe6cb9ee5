package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Count holds the numbers of open and overdue tasks.
type Count struct {
	// Open counts the open tasks, and Overdue those whose due time has passed; each up to MaxCount.
	Open, Overdue int
	// LongestOverdue is the age of the oldest missed due time.
	LongestOverdue time.Duration
}

// MaxCount bounds Open and Overdue.
const MaxCount = 1000

// Count counts the open tasks, in one or two queries: they are listed by due time.
func (s *Service) Count(ctx context.Context) (Count, error) {
	var c Count
	now := s.now()
	due, err := s.someOpen(ctx, viewOpen+micros(now))
	if err == nil {
		c.Overdue = len(due)
	}
	if c.Overdue > 0 {
		c.LongestOverdue = now.Sub(taskOfIndexRow(due[0]).DueAt)
	}
	var all []tables.Entity
	if err == nil {
		all, err = s.someOpen(ctx, tables.PrefixEnd(viewOpen))
	}
	if err != nil {
		return Count{}, fmt.Errorf("count tasks: %w", err)
	}
	c.Open = len(all)
	return c, nil
}

// someOpen reads the open tasks up to a row of the index, MaxCount at most.
func (s *Service) someOpen(ctx context.Context, to string) ([]tables.Entity, error) {
	q := tables.Query{Partition: indexPartition, From: viewOpen, To: to, Limit: MaxCount}
	page, err := s.config.Tables.Query(ctx, s.config.Index, q)
	return page.Entities, err
}
