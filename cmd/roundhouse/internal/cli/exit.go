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

// These errors decide the exit code; Mark gives an error one of them.
var (
	// ErrUsage: arguments that turn out to be wrong.
	ErrUsage = errors.New("wrong use")
	// ErrMissing: there is no such thing.
	ErrMissing = errors.New("not found")
	// ErrRefused: a conflict, no permission, or not confirmed.
	ErrRefused = errors.New("refused")
	// ErrUnreachable: what is to answer does not.
	ErrUnreachable = errors.New("not reachable")
)

var (
	errInterrupted = errors.New("interrupted")
	// errLeft: an operation was left running when it was interrupted, which has been said already.
	errLeft = errors.New("left running")
)

// failure marks an error of a command that was used well.
type failure struct{ error }

// Unwrap gives the error itself.
func (f *failure) Unwrap() error { return f.error }

// marked is an error of a kind that its text does not repeat.
type marked struct {
	error
	kind error
}

// Unwrap gives the kind and the error.
func (m marked) Unwrap() []error { return []error{m.kind, m.error} }

// Mark gives an error a kind, which its text does not repeat; nil for nil.
func Mark(kind, err error) error {
	if err == nil {
		return nil
	}
	return marked{err, kind}
}

// exitCode is what an error makes of the program.
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

// codes are the kinds of errors, the first that matches first.
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

// oneLine is an error as one line for people.
func oneLine(err error) string {
	return printable(lines.ReplaceAllString(strings.TrimSpace(engine.Redact(err.Error())), "; "))
}

// complaint is an error as one line, with what to do about it; "" where everything has been said.
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

// unauthenticated says whether the API does not know who asks, and forbidden whether who asks may not.
func unauthenticated(err error) bool {
	return refusedWith(err, "Unauthenticated", "SignInNotConfigured")
}

func forbidden(err error) bool { return refusedWith(err, "Forbidden") }

// refusedWithStatus says whether an answer of the app has this status.
func refusedWithStatus(err error, status int) bool {
	refusal, ok := errors.AsType[*client.Error](err)
	return ok && refusal.Status == status
}

func refusedWith(err error, codes ...string) bool {
	refusal, ok := errors.AsType[*client.Error](err)
	return ok && slices.Contains(codes, refusal.Code)
}

// away says whether what answers for the app is the host, a proxy or a program without its storage.
func away(err error) bool {
	refusal, ok := errors.AsType[*client.Error](err)
	return ok && codeOfStatus(refusal.Status) == exitUnreachable && refusal.Status != http.StatusTooManyRequests
}
