package engine

import (
	"context"
	"errors"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// showTries bounds how often show looks what others have written meanwhile.
const showTries = 3

// show adds the operations of a run that goes on to the history, those that it does not have yet. Entries that are there
// stay: another process may have brought the run to its end meanwhile, and its last entry says so.
func (v *visit) show(ctx context.Context, out orchestrator.Outcome) error {
	if out.Joined {
		return nil // whoever drives it shows it
	}
	ctx, cancel := settling(ctx)
	defer cancel()
	done := operationsOf(v.def, v.message, out)
	for try := 1; ; try++ {
		err := v.config.History.add(ctx, v.past.missing(done)...)
		if !errors.Is(err, tables.ErrExists) || try == showTries {
			return err
		}
		if v.past.entries, err = v.config.History.Run(ctx, v.def.Name, v.message.CorrelationID); err != nil {
			return err
		}
	}
}
