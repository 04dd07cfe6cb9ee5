package outbox

import (
	"context"
	"errors"
	"fmt"
)

// Progress is what a slice of a bulk operation did.
type Progress struct {
	// Done counts the messages that were changed; PassedOver those that could not be: claimed, ended meanwhile, gone.
	Done, PassedOver int
	// Continuation goes into the Filter of the next slice; "" when there is nothing left.
	Continuation string
}

// Bulk carries an action out on the messages that a filter selects, one page of it: Filter.Limit at most. Call it with
// Progress.Continuation until there is none. by says who decided. What is changed moves out of the way of what follows,
// so that a walk ends however many messages are replayed meanwhile, and a slice that is repeated after a crash does no
// harm. On an error the slice can be repeated. The errors are those of List and of the action.
func (a *Admin) Bulk(ctx context.Context, action Action, f Filter, by string) (Progress, error) {
	page, err := a.List(ctx, f)
	if err != nil {
		return Progress{}, fmt.Errorf("%s by filter: %w", action, err)
	}
	progress := Progress{Continuation: page.Continuation}
	for _, r := range page.Records {
		err := a.act(ctx, action, r.TenantID, r.ID, by)
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
