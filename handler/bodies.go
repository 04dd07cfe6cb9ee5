package handler

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// maxUnread is how much of a body is read to answer the request: the host lets no larger one through.
	maxUnread = 100 << 20
	// unreadTimeout bounds the time for that.
	unreadTimeout = 30 * time.Second
)

// wholeBodies reads what a request's endpoint has left of the body before the answer begins. The host's proxy gives up on an
// answer that comes while it still sends, however well it says what is wrong: its caller gets 500 and no text.
func wholeBodies(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if body := c.Request().Body; body != nil && body != http.NoBody {
			c.Response().Before(func() {
				connection := http.NewResponseController(c.Response().Writer)
				_ = connection.SetReadDeadline(time.Now().Add(unreadTimeout)) // a writer without deadlines is one of a test
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
