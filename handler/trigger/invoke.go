package trigger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// Errors of an invocation that do not come from its handler.
var (
	// ErrBudget is the cause of a handler's context that ended because the invocation's budget was used up.
	ErrBudget = errors.New("the time budget of the invocation is used up")
	// ErrIdle is the result of a TimerHandler without work. The occurrence has succeeded, and is logged at debug
	// level.
	ErrIdle = errors.New("there was nothing to do")

	errNotReady = errors.New("the program is not ready yet")
	errPutBack  = errors.New("the message was put back")
	errOverrun  = errors.New("the handler did not return within the budget and the grace period after it")
	errPanic    = errors.New("the handler panicked; the log has its stack")
	errGone     = errors.New("the handler ended its goroutine without returning")
)

const invocationIDHeader = "X-Azure-Functions-InvocationId"

// success is the answer to an invocation whose handler returned nil. An empty body, or null, would make the host wait
// until its functionTimeout.
var success = []byte(`{"Outputs":{},"Logs":[],"ReturnValue":null}`)

// invocation is a decoded call of the host: the work, and its fields for the log.
type invocation struct {
	run func(ctx context.Context) error
	// about holds the handler's fields of the work.
	about *about
	// patience is the time that it waits for a ready program; 0 means half of the budget.
	patience time.Duration
	// putBack requeues it after a longer wait; nil means that it fails.
	putBack func(ctx context.Context, away time.Duration) error
	// acknowledge deletes its message; nil means that it has none.
	acknowledge func(ctx context.Context) error
	// expendable means that it can be skipped, ungated that it ignores the gate.
	expendable, ungated bool
}

type decoder func(body []byte, invocationID string) (invocation, error)

// router serves POST /<functionName>.
type router struct {
	decoders map[string]decoder
	budget   time.Duration
	grace    time.Duration
	maxBody  int64
	ready    func(ctx context.Context) error
	gate     Gate
	observe  func(ctx context.Context, o Observed)
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
		log.Error("invocation", "outcome", "unreadable", "error", publicText(err))
		return fail(c, readStatus(err), fmt.Errorf("read the invocation: %w", err))
	}
	inv, err := decode(body, id)
	if err != nil {
		log.Error("invocation", "outcome", "malformed", "error", publicText(err))
		return fail(c, http.StatusInternalServerError, fmt.Errorf("decode the invocation: %w", err))
	}

	inv.run = r.gated(inv)
	ctx := inv.about.begin(c.Request().Context(), slog.String("invocationId", id), slog.String("function", function))
	err = r.run(ctx, log, r.whenReady(inv))
	inv.acknowledgeFor(c.Request().Context(), log, err)
	r.tell(c.Request().Context(), Observed{Function: function, Outcome: endOf(err).outcome, Took: time.Since(started)})
	return r.answer(c, log, inv.describe(started), err)
}

// tell calls Observe.
func (r router) tell(ctx context.Context, o Observed) {
	if r.observe != nil {
		r.observe(ctx, o)
	}
}

// describe returns the log fields of the invocation.
func (inv invocation) describe(began time.Time) []slog.Attr {
	return merge(inv.about.known(), slog.Int64("durationMs", time.Since(began).Milliseconds()))
}

// answer logs the result of an invocation, and answers the host.
func (r router) answer(c echo.Context, log *slog.Logger, attrs []slog.Attr, err error) error {
	if end := report(log, attrs, err); end.status != http.StatusOK {
		return fail(c, end.status, err)
	}
	return c.JSONBlob(http.StatusOK, success)
}

// report logs the result of an invocation.
func report(log *slog.Logger, attrs []slog.Attr, err error) end {
	end := endOf(err)
	attrs = merge(attrs, slog.String("outcome", end.outcome))
	switch {
	case err != nil && !errors.Is(err, ErrIdle):
		attrs = merge(attrs, slog.String("error", publicText(err)))
	case slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == "error" }): // of work that is acknowledged anyway
		end.level = max(end.level, slog.LevelWarn)
	}
	log.LogAttrs(context.Background(), end.level, "invocation", attrs...)
	return end
}

// run calls work in a goroutine of its own, so that the host gets an answer in time even from a handler that ignores
// its context. Such a handler continues in the background; its late result is dropped.
func (r router) run(parent context.Context, log *slog.Logger, work func(context.Context) error) error {
	ctx, cancel := r.limited(parent)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := errGone
		defer func() {
			if p := recover(); p != nil {
				log.ErrorContext(parent, "handler panicked", "panic", publicText(fmt.Errorf("%v", p)), "stack", string(debug.Stack()))
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

// end is the result of an invocation: for the log, and for the host.
type end struct {
	outcome string
	level   slog.Level
	status  int
}

func endOf(err error) end {
	switch {
	case err == nil:
		return end{"done", slog.LevelInfo, http.StatusOK}
	case errors.Is(err, ErrIdle):
		return end{"idle", slog.LevelDebug, http.StatusOK}
	case errors.Is(err, errPutBack):
		return end{"put back", slog.LevelWarn, http.StatusOK}
	case errors.Is(err, errNotReady):
		return end{"not ready", slog.LevelError, http.StatusServiceUnavailable}
	case errors.Is(err, errPanic):
		return end{"panicked", slog.LevelError, http.StatusInternalServerError}
	case errors.Is(err, errOverrun):
		return end{"overran", slog.LevelError, http.StatusInternalServerError}
	default:
		return end{"retry", slog.LevelError, http.StatusInternalServerError}
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
