package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/quota"
	"github.com/vibedata/roundhouse/internal/payload"
)

// The reasons why a message is refused.
var (
	errUnavailable = errors.New("the sender cannot be verified at present")
	errMethod      = errors.New("messages are sent with POST")
	errTooLarge    = fmt.Errorf("the body may have %d bytes at most", maxBody)
	errBody        = errors.New("the body is no message of this intake")
	errDeclined    = errors.New("the publisher declines the change")
)

// retryAfter is the value of Retry-After for senders, in seconds.
const retryAfter = 30

// refusal is the answer to an error. Senders repeat 5xx, and 429; other answers they do not repeat, or in vain.
type refusal struct {
	status        int
	code, message string
}

func refusalOf(err error) refusal {
	if _, exceeded := errors.AsType[*quota.ExceededError](err); exceeded {
		return refusal{http.StatusTooManyRequests, "TooManyRequests", err.Error()}
	}
	switch {
	case errors.Is(err, errMethod):
		return refusal{http.StatusMethodNotAllowed, "MethodNotAllowed", errMethod.Error()}
	case errors.Is(err, engine.ErrUnauthorized):
		return refusal{http.StatusUnauthorized, "Unauthorized", engine.ErrUnauthorized.Error()}
	case errors.Is(err, engine.ErrNotTaken):
		return refusal{http.StatusUnprocessableEntity, "NotTaken", engine.Redact(err.Error())}
	case errors.Is(err, errTooLarge):
		return refusal{http.StatusRequestEntityTooLarge, "BodyTooLarge", errTooLarge.Error()}
	case errors.Is(err, payload.ErrTooDeep):
		return refusal{http.StatusBadRequest, "BodyTooDeep", payload.TooDeep()}
	case errors.Is(err, payload.ErrEncoded):
		return refusal{http.StatusUnsupportedMediaType, "EncodedBody", payload.ErrEncoded.Error()}
	case errors.Is(err, errBody):
		return refusal{http.StatusBadRequest, "InvalidBody", errBody.Error()}
	case errors.Is(err, errDeclined):
		return refusal{http.StatusBadRequest, "Declined", errDeclined.Error()}
	default:
		return refusal{http.StatusServiceUnavailable, "Unavailable", "the message could not be taken: send it again"}
	}
}

// serve handles one request.
func (in *intake) serve(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := in.now()
		ctx, cancel := context.WithTimeout(c.Request().Context(), in.timeout)
		defer cancel()
		correlationID, err := in.take(ctx, r, c.Response(), c.Request())
		if correlationID == "" {
			correlationID = uuid.NewString()
		}
		status, document := r.Status, map[string]any{"status": "Succeeded", "correlationId": correlationID, "timestamp": in.now().UTC()}
		level := slog.LevelInfo
		if err != nil {
			f := refusalOf(err)
			status, level = f.status, slog.LevelWarn
			document["status"], document["error"] = "Failed", map[string]string{"code": f.code, "message": f.message}
			header(c.Response().Header(), f)
		}
		in.log.LogAttrs(ctx, level, "intake", slog.String("route", r.path), slog.String("correlationId", correlationID), slog.Int("statusCode", status),
			slog.Int64("durationMs", in.now().Sub(began).Milliseconds()), slog.String("error", reason(err)))
		c.Response().Header().Set("Cache-Control", "no-store")
		c.Response().Header().Set("x-correlation-id", correlationID)
		return c.JSON(status, document)
	}
}

func header(h http.Header, f refusal) {
	h.Set("x-ms-error-code", f.code)
	switch f.status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		h.Set("Allow", http.MethodPost)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	}
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return engine.Redact(err.Error())
}

// take puts a message into its queue.
func (in *intake) take(ctx context.Context, r route, w http.ResponseWriter, req *http.Request) (correlationID string, err error) {
	if req.Method != http.MethodPost {
		return "", errMethod
	}
	if err := quota.Admit(ctx); err != nil {
		return "", err
	}
	if r.Authorize != nil { // without it and Verify, the host has asked for a key
		if err := r.Authorize(ctx, req); err != nil {
			return "", err
		}
	}
	body, err := read(w, req)
	if err != nil {
		return "", err
	}
	if r.Verify != nil {
		if err := r.Verify(ctx, req.Header, body); err != nil {
			return "", err
		}
	}
	m, err := r.target.Accept(body)
	if err != nil {
		cause := errBody
		if r.Verify != nil { // the sender is authenticated, and gets the reason
			cause = engine.ErrNotTaken
		}
		return "", fmt.Errorf("%w: %w", cause, err)
	}
	if in.ready != nil {
		if err := in.ready(ctx); err != nil {
			return m.CorrelationID, err
		}
	}
	packed, err := in.claims.Pack(ctx, m)
	if err != nil {
		return m.CorrelationID, err
	}
	if _, err := in.queues.Send(ctx, r.target.Queue, packed, 0); err != nil {
		return m.CorrelationID, fmt.Errorf("send %s to %s: %w", m.CorrelationID, r.target.Queue, err)
	}
	if r.Declines != nil && r.Declines(body) {
		return m.CorrelationID, errDeclined
	}
	return m.CorrelationID, nil
}

// read reads a body. The connection's own deadline is that of the request, so a slow sender is cut off.
func read(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	if deadline, ok := req.Context().Deadline(); ok {
		_ = http.NewResponseController(w).SetReadDeadline(deadline) // a writer without deadlines comes from a test
	}
	if err := payload.CheckEncoding(req.Header.Values("Content-Encoding")); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it ended early: %w", errBody, err)
	}
	return body, payload.Check(body)
}

// canonicalPaths puts a path that matches an intake in any letter case into the case of its route.
func canonicalPaths(routes []route) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			u := c.Request().URL
			for _, r := range routes {
				if strings.EqualFold(strings.TrimSuffix(u.Path, "/"), r.path) {
					u.Path, u.RawPath = r.path, ""
				}
			}
			return next(c)
		}
	}
}
