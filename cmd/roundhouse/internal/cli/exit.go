package cli

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/tables"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitUnreachable = 5
	exitInterrupted = 130
)

// These errors decide the exit code; Mark marks an error with one of them.
var (
	// ErrUsage: invalid arguments.
	ErrUsage = errors.New("wrong use")
	// ErrMissing: the object does not exist.
	ErrMissing = errors.New("not found")
	// ErrRefused: a conflict, a missing permission, or no confirmation.
	ErrRefused = errors.New("refused")
	// ErrUnreachable: the service does not answer.
	ErrUnreachable = errors.New("not reachable")
)

var (
	errInterrupted = errors.New("interrupted")
	// errLeft: an interrupted wait left an operation running, which has been reported already.
	errLeft = errors.New("left running")
)

// failure marks an error of a valid command.
type failure struct{ error }

// Unwrap returns the error itself.
func (f *failure) Unwrap() error { return f.error }

// marked is an error of a kind that its text does not repeat.
type marked struct {
	error
	kind error
}

// Unwrap returns the kind and the error.
func (m marked) Unwrap() []error { return []error{m.kind, m.error} }

// Mark marks an error with a kind, which its text does not repeat; nil for nil.
func Mark(kind, err error) error {
	if err == nil {
		return nil
	}
	return marked{err, kind}
}

// exitCode returns the exit code for an error.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if _, ran := errors.AsType[*failure](err); !ran && !errors.Is(err, errInterrupted) {
		return exitUsage
	}
	if refusal, ok := errors.AsType[*client.Error](err); ok {
		return codeOfStatus(refusal.Status)
	}
	for _, known := range codes() {
		for _, kind := range known.kinds {
			if errors.Is(err, kind) {
				return known.code
			}
		}
	}
	return exitFailed
}

type codeOf struct {
	code  int
	kinds []error
}

// codes returns the kinds of errors, the first match first.
func codes() []codeOf {
	return []codeOf{
		{exitInterrupted, []error{errInterrupted, errLeft}},
		{exitUsage, []error{ErrUsage, tables.ErrInvalid, payload.ErrTooLarge, payload.ErrTooDeep}},
		{exitNotFound, []error{ErrMissing, tables.ErrNotFound, engine.ErrNotFound}},
		{exitRefused, []error{ErrRefused, tables.ErrDenied, tables.ErrPrecondition, tables.ErrExists}},
		{exitUnreachable, []error{ErrUnreachable, client.ErrUnreachable, tables.ErrThrottled, tables.ErrOutcomeUnknown}},
	}
}

func codeOfStatus(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return exitUsage
	case http.StatusNotFound, http.StatusGone:
		return exitNotFound
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnprocessableEntity:
		return exitRefused
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return exitUnreachable
	default:
		return exitFailed
	}
}

var lines = regexp.MustCompile(`\s*\n\s*`)

// oneLine returns an error as one line.
func oneLine(err error) string {
	return printable(lines.ReplaceAllString(strings.TrimSpace(engine.Redact(err.Error())), "; "))
}

// complaint returns an error as one line, with the remedy; "" if it has been reported already.
func complaint(err error) string {
	if err == nil || errors.Is(err, errLeft) {
		return ""
	}
	text := oneLine(err)
	_, ran := errors.AsType[*failure](err)
	switch {
	case !ran && !errors.Is(err, errInterrupted):
		text += " (roundhouse --help)"
	case errors.Is(err, tables.ErrDenied):
		text += ": check the account key, or the roles of the identity (docs/settings.md)"
	case errors.Is(err, tables.ErrOutcomeUnknown):
		text += ": is the storage account there? roundhouse doctor says more"
	case errors.Is(err, client.ErrUnreachable):
		text += ": is the app running, and --url or ROUNDHOUSE_URL its address?"
	case unauthenticated(err):
		text += ": sign in (az login) and give --entra, or a function key with ROUNDHOUSE_KEY"
	case forbidden(err):
		text += ": roundhouse whoami shows what you may do"
	case away(err):
		text += ": roundhouse doctor says more"
	}
	return text
}

// unauthenticated reports whether the API does not know the caller, and forbidden whether the caller lacks
// permission.
func unauthenticated(err error) bool {
	return refusedWith(err, "Unauthenticated", "SignInNotConfigured")
}

func forbidden(err error) bool { return refusedWith(err, "Forbidden") }

// refusedWithStatus reports whether the app answered with this status.
func refusedWithStatus(err error, status int) bool {
	refusal, ok := errors.AsType[*client.Error](err)
	return ok && refusal.Status == status
}

func refusedWith(err error, codes ...string) bool {
	refusal, ok := errors.AsType[*client.Error](err)
	return ok && slices.Contains(codes, refusal.Code)
}

// away reports whether the answer comes from the host, a proxy or a program without its storage instead of the app.
func away(err error) bool {
	refusal, ok := errors.AsType[*client.Error](err)
	return ok && codeOfStatus(refusal.Status) == exitUnreachable && refusal.Status != http.StatusTooManyRequests
}
