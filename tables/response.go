package tables

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

// Response holds what the service says besides the content of its answer: its time, and the version of the entity that
// was read or written. The zero value is ready to use. It is the same type in the packages tables and blobs.
type Response = storage.Response

// WithCaptureResponse returns a context whose storage calls fill response. A call that is given up may fill it later:
// use one for each call.
func WithCaptureResponse(ctx context.Context, response *Response) context.Context {
	return storage.WithCaptureResponse(ctx, response)
}

// RecordResponse fills the Response of a context, if it has one, with the time of the service and the version of what
// was read or written, "" for none. It is for implementations of Store, which call it with every answer.
func RecordResponse(ctx context.Context, date time.Time, etag string) {
	storage.RecordResponse(ctx, date, etag)
}
