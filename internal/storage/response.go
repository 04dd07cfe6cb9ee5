package storage

import (
	"context"
	"sync"
	"time"
)

// Response holds the service's time and the version of the object from the last answer, successful or not. The zero
// value is ready to use.
type Response struct {
	mu   sync.Mutex
	date time.Time
	etag string
}

// Date returns the service's clock at its answer, in UTC with a precision of one second; zero without an answer.
func (r *Response) Date() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.date
}

// ETag returns the version of the single object that was read or written, "" without one.
func (r *Response) ETag() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.etag
}

type responseKey struct{}

// WithCaptureResponse returns a context whose storage calls fill r. An abandoned call may fill r later: use one for
// each call.
func WithCaptureResponse(ctx context.Context, r *Response) context.Context {
	return context.WithValue(ctx, responseKey{}, r)
}

// RecordResponse fills the Response of ctx, if any. Stores call it with every answer; those in memory pass the time of
// this machine.
func RecordResponse(ctx context.Context, date time.Time, etag string) {
	r, ok := ctx.Value(responseKey{}).(*Response)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.date, r.etag = date.UTC().Truncate(time.Second), etag
}
