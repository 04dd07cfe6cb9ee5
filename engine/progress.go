package engine

import (
	"context"
	"errors"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// progressTries bounds how often recordProgress reads the history again because others have written to it.
const progressTries = 3

// recordProgress adds the operations of a run that is not over to the history. Existing entries stay as they are:
// another process may have brought the run to its end meanwhile, and its last entry says so.
func (a *attempt) recordProgress(ctx context.Context, out orchestrator.Outcome) error {
	if out.Joined {
		return nil // the attempt that drives the run records it
	}
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	done := operationsOf(a.def, a.message, out)
	for try := 1; ; try++ {
		err := a.config.History.add(ctx, a.history.missing(done)...)
		if !errors.Is(err, tables.ErrExists) || try == progressTries {
			return err
		}
		if err = a.readHistory(ctx); err != nil {
			return err
		}
	}
}
