package catalog

import (
	"context"

	"github.com/vibedata/roundhouse/tables"
)

// sweepPages is how many pages of rows one call of Repair looks at.
const sweepPages = 10

// sweep is the second step of a pass. It looks at every row, whatever its key, and deletes those that no orchestration
// should have. Rows with the mark of the pass need no check; the others were written since, or are wrong.
func (c *Catalog) sweep(ctx context.Context, p pass) (removed int, next string, err error) {
	next = p.next
	for range sweepPages {
		rows, more, err := c.queryRows(ctx, tables.Query{Partition: listPartition, From: next, Limit: maxPage})
		if err != nil {
			return removed, "", err
		}
		var doubtful []found
		for _, row := range rows {
			if row.Int(columnPass) != p.mark() {
				doubtful = append(doubtful, found{id: row.String(columnID), row: row})
			}
		}
		n, err := c.removeStaleRows(ctx, doubtful)
		removed += n
		if err != nil || !more {
			return removed, "", err
		}
		next = rows[len(rows)-1].Row + " " // the first that can follow: keys have no control characters
	}
	return removed, next, nil
}

// removeStaleRows deletes the rows that no orchestration should have now, unless they are written again meanwhile. An
// orchestration without status row is damaged, or was purged.
func (c *Catalog) removeStaleRows(ctx context.Context, rows []found) (int, error) {
	summaries, err := c.read(ctx, rows)
	if err != nil {
		return 0, err
	}
	var stale []tables.Op
	lost := map[string]bool{}
	for i, s := range summaries {
		if id := rows[i].id; s.ID == "" && id != "" && !lost[id] {
			lost[id] = true
			if err := c.config.Runtime().FindDamage(ctx, id); err != nil {
				return 0, err
			}
		}
		if isStale(rows[i], s) {
			stale = append(stale, tables.Delete(rows[i].row.Key, rows[i].row.ETag))
		}
	}
	return len(stale), c.remove(ctx, stale)
}
