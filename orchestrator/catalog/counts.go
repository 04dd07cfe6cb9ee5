package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// maxCount bounds the orchestrations of a status that are counted.
const maxCount = maxPage

// StatusCount is the number of orchestrations with a status.
type StatusCount struct {
	ByOrchestrator map[string]int
	// More means that others exist, which were not counted.
	More bool
}

// Total returns the number that was counted.
func (t StatusCount) Total() int {
	total := 0
	for _, n := range t.ByOrchestrator {
		total += n
	}
	return total
}

// StatusCounts holds counts by status.
type StatusCounts map[orchestrator.Status]StatusCount

// CountByStatus counts the orchestrations of some statuses, up to 1,000 of each. A status costs one query. Up to 16
// orchestrations also cost one read each, so that stale rows are not counted, and are deleted; with more, the index
// is trusted. Use it for statuses that few orchestrations have.
func (c *Catalog) CountByStatus(ctx context.Context, statuses ...orchestrator.Status) (StatusCounts, error) {
	census := StatusCounts{}
	for _, s := range statuses {
		t, err := c.countStatus(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("count of the %s orchestrations: %w", s, err)
		}
		census[s] = t
	}
	return census, nil
}

// idlePage and idlePages limit the reads of CountIdle.
const (
	idlePage  = 100
	idlePages = 5
)

// CountIdle counts the top-level orchestrations that were created before a time, have not ended, have not continued
// since, and wait for nothing that ends by itself after now. It reads the newest 500 of those that were created
// before and have not ended; More reports that others exist.
func (c *Catalog) CountIdle(ctx context.Context, before, now time.Time) (StatusCount, error) {
	f := orchestrator.Filter{CreatedTo: before, TopLevel: true,
		Statuses: []orchestrator.Status{orchestrator.Pending, orchestrator.Running, orchestrator.Retrying, orchestrator.Suspended, orchestrator.Stalled}}
	t := StatusCount{ByOrchestrator: map[string]int{}}
	next := ""
	for range idlePages {
		found, more, err := c.List(ctx, f, idlePage, next)
		if err != nil {
			return StatusCount{}, fmt.Errorf("count of the idle orchestrations: %w", err)
		}
		for _, s := range found {
			if s.UpdatedAt.Before(before) && !s.WaitingUntil.After(now) {
				t.ByOrchestrator[s.Orchestrator]++
			}
		}
		if next = more; next == "" {
			break
		}
	}
	t.More = next != ""
	return t, nil
}

func (c *Catalog) countStatus(ctx context.Context, s orchestrator.Status) (StatusCount, error) {
	rows, more, err := c.readView(ctx, view{prefixes: []string{statusView(s)}}, "", maxCount)
	if err != nil {
		return StatusCount{}, err
	}
	t := StatusCount{ByOrchestrator: map[string]int{}, More: more}
	if len(rows) <= minRows {
		return t, c.countFew(ctx, s, rows, t)
	}
	for _, row := range rows {
		t.ByOrchestrator[row.row.String(columnOrchestrator)]++
	}
	return t, nil
}

// countFew counts by the status rows, and deletes stale rows of the index.
func (c *Catalog) countFew(ctx context.Context, status orchestrator.Status, rows []found, t StatusCount) error {
	summaries, err := c.read(ctx, rows)
	if err != nil {
		return err
	}
	var stale []tables.Op
	for i, s := range summaries {
		if s.Status == status {
			t.ByOrchestrator[s.Orchestrator]++
		}
		if isStale(rows[i], s) {
			stale = append(stale, tables.Delete(rows[i].row.Key, rows[i].row.ETag))
		}
	}
	c.removeStale(ctx, stale)
	return nil
}
