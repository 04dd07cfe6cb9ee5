package api

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/tables"
)

func noInstance() *failure { return notFound("There is no such instance in the registry.") }

func instanceExists() *failure {
	return &failure{status: http.StatusConflict, problem: problem{Code: codeInstanceExists, Message: "There is such an instance in the registry already, and it says something else: change it."}}
}

// instanceChanged returns the answer to an If-Match of another version; tag is the current version, "" if unknown.
func instanceChanged(tag string) *failure {
	f := &failure{status: http.StatusPreconditionFailed, problem: problem{Code: codePrecondition, Message: "The instance is not any more what If-Match names. Read it again.", Target: "If-Match"}}
	if tag != "" {
		f.header = map[string]string{"ETag": tag}
	}
	return f
}

// retryAt returns the Retry-After header for a time.
func retryAt(until, now time.Time) map[string]string {
	return map[string]string{"Retry-After": strconv.Itoa(int(math.Ceil(max(1, until.Sub(now).Seconds()))))}
}

// registryFailure returns the answer to errors about the registry, nil for others.
func registryFailure(err error, now time.Time) *failure {
	if locked, ok := errors.AsType[*registry.LockedError](err); ok {
		f := &failure{status: http.StatusConflict, problem: problem{Code: codeInstanceLocked, Message: sentence(locked.Error())}}
		if locked.Holder != "" {
			f.header = retryAt(locked.Until, now)
		}
		return f
	}
	if f := fieldsFailure(err); f != nil {
		return f
	}
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return noInstance()
	case errors.Is(err, registry.ErrChanged):
		return instanceChanged("")
	case errors.Is(err, engine.ErrPlacement):
		return &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidBody, Message: sentence(err.Error()), Target: "engineTablesConfig"}}
	case errors.Is(err, registry.ErrDamaged):
		return &failure{status: http.StatusConflict, problem: problem{Code: codeInstanceDamaged, Message: sentence(err.Error())}}
	case errors.Is(err, registry.ErrContended):
		return &failure{status: http.StatusServiceUnavailable, header: map[string]string{"Retry-After": retryAfter},
			problem: problem{Code: codeServiceUnavailable, Message: "Too many change the instance at once, and nothing was done. Repeat the request later."}}
	case errors.Is(err, registry.ErrInvalid):
		return &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidBody, Message: sentence(err.Error())}}
	default:
		return nil
	}
}

// documentFailure returns the answer to an error of a document's change.
func documentFailure(err error) error {
	if errors.Is(err, tables.ErrTooLarge) {
		return &failure{status: http.StatusRequestEntityTooLarge, problem: problem{Code: codeBodyTooLarge, Message: "The document would be larger than a row of the registry can be."}}
	}
	return err
}

// fieldsFailure returns the answer to invalid fields, all of them; nil for other errors.
func fieldsFailure(err error) *failure {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	var problems []problem
	for _, err := range all {
		if wrong, ok := errors.AsType[*registry.FieldError](err); ok {
			problems = append(problems, problem{codeInvalidBody, wrong.Reason, targetOf(wrong.Field)})
		}
	}
	switch len(problems) {
	case 0:
		return nil
	case 1:
		return &failure{status: http.StatusBadRequest, problem: problems[0]}
	default:
		return &failure{status: http.StatusBadRequest, problem: problems[0], details: problems}
	}
}
