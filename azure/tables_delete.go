package azure

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vibedata/roundhouse/tables"
)

// DeleteTable deletes a table with its rows. It is for tools that make their own tables, and not part of tables.Store.
func (a *Tables) DeleteTable(ctx context.Context, table string) error {
	err := cmp.Or(ctx.Err(), tables.CheckTable(table))
	if err == nil {
		_, err = a.service.DeleteTable(ctx, table, nil)
		err = classify(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("delete table %.64s: %w", table, err)
	}
	return nil
}
