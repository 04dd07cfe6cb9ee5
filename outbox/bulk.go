package outbox

import (
	"context"
	"errors"
	"fmt"
)

// Progress is the result of one slice of a bulk operation.
type Progress struct {
	// Done counts the changed messages. PassedOver counts the others: claimed, ended meanwhile, or gone.
	Done, PassedOver int
	// Continuation goes into the Filter of the next slice; "" at the end.
	Continuation string
}

// Bulk applies an action to the messages of a filter, one page of at most Filter.Limit. Call it with
// Progress.Continuation until that is "". by is the operator. A changed message leaves the rest of the range, so the
// operation ends regardless of concurrent replays, and a slice may be repeated after a crash or an error. The errors
// are those of List and of the action.
func (a *Admin) Bulk(ctx context.Context, action Action, f Filter, by string) (Progress, error) {
	page, err := a.List(ctx, f)
	if err != nil {
		return Progress{}, fmt.Errorf("%s by filter: %w", action, err)
	}
	progress := Progress{Continuation: page.Continuation}
	for _, r := range page.Records {
		err := a.Act(ctx, action, r.TenantID, r.ID, Decision{By: by})
		switch {
		case err == nil:
			progress.Done++
		case errors.Is(err, ErrClaimed) || errors.Is(err, ErrState) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrSchemaVersion):
			progress.PassedOver++
		default:
			return progress, fmt.Errorf("%s by filter: %w", action, err)
		}
	}
	return progress, nil
}
