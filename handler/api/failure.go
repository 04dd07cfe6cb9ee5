package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

// The error codes are part of the API: callers distinguish errors by them.
const (
	codeInvalidParameter = "InvalidParameter"
	codeInvalidToken     = "InvalidContinuationToken"
	codeInvalidBody      = "InvalidRequestBody"
	codeNotFound         = "NotFound"
	codeInvalidState     = "InvalidState"
	codeBeingDelivered   = "MessageBeingDelivered"
	codeNewerSchema      = "NewerSchemaVersion"
	codePrecondition     = "PreconditionFailed"
	codeRetryUnsupported = "RetryNotSupported"
	codeEditUnsupported  = "EditNotSupported"
	codeLetterHeld       = "DeadLetterHeld"
	codeTooManyNotes     = "TooManyNotes"
	codeInvalidMessage   = "InvalidMessage"
	codeCanary           = "CanaryReturned"
	codeKeyReused        = "IdempotencyKeyReused"
	// Of orchestrations.
	codeUnknownOrchestrator = "UnknownOrchestrator"
	codeExists              = "OrchestrationExists"
	codeActive              = "OrchestrationActive"
	codeInstanceLocked      = "InstanceLocked"
	codeDamaged             = "OrchestrationDamaged"
	codeStalled             = "OrchestrationStalled"
	codeHistoryTooLarge     = "HistoryTooLarge"
	codeNoHistory           = "NotAHistory"

	// Of the registry.
	codeInstanceExists  = "InstanceExists"
	codeInstanceDamaged = "InstanceDamaged"

	// Of pollers.
	codePollerRunning     = "PollerRunning"
	codePollerExists      = "PollerExists"
	codePollerRetired     = "PollerRetired"
	codePollerDamaged     = "PollerStateDamaged"
	codePollerUndefined   = "PollerNotDefined"
	codeSourceUnavailable = "SourceUnavailable"

	// Of human tasks.
	codeTaskTaken     = "TaskTaken"
	codeInvalidOutput = "InvalidTaskOutput"

	// Of acknowledgements.
	codeNotAcknowledgeable = "NotAcknowledgeable"

	// Of access.
	codeForbidden       = "Forbidden"
	codeUnauthenticated = "Unauthenticated"
	codeNoSignIn        = "SignInNotConfigured"
	codeNotRecorded     = "NotRecorded"
	codeTooManyRequests = "TooManyRequests"

	codeMethodNotAllowed   = "MethodNotAllowed"
	codeBodyTooLarge       = "RequestBodyTooLarge"
	codeBodyTooDeep        = "BodyTooDeep"
	codeEncodedBody        = "EncodedRequestBody"
	codeServiceUnavailable = "ServiceUnavailable"
	codeStorageUnavailable = "StorageUnavailable"
	codeInternal           = "InternalError"
)

// retryAfter is the value of Retry-After, in seconds, when storage fails.
const retryAfter = "5"

// problem is one error in a request, for its sender.
type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Target names the invalid parameter.
	Target string `json:"target,omitempty"`
}

// failure is an error with its answer.
type failure struct {
	problem
	status  int
	details []problem
	header  map[string]string
	// hidden means that the object exists, but the caller may not see it.
	hidden bool
}

// Error returns the text of the answer.
func (f *failure) Error() string { return f.Message }

func notFound(format string, args ...any) *failure {
	return &failure{status: http.StatusNotFound, problem: problem{Code: codeNotFound, Message: fmt.Sprintf(format, args...)}}
}

func internal() *failure {
	return &failure{
		status:  http.StatusInternalServerError,
		problem: problem{Code: codeInternal, Message: "The request failed inside the service. Its log has the reason under the correlation id."},
	}
}

// failureOf converts all errors to answers.
func failureOf(err error, now time.Time) *failure {
	if errors.Is(err, payload.ErrTooDeep) { // before the errors that wrap it
		return bodyTooDeep()
	}
	if f := cmp.Or(accessFailure(err), outboxFailure(err, now), editFailure(err), noteFailure(err), deadLetterFailureOf(err), taskFailure(err), scheduleFailure(err), acknowledgementFailure(err), admissionFailure(err), orchestrationFailure(err), registryFailure(err, now), pollerFailure(err)); f != nil {
		return f
	}
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, engine.ErrNotFound):
		return notFound("There is no such row.")
	case errors.Is(err, engine.ErrToken), errors.Is(err, outbox.ErrToken):
		return &failure{status: http.StatusBadRequest, problem: problem{
			Code:    codeInvalidToken,
			Message: "The continuation token does not belong to this query: repeat the parameters that it was given for, or leave it out.",
			Target:  "continuationToken",
		}}
	case errors.Is(err, engine.ErrFilter):
		return &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidParameter, Message: err.Error()}}
	case errors.Is(err, codec.ErrSealed):
		return &failure{status: http.StatusConflict, problem: problem{
			Code: codeInvalidState, Message: "The row is encrypted, and cannot be changed without the key: change it over the API of the running app.",
		}}
	case errors.Is(err, codec.ErrKey):
		return &failure{
			status:  http.StatusServiceUnavailable,
			problem: problem{Code: codeServiceUnavailable, Message: "Payloads are encrypted, and their key cannot be used at the moment. The log of the service says which, and why, under the correlation id."},
			header:  map[string]string{"Retry-After": retryAfter},
		}
	case storageTrouble(err):
		return storageUnavailable("Storage did not answer in time. Repeat the request later; a list is quicker with fromDate and toDate.")
	default:
		return internal()
	}
}

// storageUnavailable is the answer to a request that storage did not answer in time.
func storageUnavailable(message string) *failure {
	return &failure{status: http.StatusServiceUnavailable, problem: problem{Code: codeStorageUnavailable, Message: message}, header: map[string]string{"Retry-After": retryAfter}}
}

// storageTrouble reports whether the same request can succeed later. A missing table is one that the program has yet
// to create.
func storageTrouble(err error) bool {
	for _, cause := range []error{
		context.DeadlineExceeded, context.Canceled,
		tables.ErrThrottled, tables.ErrOutcomeUnknown, tables.ErrDenied, tables.ErrNotFound,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}
