package catalog

import (
	"context"
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// maxTally bounds the orchestrations of a status that are counted.
const maxTally = maxPage

// Tally is how many orchestrations have a status.
type Tally struct {
	ByOrchestrator map[string]int
	// More says that there are others, which were not counted.
	More bool
}

// Total is how many were counted.
func (t Tally) Total() int {
	total := 0
	for _, n := range t.ByOrchestrator {
		total += n
	}
	return total
}

// Census are tallies by status.
type Census map[orchestrator.Status]Tally

// Census counts the orchestrations of some statuses, up to 1,000 of each. A status costs a query; one that has no more than
// 16 orchestrations costs a read of each, too, so that what the index has wrong is not counted and is taken out. Of more
// than that, the index is believed. It is for statuses that few have.
func (c *Catalog) Census(ctx context.Context, statuses ...orchestrator.Status) (Census, error) {
	census := Census{}
	for _, s := range statuses {
		t, err := c.tally(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("count of the %s orchestrations: %w", s, err)
		}
		census[s] = t
	}
	return census, nil
}

func (c *Catalog) tally(ctx context.Context, s orchestrator.Status) (Tally, error) {
	rows, more, err := c.look(ctx, view{prefixes: []string{statusView(s)}}, "", maxTally)
	if err != nil {
		return Tally{}, err
	}
	t := Tally{ByOrchestrator: map[string]int{}, More: more}
	if len(rows) <= leastLook {
		return t, c.tallyFew(ctx, s, rows, t)
	}
	for _, row := range rows {
		t.ByOrchestrator[row.row.String(columnOrchestrator)]++
	}
	return t, nil
}

// tallyFew counts by what the status rows have, and takes out what the index has wrong.
func (c *Catalog) tallyFew(ctx context.Context, status orchestrator.Status, rows []found, t Tally) error {
	summaries, err := c.read(ctx, rows)
	if err != nil {
		return err
	}
	var stale []tables.Op
	for i, s := range summaries {
		if s.Status == status {
			t.ByOrchestrator[s.Orchestrator]++
		}
		if wrong(rows[i], s) {
			stale = append(stale, tables.Delete(rows[i].row.Key, rows[i].row.ETag))
		}
	}
	c.tidy(ctx, stale)
	return nil
}
