package storage

import (
	"context"
	"sync"
	"time"
)

// Response holds what the service says besides the content of its last answer, be it a success or a failure: its time, and
// the version of what was read or written. The zero value is ready to use.
type Response struct {
	mu   sync.Mutex
	date time.Time
	etag string
}

// Date is the service's clock when it answered, in UTC with a precision of one second; zero when nothing was answered.
func (r *Response) Date() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.date
}

// ETag is the version of what was read or written by itself, "" when there is none.
func (r *Response) ETag() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.etag
}

type responseKey struct{}

// WithCaptureResponse returns a context whose storage calls fill r. A call that is given up may fill r later: use one for each
// call.
func WithCaptureResponse(ctx context.Context, r *Response) context.Context {
	return context.WithValue(ctx, responseKey{}, r)
}

// RecordResponse fills the Response of a context, if it has one. Stores call it with every answer; those in memory give the
// time of this machine.
func RecordResponse(ctx context.Context, date time.Time, etag string) {
	r, ok := ctx.Value(responseKey{}).(*Response)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.date, r.etag = date.UTC().Truncate(time.Second), etag
}
