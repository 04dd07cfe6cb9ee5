package client

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ErrUnreachable: no answer from the address, or not in time.
var ErrUnreachable = errors.New("the API cannot be reached")

// Error is a refusal of the API.
type Error struct {
	// Status is the HTTP status. RetryAfter is the delay before a retry, 0 when the API gives none.
	Status     int           `json:"-"`
	RetryAfter time.Duration `json:"-"`
	// Code is machine-readable, Message is for users. Target names the invalid parameter, "" for none.
	Code    string `json:"code"`
	Message string `json:"message"`
	Target  string `json:"target"`
	// Details are the individual errors if there are several.
	Details []Error `json:"details"`
}

// Error returns one line.
func (e *Error) Error() string {
	text := e.Message
	if e.Target != "" {
		text = e.Target + ": " + text
	}
	for _, more := range e.Details[min(1, len(e.Details)):] {
		text += " " + more.Target + ": " + more.Message
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf(" Try again in %v.", e.RetryAfter)
	}
	return fmt.Sprintf("%s (%d %s)", text, e.Status, e.Code)
}

// foreign returns the error of an answer from the host, a proxy or another program instead of the API.
func foreign(resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode, Code: http.StatusText(resp.StatusCode)}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		e.Message = "The key or token is not accepted. Sign in with az login and give the scope of the app with --entra, or a function key with --key or ROUNDHOUSE_KEY."
	case code == http.StatusNotFound:
		e.Message = "There is no such function at the address. Is it the app's, and is the app of a version that has it?"
	case code < http.StatusInternalServerError:
		e.Message = "What answers is not the API. Is --url the address of the app?"
	default:
		e.Message = "The app does not answer requests now. Try again later."
	}
	return e
}
