package api

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/outbox"
)

// outboxFailure returns the answer to errors of the outbox and of its operations, nil for others.
func outboxFailure(err error, now time.Time) *failure {
	conflict := func(code, text string) *failure {
		return &failure{status: http.StatusConflict, problem: problem{Code: code, Message: text}}
	}
	switch {
	case errors.Is(err, outbox.ErrNotFound):
		return notFound("This tenant has no message of this id.")
	case errors.Is(err, outbox.ErrClaimed):
		f := conflict(codeBeingDelivered, "The message is being delivered. Repeat the request when that is over.")
		f.header = map[string]string{"Retry-After": claimEnds(err, now)}
		return f
	case errors.Is(err, outbox.ErrState):
		return conflict(codeInvalidState, "The status of the message does not allow this: retry what is pending or dead, skip what is pending or dead, replay what has ended. Messages without a key need the backfill first.")
	case errors.Is(err, outbox.ErrSchemaVersion):
		return conflict(codeNewerSchema, "The message was written by a newer version of this program. Use that.")
	case errors.Is(err, outbox.ErrInvalid):
		return &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidParameter, Message: err.Error()}}
	case errors.Is(err, outbox.ErrBusy):
		return &failure{
			status:  http.StatusServiceUnavailable,
			problem: problem{Code: codeServiceUnavailable, Message: "Others change the message all the time. Repeat the request later."},
			header:  map[string]string{"Retry-After": retryAfter},
		}
	case errors.Is(err, bulk.ErrNotFound):
		return notFound("There is no such operation.")
	case errors.Is(err, bulk.ErrEnded):
		return conflict(codeInvalidState, "The operation has ended.")
	case errors.Is(err, bulk.ErrKeyReused):
		return &failure{status: http.StatusUnprocessableEntity, problem: problem{
			Code: codeKeyReused, Message: "The Idempotency-Key belongs to another request. Repeat that one, or use another key.", Target: "Idempotency-Key",
		}}
	default:
		return nil
	}
}

// claimEnds returns the time until the claim on a message expires, in whole seconds, rounded up.
func claimEnds(err error, now time.Time) string {
	var claimed *outbox.ClaimedError
	seconds := 1.0
	if errors.As(err, &claimed) {
		seconds = max(seconds, math.Ceil(claimed.Until.Sub(now).Seconds())+1)
	}
	return strconv.Itoa(int(seconds))
}
