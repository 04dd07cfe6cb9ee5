package poller

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// Delivery is a batch as a Handler gets it.
type Delivery struct {
	Poller string
	// Token is the fencing token: a sink that remembers the highest one it has seen can refuse a process that lost its
	// lease without knowing (WHERE token <= $token).
	Token int64
	// BatchID is the same for the same rows.
	BatchID string
	// Rows are in the order of the source. EventIDs are those of the rows: the same for the same poller, key and place.
	Rows     []Row
	EventIDs []string
}

// Handler takes batches. It may get rows again, and has to return soon when its context ends, which it does when the
// lease is lost. An error means that the whole batch comes again; mark one that no further try can help with Permanent.
type Handler interface {
	Deliver(ctx context.Context, d Delivery) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, d Delivery) error

// Deliver calls the function.
func (f HandlerFunc) Deliver(ctx context.Context, d Delivery) error { return f(ctx, d) }

// Quarantined is a row that the handler does not take, alone in its batch.
type Quarantined struct {
	Poller  string
	Token   int64
	Row     Row
	EventID string
	// Attempts counts the deliveries without progress that led here, the last one included.
	Attempts int
	Err      error
	// FirstFailureAt comes from the state document, so that it is the same when the row is quarantined again.
	FirstFailureAt, LastFailureAt time.Time
}

// deliverSafely hands a batch over. A handler that panics has failed.
func deliverSafely(ctx context.Context, h Handler, d Delivery) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the handler panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return h.Deliver(ctx, d)
}
