package blobs

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

// Response collects what the service says beside the content of its answers: its own time, and the version of the blob that
// was read or written. The zero value is ready. It is the same type in the packages tables and blobs.
type Response = storage.Response

// WithCaptureResponse makes a context whose storage calls fill told. A call that is given up may fill it later: use one a call.
func WithCaptureResponse(ctx context.Context, response *Response) context.Context {
	return storage.WithCaptureResponse(ctx, response)
}

// RecordResponse fills the Told of a context, if it has one, with the time of the service and the version of what was read or
// written, "" for none. It is for implementations of Store, which call it with every answer.
func RecordResponse(ctx context.Context, date time.Time, etag string) {
	storage.RecordResponse(ctx, date, etag)
}
