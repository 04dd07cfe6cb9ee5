package api

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/handler/access"
)

// request is an HTTP request for an endpoint.
type request struct {
	http          *http.Request
	correlationID string
	params        func(name string) string
	// call is the caller, once authenticated, and after the new state of a change's target.
	call  *access.Call
	after string
	// dryRun means that nothing was to change, so nothing is recorded.
	dryRun bool
}

func newRequest(c echo.Context) *request {
	return &request{http: c.Request(), correlationID: CorrelationID(c.Request().Header), params: c.Param}
}

// param decodes a parameter of the path, once. ok is false for an impossible name.
func (r *request) param(name string) (value string, ok bool) {
	value, err := url.PathUnescape(r.params(name))
	return value, err == nil && value != ""
}

// row reads the engine and the row key of the path. The engine must be one of names.
func (a *api) row(ctx context.Context, r *request) (engineName, rowKey string, err error) {
	engineName, ok := r.param("engine")
	names, err := a.names(ctx, engineName)
	if err != nil {
		return "", "", err
	}
	if !ok || !slices.Contains(names, engineName) {
		return "", "", notFound("There is no such engine here. There are %s.", strings.Join(names, ", "))
	}
	rowKey, ok = r.param("rowKey")
	if !ok {
		return "", "", notFound("There is nothing at this path.")
	}
	return engineName, rowKey, nil
}

// retriedRow is row for the retry of a dead letter, which needs an engine of the app.
func (a *api) retriedRow(ctx context.Context, r *request) (engineName, rowKey string, err error) {
	engineName, rowKey, err = a.row(ctx, r)
	if err == nil && !slices.Contains(a.engines, engineName) {
		err = &failure{status: http.StatusUnprocessableEntity, problem: problem{Code: codeRetryUnsupported, Target: "engine",
			Message: "This app no longer has the engine " + engineName + ". Deploy an app that has it, or resolve or expire the dead letter."}}
	}
	return engineName, rowKey, err
}

// names returns the engines whose history and dead letters the API shows: the app's, and those registered with the
// storage account before. It reads storage only if wanted, the engine of a request, is "" or not one of the app's.
func (a *api) names(ctx context.Context, wanted string) ([]string, error) {
	if slices.Contains(a.engines, wanted) {
		return a.engines, nil
	}
	return a.history.Names(ctx, a.engines)
}

var (
	// usableID matches a correlation id that can be echoed in a header and written to logs.
	usableID = regexp.MustCompile(`^[!-~]{1,128}$`)
	// traceParent matches the header of W3C Trace Context; later versions may extend it.
	traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$`)
)

const noTrace = "00000000000000000000000000000000"

// CorrelationID returns the caller's id of the request, the id of its trace, or a new one.
func CorrelationID(h http.Header) string {
	if id := h.Get("x-correlation-id"); usableID.MatchString(id) {
		return id
	}
	if m := traceParent.FindStringSubmatch(h.Get("traceparent")); m != nil && m[1] != noTrace {
		return m[1]
	}
	return uuid.NewString()
}
