package trigger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// Errors of an invocation that its handler did not return itself.
var (
	// ErrBudget is the cause of a handler's context that ended because the invocation's budget was used up.
	ErrBudget = errors.New("the time budget of the invocation is used up")

	errOverrun = errors.New("the handler did not return within the budget and the grace period after it")
	errPanic   = errors.New("the handler panicked; the log has its stack")
	errGone    = errors.New("the handler ended its goroutine without returning")
)

const invocationIDHeader = "X-Azure-Functions-InvocationId"

// success is the answer to an invocation whose handler returned nil. An empty body, or null, would make the host wait
// until its functionTimeout.
var success = []byte(`{"Outputs":{},"Logs":[],"ReturnValue":null}`)

// invocation is a decoded call of the host: what to run, and what a log record should say about it.
type invocation struct {
	attrs []slog.Attr
	run   func(ctx context.Context) error
}

type decoder func(body []byte, invocationID string) (invocation, error)

// router serves POST /<functionName>.
type router struct {
	decoders map[string]decoder
	budget   time.Duration
	grace    time.Duration
	maxBody  int64
	log      *slog.Logger
}

func (r router) serve(c echo.Context) error {
	started := time.Now()
	function := c.Param("function")
	id := c.Request().Header.Get(invocationIDHeader)
	if uuid.Validate(id) != nil {
		id = uuid.NewString()
	}
	log := r.log.With("invocationId", id, "function", printable(function))

	decode, ok := r.decoders[function]
	if !ok {
		log.Warn("invocation", "outcome", "unknown function")
		return fail(c, http.StatusNotFound, fmt.Errorf("no queue or timer function is registered as %q: "+
			"its folder and this program do not match; HTTP functions need enableForwardingHttpRequest in host.json", function))
	}
	// The host sends the body chunked, except under Core Tools: its length is not known beforehand.
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, r.maxBody))
	if err != nil {
		log.Error("invocation", "outcome", "unreadable", "reason", publicText(err))
		return fail(c, readStatus(err), fmt.Errorf("read the invocation: %w", err))
	}
	inv, err := decode(body, id)
	if err != nil {
		log.Error("invocation", "outcome", "malformed", "reason", publicText(err))
		return fail(c, http.StatusInternalServerError, fmt.Errorf("decode the invocation: %w", err))
	}

	err = r.run(c.Request().Context(), log, inv.run)
	attrs := append(inv.attrs, slog.Int64("durationMs", time.Since(started).Milliseconds()), slog.String("outcome", outcome(err)))
	if err != nil {
		log.LogAttrs(context.Background(), slog.LevelError, "invocation", append(attrs, slog.String("reason", publicText(err)))...)
		return fail(c, http.StatusInternalServerError, err)
	}
	log.LogAttrs(context.Background(), slog.LevelInfo, "invocation", attrs...)
	return c.JSONBlob(http.StatusOK, success)
}

// run calls work in a goroutine of its own, so that the host gets an answer in time even from a handler that does not
// look at its context. Such a handler goes on in the background; its result comes too late and is dropped.
func (r router) run(parent context.Context, log *slog.Logger, work func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(parent, r.budget, ErrBudget)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := errGone
		defer func() {
			if p := recover(); p != nil {
				log.Error("handler panicked", "panic", publicText(fmt.Errorf("%v", p)), "stack", string(debug.Stack()))
				err = errPanic
			}
			done <- err
		}()
		err = work(ctx)
	}()
	overrun := time.NewTimer(r.budget + r.grace)
	defer overrun.Stop()
	select {
	case err := <-done:
		return err
	case <-overrun.C:
		return errOverrun
	}
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, errPanic):
		return "panicked"
	case errors.Is(err, errOverrun):
		return "overran"
	default:
		return "retry"
	}
}

func readStatus(err error) int {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusInternalServerError
}

// fail answers with an error: any status but 2xx makes the host fail the invocation.
func fail(c echo.Context, status int, err error) error {
	return c.JSON(status, map[string]string{"error": publicText(err)})
}
