package handler

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
)

// pipes is a listener whose connections are made by the test.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) Close() error {
	close(p)
	return nil
}

// A refused request whose body does not arrive is answered after the timeout, and its connection ends. A late body
// within the timeout keeps its connection.
func TestRefusedRequestsWithSlowBodies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after  time.Duration // when the rest of the body arrives; 0 for never
		within time.Duration
		closes bool
	}{
		"never":         {within: unreadTimeout + time.Second, closes: true},
		"in time":       {after: 10 * time.Second, within: 11 * time.Second},
		"when too late": {after: time.Hour, within: unreadTimeout + time.Second, closes: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := echo.New()
				e.Use(wholeBodies)
				e.POST("/", func(c echo.Context) error { return c.String(http.StatusForbidden, "no") })
				listener := make(pipes, 1)
				server := &http.Server{Handler: e}
				served := make(chan error, 1)
				go func() { served <- server.Serve(listener) }()
				ours, theirs := net.Pipe()
				listener <- theirs
				began := time.Now()
				var sender sync.WaitGroup
				sender.Go(func() {
					_, _ = fmt.Fprint(ours, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{")
					if tt.after > 0 {
						time.Sleep(tt.after)
						_, _ = fmt.Fprint(ours, "  ")
					}
				})
				res, err := http.ReadResponse(bufio.NewReader(ours), nil)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				if took := time.Since(began); res.StatusCode != http.StatusForbidden || took > tt.within || res.Close != tt.closes {
					t.Errorf("%d after %v, closes %v", res.StatusCode, took, res.Close)
				}
				_ = ours.Close()
				_ = server.Close()
				<-served
				sender.Wait()
			})
		})
	}
}
