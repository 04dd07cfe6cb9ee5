package engine

import (
	"context"
	"errors"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// progressTries bounds the history reads of recordProgress after concurrent writes.
const progressTries = 3

// recordProgress adds the operations of an unfinished run to the history. Existing entries stay unchanged: another
// process may have ended the run meanwhile, and its last entry records that.
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
