package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/vibedata/roundhouse/internal/storage"
)

// failure classifies an SDK error. errors.Is finds its Kind, errors.As the SDK's own error.
type failure struct {
	// Kind is one of the errors that the storage packages share.
	Kind error
	// Status and Code are the service's answer; 0 and "" when there was none.
	Status int
	Code   string

	cause error
}

// Error returns a short text: the SDK's own text quotes whole answers.
func (f *failure) Error() string {
	switch {
	case f.Code != "":
		return fmt.Sprintf("%v: HTTP %d %s", f.Kind, f.Status, f.Code)
	case f.Status != 0:
		return fmt.Sprintf("%v: HTTP %d", f.Kind, f.Status)
	}
	return fmt.Sprintf("%v: %v", f.Kind, f.cause)
}

// Unwrap returns Kind and the SDK's error.
func (f *failure) Unwrap() []error {
	if f.cause == nil {
		return []error{f.Kind}
	}
	return []error{f.Kind, f.cause}
}

// failureOf classifies a service's answer by its HTTP status and error code.
func failureOf(status int, code string) *failure {
	return &failure{Kind: kindOf(status, code), Status: status, Code: code}
}

// classify classifies an error of an SDK call with ctx; nil for nil. errors.Is still finds the caller's own
// cancellation or deadline. It does not find the deadline of a single try, since that is not the caller's.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok {
		f := failureOf(response.StatusCode, response.ErrorCode)
		f.cause = err
		if f.Kind == storage.ErrThrottled && unanswered(response.RawResponse) {
			f.Kind = storage.ErrOutcomeUnknown
		}
		return f
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return &failure{Kind: storage.ErrOutcomeUnknown, cause: errors.New("no answer in time")}
	}
	return &failure{Kind: storage.ErrOutcomeUnknown, cause: err}
}

// kindOfCode maps the codes whose status is ambiguous.
var kindOfCode = map[string]error{
	"TableBeingDeleted":                 storage.ErrThrottled,
	"QueueBeingDeleted":                 storage.ErrThrottled,
	"ContainerBeingDeleted":             storage.ErrThrottled,
	"ServerBusy":                        storage.ErrThrottled,
	"OperationTimedOut":                 storage.ErrOutcomeUnknown,
	"UpdateConditionNotSatisfied":       storage.ErrPrecondition,
	"ConditionNotMet":                   storage.ErrPrecondition,
	"EntityTooLarge":                    storage.ErrTooLarge,
	"PropertyValueTooLarge":             storage.ErrTooLarge,
	"KeyValueTooLarge":                  storage.ErrTooLarge,
	"PropertyNameTooLong":               storage.ErrTooLarge,
	"TooManyProperties":                 storage.ErrTooLarge,
	"RequestBodyTooLarge":               storage.ErrTooLarge,
	"MessageTooLarge":                   storage.ErrTooLarge,
	"ContentLengthExceeded":             storage.ErrTooLarge,
	"InsufficientAccountPermissions":    storage.ErrDenied,
	"AuthenticationFailed":              storage.ErrDenied,
	"NoAuthenticationInformation":       storage.ErrDenied,
	"InvalidAuthenticationInfo":         storage.ErrDenied,
	"AuthorizationFailure":              storage.ErrDenied,
	"AuthorizationPermissionMismatch":   storage.ErrDenied,
	"AuthorizationResourceTypeMismatch": storage.ErrDenied,
}

func kindOf(status int, code string) error {
	if kind := kindOfCode[code]; kind != nil {
		return kind
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return storage.ErrDenied
	case http.StatusNotFound:
		return storage.ErrNotFound
	case http.StatusConflict:
		return storage.ErrExists
	case http.StatusPreconditionFailed:
		return storage.ErrPrecondition
	case http.StatusRequestEntityTooLarge:
		return storage.ErrTooLarge
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return storage.ErrThrottled
	case http.StatusRequestTimeout:
		return storage.ErrOutcomeUnknown
	}
	if status >= 400 && status < 500 {
		return storage.ErrInvalid
	}
	return storage.ErrOutcomeUnknown
}

// markUnanswered observes every try of a request. A try without a definite answer may have been applied; a later "busy"
// answer must not be taken for "not applied".
type markUnanswered struct{}

// triesUnanswered is set on a request from its first try without a definite answer on.
type triesUnanswered struct{}

const unansweredHeader = "Roundhouse-Unanswered"

// Do sends one try.
func (markUnanswered) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	switch {
	case err != nil, resp.StatusCode >= 400 && kindOf(resp.StatusCode, resp.Header.Get("x-ms-error-code")) == storage.ErrOutcomeUnknown:
		req.SetOperationValue(triesUnanswered{})
	case req.OperationValue(&triesUnanswered{}):
		resp.Header.Set(unansweredHeader, "1")
	}
	return resp, err
}

func unanswered(resp *http.Response) bool {
	return resp != nil && resp.Header.Get(unansweredHeader) != ""
}
