package api

import (
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/quota"
)

// accessFailure returns the answer to errors about the caller, nil for others.
func accessFailure(err error) *failure {
	refused := func(status int, code string) *failure {
		return &failure{status: status, problem: problem{Code: code, Message: sentence(err.Error())}}
	}
	if exceeded, ok := errors.AsType[*quota.ExceededError](err); ok {
		f := refused(http.StatusTooManyRequests, codeTooManyRequests)
		f.header = map[string]string{"Retry-After": exceeded.RetryAfter()}
		return f
	}
	switch {
	case errors.Is(err, access.ErrUnauthenticated):
		f := refused(http.StatusUnauthorized, codeUnauthenticated)
		f.header = map[string]string{"WWW-Authenticate": "Bearer"}
		return f
	case errors.Is(err, access.ErrNotConfigured):
		return refused(http.StatusForbidden, codeNoSignIn)
	case errors.Is(err, access.ErrForbidden):
		return refused(http.StatusForbidden, codeForbidden)
	case errors.Is(err, access.ErrNotReady):
		return &failure{status: http.StatusServiceUnavailable, header: map[string]string{"Retry-After": retryAfter}, problem: problem{
			Code: codeServiceUnavailable, Message: "The app has started, and its storage cannot be used yet: the app's log says why. Repeat the request later."}}
	case errors.Is(err, audit.ErrNotRecorded):
		return &failure{status: http.StatusServiceUnavailable, header: map[string]string{"Retry-After": retryAfter}, problem: problem{
			Code: codeNotRecorded, Message: "It could not be recorded who does this, so nothing was done. Repeat the request later."}}
	default:
		return nil
	}
}

// sentence converts an error's text to a sentence.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

func forbidden(text string) *failure {
	return &failure{status: http.StatusForbidden, problem: problem{Code: codeForbidden, Message: text}}
}

// hidden returns the answer for another tenant's object: the same as for a missing one.
func hidden(f *failure) *failure {
	f.hidden = true
	return f
}
