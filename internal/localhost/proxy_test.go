package localhost

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestBrokenProxiedRequest: without a body it is repeated with the same ids; with a body it is not.
func TestBrokenProxiedRequest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method, body string
		tries        int
	}{
		{http.MethodGet, "", proxyTries}, {http.MethodPost, "", proxyTries}, {http.MethodPost, "body", 1},
	} {
		t.Run(test.method+" "+test.body, func(t *testing.T) {
			t.Parallel()
			a, host := webApp(t, proxying)
			response, text := request(t, test.method, host.URL()+"/api/hello?do=reset", strings.NewReader(test.body))
			if response.StatusCode != http.StatusInternalServerError || text != "" {
				t.Errorf("status %d: %s", response.StatusCode, text)
			}
			if i := a.next(t); i.Err == nil {
				t.Error("the invocation succeeded")
			}
			// A second request marks the end of the first one's tries.
			request(t, http.MethodPost, host.URL()+"/api/hello?do=reset", strings.NewReader("another"))
			second := a.next(t)
			lines := a.output.wait(t, "handler resets", test.tries+1)
			if !strings.Contains(lines[test.tries], second.ID) {
				t.Errorf("try %d of the first request is not the last one: %s", test.tries, lines[test.tries])
			}
			for _, line := range lines[:test.tries] {
				if line != lines[0] || !strings.HasSuffix(line, "-00") {
					t.Errorf("a try has other ids, or no trace: %s, first %s", line, lines[0])
				}
			}
		})
	}
}

// TestTraceIsKept: only a request without a trace gets a new one.
func TestTraceIsKept(t *testing.T) {
	t.Parallel()
	_, host := webApp(t, proxying)
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if _, text := request(t, http.MethodGet, host.URL()+"/api/hello", nil, "traceparent", trace); !strings.Contains(text, trace) {
		t.Error(text)
	}
}

// TestAnswerToABodyThatIsNotRead: it gets through as long as the rest of the body fits into the buffers between the
// two.
func TestAnswerToABodyThatIsNotRead(t *testing.T) {
	t.Parallel()
	a, host := webApp(t, proxying)
	for size, want := range map[int]int{100 << 10: http.StatusRequestEntityTooLarge, 64 << 20: http.StatusInternalServerError} {
		response, _ := request(t, http.MethodPost, host.URL()+"/api/hello?do=refuse", strings.NewReader(strings.Repeat("x", size)))
		if response.StatusCode != want {
			t.Errorf("%d bytes: status %d, want %d", size, response.StatusCode, want)
		}
		a.next(t)
	}
	a.output.wait(t, "handler refuses", 2)
	response, _ := request(t, http.MethodPost, host.URL()+"/api/hello", io.LimitReader(endless{}, maxRequest+1))
	if response.StatusCode != http.StatusInternalServerError {
		t.Errorf("more than the host takes: status %d", response.StatusCode)
	}
	a.next(t)
	// A body with a length gets its answer before it is read.
	r := httptest.NewRequest(http.MethodPost, host.URL()+"/api/hello", endless{})
	r.ContentLength = maxRequest + 1
	w := httptest.NewRecorder()
	host.ServeHTTP(w, r)
	if i := a.next(t); w.Code != http.StatusInternalServerError || !errors.Is(i.Err, errTooLarge) {
		t.Errorf("more than the host takes, as it says itself: status %d, %v", w.Code, i.Err)
	}
}

// TestHeadOfAProxiedRequest: the method arrives in capitals, headers of one name arrive joined, and hop-by-hop headers
// do not arrive.
func TestHeadOfAProxiedRequest(t *testing.T) {
	t.Parallel()
	_, host := webApp(t, proxying)
	_, text := request(t, "get", host.URL()+"/api/hello", nil, "X-Twice", "1", "X-Twice", "2", "Cookie", "a=b", "Cookie", "c=d", "Te", "trailers")
	for _, part := range []string{`"method":"GET"`, `"X-Twice":["1, 2"]`, `"Cookie":["a=b; c=d"]`} {
		if !strings.Contains(text, part) {
			t.Errorf("without %s: %s", part, text)
		}
	}
	if strings.Contains(text, "trailers") {
		t.Error(text)
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestHandlerThatDoesNotAnswer covers both limits of the wait for a proxied request.
func TestHandlerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set func(*app)
		// repeated is true when the handler gets the request once more, without a client.
		repeated bool
	}{
		"for too long to begin": {func(a *app) { a.config.ActivityTimeout = 10 * time.Millisecond }, false},
		"in time for its function": {func(a *app) {
			a.host["functionTimeout"] = "00:00:01"
			a.config.KillGrace = time.Millisecond
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			a.host["customHandler"].(map[string]any)[proxying] = true
			a.function(t, "hello", httpBindings("hello/{*rest}", "get")...)
			test.set(a)
			host, _, _ := a.start(t)
			response, _ := request(t, http.MethodGet, host.URL()+"/api/hello?do=hang", nil)
			i := a.next(t)
			if response.StatusCode != http.StatusInternalServerError || i.Err == nil {
				t.Errorf("status %d, invocation %+v", response.StatusCode, i)
			}
			if test.repeated {
				if lines := a.output.wait(t, "handler hangs", 2); !strings.Contains(lines[1], i.ID) {
					t.Errorf("the repetition is of another request: %s", lines)
				}
			}
		})
	}
}
