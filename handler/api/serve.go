package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/redact"
)

// reply is the successful answer of an endpoint.
type reply struct {
	data any
	// etag is the version of data, "" for none.
	etag string
	// status is the code of the answer, 0 for 200.
	status int
	header map[string]string
	// document is the whole body, instead of data and its envelope; nil for none.
	document *document
}

// document is a body that is not the envelope.
type document struct {
	contentType string
	body        []byte
}

// envelope is the body of every answer (standard, sections 3 and 5).
type envelope struct {
	Status        string    `json:"status"`
	CorrelationID string    `json:"correlationId"`
	Timestamp     time.Time `json:"timestamp"`
	Data          any       `json:"data,omitempty"`
	Error         *errBody  `json:"error,omitempty"`
}

type errBody struct {
	problem
	Details []problem `json:"details,omitempty"`
}

// problemType is the media type of RFC 9457.
const problemType = "application/problem+json"

// problemBody is an error in the form of RFC 9457, with the members of the envelope.
type problemBody struct {
	Type          string    `json:"type"`
	Title         string    `json:"title"`
	Status        int       `json:"status"`
	Detail        string    `json:"detail"`
	Instance      string    `json:"instance"`
	Code          string    `json:"code"`
	Target        string    `json:"target,omitempty"`
	CorrelationID string    `json:"correlationId"`
	Timestamp     time.Time `json:"timestamp"`
	Errors        []problem `json:"errors,omitempty"`
}

// serve returns the handler of a resource: its limits, its endpoint, its answer. A resource without methods does not
// exist.
func (a *api) serve(res resource) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), a.timeout)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		c.Request().Body = http.MaxBytesReader(c.Response(), c.Request().Body, res.maxBody())
		r := newRequest(c)
		rep, err := a.call(ctx, res, r)
		if err != nil {
			return a.fail(c, r, err)
		}
		header := c.Response().Header()
		if rep.etag != "" {
			header.Set("ETag", rep.etag)
		}
		for name, value := range rep.header {
			header.Set(name, value)
		}
		status := cmp.Or(rep.status, http.StatusOK)
		if rep.document != nil {
			return send(c, r, status, rep.document.contentType, rep.document.body)
		}
		return write(c, r, status, echo.MIMEApplicationJSON, envelope{
			Status: "Succeeded", CorrelationID: r.correlationID, Timestamp: a.now().UTC(), Data: rep.data,
		})
	}
}

// call finds the endpoint and runs it. A panic is an error like any other, with its stack in the log.
func (a *api) call(ctx context.Context, res resource, r *request) (rep reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	method := r.http.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	switch m, ok := res.methods[method]; {
	case len(res.methods) == 0:
		return reply{}, notFound("There is nothing at this path.")
	case !ok:
		return reply{}, methodNotAllowed(res)
	case r.http.ContentLength > res.maxBody():
		return reply{}, bodyTooLarge(res.maxBody())
	default:
		return a.enter(ctx, m, r)
	}
}

// enter runs an endpoint for a permitted caller.
func (a *api) enter(ctx context.Context, m method, r *request) (rep reply, err error) {
	if r.call, err = a.door.Enter(ctx, r.http, m.need, r.correlationID); err != nil {
		return reply{}, err
	}
	if several(r.http.Header.Values("If-Match")) {
		return reply{}, &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidParameter, Message: "Name one version in If-Match, or *: a list is not supported.", Target: "If-Match"}}
	}
	ended := errPanicked // unless it returns
	defer func() { a.leave(ctx, m, r, ended) }()
	rep, err = m.run(ctx, r)
	ended = err
	return rep, err
}

// several reports whether a header has more than one entity tag.
func several(values []string) bool {
	tags := 0
	for _, value := range values {
		quoted := false
		for part := range strings.FieldsFuncSeq(value, func(r rune) bool {
			quoted = quoted != (r == '"')
			return r == ',' && !quoted
		}) {
			if strings.TrimSpace(part) != "" {
				tags++
			}
		}
	}
	return tags > 1
}

// errPanicked is the audit log's error of a change whose endpoint panicked.
var errPanicked = errors.New("the endpoint panicked")

// leave records the outcome of the change, or its refusal. A change without a record is a bug of its endpoint.
func (a *api) leave(ctx context.Context, m method, r *request, err error) {
	r.call.End(ctx, r.after, err)
	if !m.need.Changes() || r.call.Began() {
		return
	}
	if err == nil && r.dryRun {
		return
	}
	if err == nil {
		a.log.ErrorContext(ctx, "a change is not in the audit log", "method", r.http.Method, "path", r.http.URL.Path, "correlationId", r.correlationID)
		return
	}
	if f := failureOf(err, a.now()); f.status == http.StatusForbidden || f.hidden {
		r.call.Refused(ctx, f)
	}
}

func methodNotAllowed(res resource) *failure {
	allowed := slices.Sorted(maps.Keys(res.methods))
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	allow := strings.Join(allowed, ", ")
	return &failure{
		status:  http.StatusMethodNotAllowed,
		problem: problem{Code: codeMethodNotAllowed, Message: "This resource answers to " + allow + " only."},
		header:  map[string]string{"Allow": allow},
	}
}

// fail answers with an error.
func (a *api) fail(c echo.Context, r *request, err error) error {
	now := a.now().UTC()
	r.conceal(err)
	f := failureOf(err, now)
	shown := f.problem
	shown.Message = redact.Text(shown.Message)                                           // it may quote another service
	if f.status >= http.StatusInternalServerError && !errors.Is(err, context.Canceled) { // a disconnected caller is no failure
		a.log.Error("API request failed", "correlationId", r.correlationID, "method", r.http.Method, "route", c.Path(),
			"statusCode", f.status, "error", engine.Redact(err.Error()))
	}
	header := c.Response().Header()
	header.Set("x-ms-error-code", f.Code)
	for name, value := range f.header {
		header.Set(name, value)
	}
	if !r.accepts(problemType) {
		return write(c, r, f.status, echo.MIMEApplicationJSON, envelope{
			Status: "Failed", CorrelationID: r.correlationID, Timestamp: now, Error: &errBody{shown, f.details},
		})
	}
	return write(c, r, f.status, problemType, problemBody{
		Type: "about:blank", Title: http.StatusText(f.status), Status: f.status, Detail: shown.Message,
		Instance: r.http.URL.EscapedPath(), Code: f.Code, Target: f.Target,
		CorrelationID: r.correlationID, Timestamp: now, Errors: f.details,
	})
}

// accepts reports whether the request names a media type in Accept.
func (r *request) accepts(mediaType string) bool {
	for part := range strings.SplitSeq(strings.Join(r.http.Header.Values("Accept"), ","), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || media != mediaType {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		return err != nil || q > 0
	}
	return false
}

// write sends a body as JSON.
func write(c echo.Context, r *request, status int, contentType string, body any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return fmt.Errorf("encode the answer to %s %s: %w", r.http.Method, c.Path(), err) // unreachable unless a row contains invalid JSON
	}
	return send(c, r, status, contentType, b.Bytes())
}

// send sends a body; for HEAD only the headers.
func send(c echo.Context, r *request, status int, contentType string, body []byte) error {
	body = r.call.Conceal(body)
	header := c.Response().Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("x-correlation-id", r.correlationID)
	header.Set(echo.HeaderContentLength, strconv.Itoa(len(body)))
	if r.http.Method == http.MethodHead {
		header.Set(echo.HeaderContentType, contentType)
		return c.NoContent(status)
	}
	return c.Blob(status, contentType, body)
}
