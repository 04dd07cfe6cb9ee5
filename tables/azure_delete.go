package tables

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vibedata/roundhouse/internal/account"
)

// DeleteTable deletes a table and all that is in it. It is for tools that make tables of their own, and not part of Store.
func (a *Azure) DeleteTable(ctx context.Context, table string) error {
	err := cmp.Or(ctx.Err(), checkTable(table))
	if err == nil {
		_, err = a.service.DeleteTable(ctx, table, nil)
		err = account.Classify(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("delete table %s: %w", clip(table), err)
	}
	return nil
}
