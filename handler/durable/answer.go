package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/quota"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// answer is the answer to a request: a JSON body, or none.
type answer struct {
	status int
	body   any // nil for none
	header map[string]string
}

func nothing(status int) answer { return answer{status: status} }

// document returns a body of any JSON.
func document(status int, body any) answer { return answer{status: status, body: body} }

// problem is an error in the extension's form.
type problem struct {
	Message string `json:"Message"`
	// ExceptionMessage is the detailed message.
	ExceptionMessage string `json:"ExceptionMessage,omitempty"`
}

func message(status int, text string, cause error) answer {
	p := problem{Message: text}
	if cause != nil {
		p.ExceptionMessage = cause.Error()
	}
	return document(status, p)
}

// refusal is a refused request, with the reason.
type refusal struct {
	status int
	text   string
	cause  error
}

// Error returns the text of the answer.
func (r *refusal) Error() string { return r.text }

func badArgument(why string) error {
	return &refusal{http.StatusBadRequest, "One or more of the arguments submitted is incorrect", errors.New(why)}
}

// failed returns the answer to an error.
func (s *server) failed(in *call, err error) answer {
	var refused *refusal
	var conflict *engine.ConflictError
	var tooLarge *http.MaxBytesError
	var exceeded *quota.ExceededError
	switch {
	case errors.As(err, &refused):
		return message(refused.status, refused.text, refused.cause)
	case errors.As(err, &exceeded):
		out := message(http.StatusTooManyRequests, err.Error(), nil)
		out.header = map[string]string{"Retry-After": exceeded.RetryAfter()}
		return out
	case errors.Is(err, access.ErrUnauthenticated):
		out := message(http.StatusUnauthorized, err.Error(), nil)
		out.header = map[string]string{"WWW-Authenticate": "Bearer"}
		return out
	case errors.Is(err, access.ErrForbidden), errors.Is(err, access.ErrNotConfigured):
		return message(http.StatusForbidden, err.Error(), nil)
	case errors.Is(err, access.ErrNotReady):
		out := message(http.StatusServiceUnavailable, "The app has started, and its storage cannot be used yet: the app's log says why. Repeat the request later.", nil)
		out.header = map[string]string{"Retry-After": "5"}
		return out
	case errors.Is(err, audit.ErrNotRecorded):
		out := message(http.StatusServiceUnavailable, "It could not be recorded who does this, so nothing was done.", nil)
		out.header = map[string]string{"Retry-After": "5"}
		return out
	case errors.Is(err, codec.ErrKey):
		out := message(http.StatusServiceUnavailable, "The payload's key cannot be used at present, so nothing can be shown that is encrypted. Repeat the request later.", nil)
		out.header = map[string]string{"Retry-After": "30"}
		return out
	case errors.As(err, &tooLarge):
		return message(http.StatusRequestEntityTooLarge, "The body may have "+strconv.Itoa(maxBody)+" bytes at most.", nil)
	case errors.Is(err, payload.ErrTooDeep):
		return s.failed(in, badArgument(payload.TooDeep()))
	case errors.Is(err, orchestrator.ErrNotFound):
		return nothing(http.StatusNotFound)
	case errors.Is(err, orchestrator.ErrUnknownOrchestrator), errors.Is(err, engine.ErrNoEngine):
		return s.failed(in, badArgument("The function doesn't exist, is disabled, or is not an orchestrator function."))
	case errors.Is(err, engine.ErrRefused):
		return s.failed(in, badArgument(err.Error()))
	case errors.Is(err, orchestrator.ErrContinuation):
		return s.failed(in, badArgument("The continuation token does not belong to this list."))
	case errors.As(err, &conflict):
		out := message(http.StatusConflict, conflict.Error(), nil)
		out.header = map[string]string{"Retry-After": strconv.Itoa(int(math.Ceil(max(1, conflict.RetryAfter.Seconds()))))}
		return out
	case errors.Is(err, tables.ErrThrottled), errors.Is(err, tables.ErrOutcomeUnknown):
		out := message(http.StatusServiceUnavailable, "Storage did not answer in time. Repeat the request later.", nil)
		out.header = map[string]string{"Retry-After": "5"}
		return out
	case errors.Is(err, orchestrator.ErrActive), errors.Is(err, orchestrator.ErrExists):
		return message(http.StatusConflict, "An orchestration of this instance id exists already and has not ended.", nil)
	default:
		if !errors.Is(err, context.Canceled) { // a disconnected caller is no failure
			s.Log.Error("request of the API of Durable Functions failed", "method", in.http.Method, "path", in.http.URL.Path, "error", engine.Redact(err.Error()))
		}
		return message(http.StatusInternalServerError, "Something went wrong while processing your request", nil)
	}
}

func (a answer) send(c echo.Context, by *access.Call) error {
	header := c.Response().Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	for name, value := range a.header {
		header.Set(name, value)
	}
	if a.body == nil {
		return c.NoContent(a.status)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(a.body); err != nil {
		return err // unreachable unless a row contains invalid JSON
	}
	body := by.Conceal(b.Bytes())
	header.Set(echo.HeaderContentLength, strconv.Itoa(len(body)))
	return c.Blob(a.status, "application/json; charset=utf-8", body)
}
