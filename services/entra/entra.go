// Package entra reaches Microsoft Entra ID: Graph manages the passwords of an application, Login says whether one of them
// is accepted. Both are plain REST over an azcore pipeline.
//
// It promises that the value of a password shows in one place only, the second result of Graph.AddPassword: no Password
// holds one, not even its first characters, which Graph calls its hint; no error shows one, and bodies are never logged.
// Adding is not idempotent in Graph, and so is not repeated here once it may have been applied.
//
// It stores nothing.
package entra

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/uuid"
)

// These errors are told apart with errors.Is.
var (
	// ErrNotFound: there is no such application, or not yet: what was made a moment ago shows up after seconds or minutes.
	ErrNotFound = errors.New("not found")
	// ErrForbidden: the identity lacks the permission Application.ReadWrite.OwnedBy, or does not own the application.
	ErrForbidden = errors.New("forbidden")
	// ErrInvalid: the request cannot be granted; repeating it cannot help. One reason is that the application has as many
	// passwords as it may have.
	ErrInvalid = errors.New("invalid")
	// ErrThrottled: the service is busy and the request was not applied; repeat it later.
	ErrThrottled = errors.New("throttled")
	// ErrOutcomeUnknown: no usable answer; the request may or may not have been applied.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrNotAccepted: the login does not know the password, or not yet: a new one is accepted after seconds or minutes.
	ErrNotAccepted = errors.New("password not accepted")
)

// Password describes a password of an application, never its value.
type Password struct {
	// KeyID is the UUID that Graph gave it.
	KeyID string
	// DisplayName is what its maker called it.
	DisplayName string
	// Start and End bound its validity, in UTC, by Graph's clock.
	Start, End time.Time
}

// defaultTryTimeout bounds one request, so that a connection that went silent does not hold an activity for ever.
const defaultTryTimeout = 30 * time.Second

// options are the caller's, made safe.
func options(opts *policy.ClientOptions) *policy.ClientOptions {
	var o policy.ClientOptions
	if opts != nil {
		o = *opts
	}
	o.Logging.IncludeBody = false
	if o.Retry.TryTimeout == 0 {
		o.Retry.TryTimeout = defaultTryTimeout
	}
	return &o
}

// address takes https://host[:port] and nothing else. The URL is not shown: it may hold a password.
func address(what, text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%s: %w: the address must be https://{host} and nothing more", what, ErrInvalid)
	}
	return "https://" + u.Host, nil
}

// CheckApplicationID takes the application (client) id of an application, a UUID in its usual lower-case form, before it
// becomes part of a URL.
func CheckApplicationID(id string) error {
	if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
		return fmt.Errorf("%w: an application id must be a UUID in lower case, such as 0b1f5a2e-7c55-4c2a-9d0f-3f0f6b1f7a11", ErrInvalid)
	}
	return nil
}

// byStatus maps answers to errors. An answer that is not here says nothing about the outcome.
var byStatus = map[int]error{
	http.StatusBadRequest:      ErrInvalid,
	http.StatusUnauthorized:    ErrForbidden,
	http.StatusForbidden:       ErrForbidden,
	http.StatusNotFound:        ErrNotFound,
	http.StatusTooManyRequests: ErrThrottled,
}

// kindOf is the error that an answer stands for.
func kindOf(status int) error {
	if kind, known := byStatus[status]; known {
		return kind
	}
	return ErrOutcomeUnknown
}
