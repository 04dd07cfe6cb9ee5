package poller

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// Delivery is a batch for a Handler.
type Delivery struct {
	Poller string
	// Token is the fencing token: a sink that remembers the highest token can refuse a process that has lost its lease
	// without noticing (WHERE token <= $token).
	Token int64
	// BatchID is the same for the same rows.
	BatchID string
	// Rows are in the order of the source. EventIDs are the ids of the rows: the same for the same poller, key and
	// cursor.
	Rows     []Row
	EventIDs []string
}

// Handler processes batches. It may receive rows again. It has to return soon after its context has ended, which
// happens when the lease is lost. After an error, the whole batch is delivered again; use Permanent for an error that
// another attempt cannot fix.
type Handler interface {
	Deliver(ctx context.Context, d Delivery) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, d Delivery) error

// Deliver calls the function.
func (f HandlerFunc) Deliver(ctx context.Context, d Delivery) error { return f(ctx, d) }

// Quarantined is a row that the handler rejects even alone.
type Quarantined struct {
	Poller  string
	Token   int64
	Row     Row
	EventID string
	// Attempts counts the deliveries without progress that led to the quarantine, the last one included.
	Attempts int
	Err      error
	// FirstFailureAt comes from the state document, so it is the same when the row is quarantined again.
	FirstFailureAt, LastFailureAt time.Time
}

// deliverSafely calls the handler. A panic of the handler becomes an error.
func deliverSafely(ctx context.Context, h Handler, d Delivery) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the handler panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return h.Deliver(ctx, d)
}
