// Package entra uses Microsoft Entra ID: Graph manages the passwords of an application, Login tests whether one of them
// is accepted. Both are plain REST over an azcore pipeline.
//
// The value of a password occurs in one place only, the second result of Graph.AddPassword. No Password contains it,
// not even its first characters, which Graph calls its hint; no error contains it, and bodies are never logged. Adding
// is not idempotent in Graph, and so is not repeated once it may have been applied.
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

// Test for these errors with errors.Is.
var (
	// ErrNotFound means that the application does not exist, or not yet: a new one is found after seconds or minutes.
	ErrNotFound = errors.New("not found")
	// ErrForbidden means that the identity lacks the permission Application.ReadWrite.OwnedBy, or does not own the
	// application.
	ErrForbidden = errors.New("forbidden")
	// ErrInvalid means that the request cannot be granted. Do not retry. One reason is that the application has the
	// maximum number of passwords.
	ErrInvalid = errors.New("invalid")
	// ErrThrottled means that the service is busy and the request was not applied. Retry later.
	ErrThrottled = errors.New("throttled")
	// ErrOutcomeUnknown means that no usable answer came: the request may or may not have been applied.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrNotAccepted means that the login does not accept the password, or not yet: a new one is accepted after seconds or
	// minutes.
	ErrNotAccepted = errors.New("password not accepted")
)

// Password describes a password of an application, never its value.
type Password struct {
	// KeyID is the UUID that Graph gave it.
	KeyID string
	// DisplayName is the name that its creator chose.
	DisplayName string
	// Start and End bound its validity, in UTC, by Graph's clock.
	Start, End time.Time
}

// defaultTryTimeout bounds one request, so that a dead connection does not block an activity forever.
const defaultTryTimeout = 30 * time.Second

// options returns the caller's options, made safe.
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

// address checks that a text is https://host[:port]. The error does not quote the URL: it may hold a password.
func address(what, text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%s: %w: the address must be https://{host} and nothing more", what, ErrInvalid)
	}
	return "https://" + u.Host, nil
}

// CheckApplicationID checks that an id is a UUID in the usual lower-case form, as of an application (client), before it
// becomes part of a URL.
func CheckApplicationID(id string) error {
	if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
		return fmt.Errorf("%w: an application id must be a UUID in lower case, such as 0b1f5a2e-7c55-4c2a-9d0f-3f0f6b1f7a11", ErrInvalid)
	}
	return nil
}

// byStatus maps answers to errors. For any other answer, the outcome is unknown.
var byStatus = map[int]error{
	http.StatusBadRequest:      ErrInvalid,
	http.StatusUnauthorized:    ErrForbidden,
	http.StatusForbidden:       ErrForbidden,
	http.StatusNotFound:        ErrNotFound,
	http.StatusTooManyRequests: ErrThrottled,
}

// kindOf returns the error of a status.
func kindOf(status int) error {
	if kind, known := byStatus[status]; known {
		return kind
	}
	return ErrOutcomeUnknown
}
