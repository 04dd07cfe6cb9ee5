package tables

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

// Response holds the service's time and the version of the entity that was read or written. The zero value is ready to
// use. It is the same type in the packages tables and blobs.
type Response = storage.Response

// WithCaptureResponse returns a context whose storage calls fill response. An abandoned call may fill it later: use one
// response for each call.
func WithCaptureResponse(ctx context.Context, response *Response) context.Context {
	return storage.WithCaptureResponse(ctx, response)
}

// RecordResponse fills the Response of ctx, if any, with the time of the service and the version of the entity, "" for
// none. It is for implementations of Store, which call it with every answer.
func RecordResponse(ctx context.Context, date time.Time, etag string) {
	storage.RecordResponse(ctx, date, etag)
}
