package account

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Failure is what an SDK error means. errors.Is finds its Kind, errors.As the SDK's own error.
type Failure struct {
	// Kind is one of this package's errors.
	Kind error
	// Status and Code are the service's answer; 0 and "" when there was none.
	Status int
	Code   string

	cause error
}

// Error is short: the SDK's own text quotes whole answers.
func (f *Failure) Error() string {
	switch {
	case f.Code != "":
		return fmt.Sprintf("%v: HTTP %d %s", f.Kind, f.Status, f.Code)
	case f.Status != 0:
		return fmt.Sprintf("%v: HTTP %d", f.Kind, f.Status)
	}
	return fmt.Sprintf("%v: %v", f.Kind, f.cause)
}

// Unwrap gives Kind and the SDK's error.
func (f *Failure) Unwrap() []error {
	if f.cause == nil {
		return []error{f.Kind}
	}
	return []error{f.Kind, f.cause}
}

// Answer is the Failure that a service's answer means: its HTTP status and error code.
func Answer(status int, code string) *Failure {
	return &Failure{Kind: kindOf(status, code), Status: status, Code: code}
}

// Classify says what an error of an SDK call with ctx means; nil for nil. The caller's own cancellation or deadline
// stays visible to errors.Is; the deadline of a single try does not, since it is not the caller's.
func Classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok {
		f := Answer(response.StatusCode, response.ErrorCode)
		f.cause = err
		if f.Kind == ErrThrottled && unanswered(response.RawResponse) {
			f.Kind = ErrOutcomeUnknown
		}
		return f
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return &Failure{Kind: ErrOutcomeUnknown, cause: errors.New("no answer in time")}
	}
	return &Failure{Kind: ErrOutcomeUnknown, cause: err}
}

// kindOfCode holds the codes whose status says too little.
var kindOfCode = map[string]error{
	"TableBeingDeleted":                 ErrThrottled,
	"QueueBeingDeleted":                 ErrThrottled,
	"ContainerBeingDeleted":             ErrThrottled,
	"ServerBusy":                        ErrThrottled,
	"OperationTimedOut":                 ErrOutcomeUnknown,
	"UpdateConditionNotSatisfied":       ErrPrecondition,
	"ConditionNotMet":                   ErrPrecondition,
	"EntityTooLarge":                    ErrTooLarge,
	"PropertyValueTooLarge":             ErrTooLarge,
	"KeyValueTooLarge":                  ErrTooLarge,
	"PropertyNameTooLong":               ErrTooLarge,
	"TooManyProperties":                 ErrTooLarge,
	"RequestBodyTooLarge":               ErrTooLarge,
	"MessageTooLarge":                   ErrTooLarge,
	"ContentLengthExceeded":             ErrTooLarge,
	"InsufficientAccountPermissions":    ErrDenied,
	"AuthenticationFailed":              ErrDenied,
	"NoAuthenticationInformation":       ErrDenied,
	"InvalidAuthenticationInfo":         ErrDenied,
	"AuthorizationFailure":              ErrDenied,
	"AuthorizationPermissionMismatch":   ErrDenied,
	"AuthorizationResourceTypeMismatch": ErrDenied,
}

func kindOf(status int, code string) error {
	if kind := kindOfCode[code]; kind != nil {
		return kind
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrDenied
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusConflict:
		return ErrExists
	case http.StatusPreconditionFailed:
		return ErrPrecondition
	case http.StatusRequestEntityTooLarge:
		return ErrTooLarge
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return ErrThrottled
	case http.StatusRequestTimeout:
		return ErrOutcomeUnknown
	}
	if status >= 400 && status < 500 {
		return ErrInvalid
	}
	return ErrOutcomeUnknown
}

// markUnanswered sees every try of a request. A try without a definite answer may have been applied; when a later one
// is answered "busy", that must not be taken for "not applied".
type markUnanswered struct{}

// triesUnanswered is a request's value from its first try without a definite answer on.
type triesUnanswered struct{}

const unansweredHeader = "Roundhouse-Unanswered"

// Do sends one try.
func (markUnanswered) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	switch {
	case err != nil, resp.StatusCode >= 400 && kindOf(resp.StatusCode, resp.Header.Get("x-ms-error-code")) == ErrOutcomeUnknown:
		req.SetOperationValue(triesUnanswered{})
	case req.OperationValue(&triesUnanswered{}):
		resp.Header.Set(unansweredHeader, "1")
	}
	return resp, err
}

func unanswered(resp *http.Response) bool {
	return resp != nil && resp.Header.Get(unansweredHeader) != ""
}
