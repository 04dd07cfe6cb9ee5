package handler

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// A body that nobody wants has been read when its answer comes, as far as the host sends one; what is longer is answered, too.
func TestBodiesAreReadBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	router, err := newRouter(program{API: func(e *echo.Echo) error {
		e.POST("/api/refuse", func(c echo.Context) error { return c.NoContent(http.StatusRequestEntityTooLarge) })
		return nil
	}}, settings.Settings{}, slog.New(slog.DiscardHandler))
	testenv.Check(t, err)
	srv, err := listen(settings.Settings{}, router, slog.New(slog.DiscardHandler))
	testenv.Check(t, err)
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.serve() }()
	defer func() { srv.shutdown(0); <-served }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, size := range []int{1, 1 << 20, 64 << 20} {
		body := &countingReader{left: size}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+srv.listener.Addr().String()+"/api/refuse", body)
		testenv.Check(t, err)
		req.ContentLength = int64(size)
		answer, err := client.Do(req)
		testenv.Check(t, err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusRequestEntityTooLarge || body.left != 0 {
			t.Errorf("%d bytes: %d, %d bytes were not asked for", size, answer.StatusCode, body.left)
		}
	}
}

// countingReader gives zeros.
type countingReader struct{ left int }

func (r *countingReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, bytes.Repeat([]byte{0}, min(len(p), r.left)))
	r.left -= n
	return n, nil
}
