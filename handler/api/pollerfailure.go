package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/admin"
)

// pollerFailure returns the answer to errors about pollers, nil for others.
func pollerFailure(err error) *failure {
	conflict := func(code string, advice ...string) *failure {
		text := strings.Join(append([]string{redact.Text(err.Error())}, advice...), ": ")
		return &failure{status: http.StatusConflict, problem: problem{Code: code, Message: sentence(text)}}
	}
	switch {
	case errors.Is(err, poller.ErrNotFound):
		return notFound("There is no such poller: the settings do not define it, and it has no state.")
	case errors.Is(err, poller.ErrLeaseLive):
		return conflict(codePollerRunning)
	case errors.Is(err, poller.ErrExists):
		return conflict(codePollerExists)
	case errors.Is(err, poller.ErrRetired):
		return conflict(codePollerRetired)
	case errors.Is(err, poller.ErrCorrupt):
		return conflict(codePollerDamaged, "reset-to-checkpoint with force restores it from a copy")
	case errors.Is(err, poller.ErrVersion):
		return conflict(codeNewerSchema)
	case errors.Is(err, poller.ErrFingerprint):
		return conflict(codeInvalidState)
	case errors.Is(err, admin.ErrNotDefined):
		return conflict(codePollerUndefined)
	case errors.Is(err, poller.ErrRequestReused):
		return &failure{status: http.StatusUnprocessableEntity, problem: problem{
			Code: codeKeyReused, Message: "The Idempotency-Key belongs to another request. Repeat that one, or use another key.", Target: "Idempotency-Key"}}
	case errors.Is(err, poller.ErrInvalid):
		return &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidBody, Message: sentence(redact.Text(err.Error()))}}
	case errors.Is(err, poller.ErrChanged), errors.Is(err, poller.ErrOutcomeUnknown):
		return &failure{status: http.StatusServiceUnavailable, header: map[string]string{"Retry-After": retryAfter},
			problem: problem{Code: codeServiceUnavailable, Message: "It is not known whether the state was changed. Look at it, and repeat the request with the same Idempotency-Key."}}
	default:
		return nil
	}
}

// sourceFailure returns the answer when a database does not report its end, or cannot be queried.
func sourceFailure(err error) error {
	if pollerFailure(err) != nil {
		return err
	}
	text := redact.Text(err.Error())
	if errors.Is(err, context.DeadlineExceeded) {
		text = fmt.Sprintf("the database did not answer within %s: %s", lagTimeout, text)
	}
	return &failure{status: http.StatusServiceUnavailable, header: map[string]string{"Retry-After": retryAfter},
		problem: problem{Code: codeSourceUnavailable, Message: sentence(text)}}
}
