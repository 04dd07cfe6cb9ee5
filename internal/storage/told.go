package storage

import (
	"context"
	"sync"
	"time"
)

// Told collects what the service says beside the content of its answers: its own time, and the version of the thing
// that was read or written. It holds what the last answer said, be it a success or a failure. The zero value is ready.
type Told struct {
	mu   sync.Mutex
	date time.Time
	etag string
}

// Date is the service's clock when it answered, in UTC with a precision of one second; zero when nothing was answered.
func (a *Told) Date() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.date
}

// ETag is the version of what was read or written by itself, "" when there is none.
func (a *Told) ETag() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.etag
}

type toldKey struct{}

// WithTold makes a context whose storage calls fill a. A call that is given up may fill it later: use one a call.
func WithTold(ctx context.Context, a *Told) context.Context {
	return context.WithValue(ctx, toldKey{}, a)
}

// Tell fills the Told of a context, if it has one. Stores call it with every answer; those in memory give the
// time of this machine.
func Tell(ctx context.Context, date time.Time, etag string) {
	a, ok := ctx.Value(toldKey{}).(*Told)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.date, a.etag = date.UTC().Truncate(time.Second), etag
}
