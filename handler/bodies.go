package handler

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// maxUnread bounds the part of a body that is read to answer the request: the host accepts no larger body.
	maxUnread = 100 << 20
	// unreadTimeout bounds the time for reading it.
	unreadTimeout = 30 * time.Second
)

// wholeBodies reads the rest of a request's body before the answer begins. The host's proxy fails on an answer that
// arrives while it still sends, whatever its content: its caller gets 500 without a text.
func wholeBodies(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if body := c.Request().Body; body != nil && body != http.NoBody {
			c.Response().Before(func() {
				connection := http.NewResponseController(c.Response().Writer)
				_ = connection.SetReadDeadline(time.Now().Add(unreadTimeout)) // a writer without deadlines comes from a test
				if _, err := io.CopyN(io.Discard, body, maxUnread); !errors.Is(err, io.EOF) {
					// The request needs an answer even if its body cannot be read. The server reads the rest before it sends the header, so the
					// deadline stays set and the connection closes.
					c.Response().Header().Set(echo.HeaderConnection, "close")
					return
				}
				_ = connection.SetReadDeadline(time.Time{})
			})
		}
		return next(c)
	}
}
