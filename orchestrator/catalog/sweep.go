package catalog

import (
	"context"

	"github.com/vibedata/roundhouse/tables"
)

// sweep runs the last step of a pass. It checks every row of a bucket that differs, with any key, and deletes rows
// that no orchestration should have. Rows with the mark of the pass need no check; the others were written since, or
// are wrong.
func (c *Catalog) sweep(ctx context.Context, p pass) (removed int, next string, err error) {
	next, err = c.eachPage(ctx, p.next, func(rows []tables.Entity) error {
		var doubtful []found
		for _, row := range rows {
			if id := row.String(columnID); p.sums.differ(id) && row.Int(columnPass) != p.mark() {
				doubtful = append(doubtful, found{id: id, row: row})
			}
		}
		n, err := c.removeStaleRows(ctx, doubtful)
		removed += n
		return err
	})
	return removed, next, err
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
