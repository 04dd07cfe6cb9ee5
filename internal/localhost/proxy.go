package localhost

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The real host tries a broken proxied request ten times, with pauses that add up to two seconds.
const (
	proxyTries      = 10
	firstProxyPause = 50 * time.Millisecond
	maxProxyPause   = 250 * time.Millisecond
)

var (
	errTooLarge  = fmt.Errorf("the body is larger than %d bytes", maxRequest)
	errBrokeOff  = errors.New("the answer broke off")
	errNotRead   = errors.New("the handler answered without having read the body, and closed the connection")
	errNoAnswer  = errors.New("the handler did not begin to answer")
	errTimedOver = errors.New("the handler was killed, the function had timed out")
)

// proxy passes a request on by enableProxyingHttpRequest: streamed both ways. abort means that the answer broke off
// after its start was sent.
func (h *Host) proxy(w http.ResponseWriter, r *http.Request, path, id string) (abort bool, err error) {
	if r.ContentLength > maxRequest {
		w.WriteHeader(http.StatusInternalServerError)
		return false, errTooLarge
	}
	generation, err := h.supervisor.await(r.Context())
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return false, err
	}
	// The request continues when the function times out; the kill of the process then ends it.
	expired, stop := h.invoker.watch(generation)
	defer stop()
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			abort, err = true, errBrokeOff
		} else if p != nil {
			panic(p) // not ours: net/http logs it and cuts the connection
		}
	}()
	proxy := httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { h.rewrite(p, path, id) },
		Transport:     &retryTransport{invoker: h.invoker, expired: expired, patience: h.config.ActivityTimeout},
		FlushInterval: -1,
		ErrorLog:      h.serverLog(),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, failure error) {
			err = fmt.Errorf("proxy the request: %w", failure)
			w.WriteHeader(http.StatusInternalServerError)
		},
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
	// Lets the answer start before the request has ended; only HTTP/1 needs this call.
	_ = http.NewResponseController(w).EnableFullDuplex()
	proxy.ServeHTTP(w, r)
	return false, err
}

// rewrite converts the client's request to the handler's: its path decoded and encoded again, and the headers that the
// real host adds.
func (h *Host) rewrite(p *httputil.ProxyRequest, path, id string) {
	target := strings.TrimPrefix(handlerURL(h.supervisor.port), "http://")
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", target, target
	p.Out.URL.Path, p.Out.URL.RawPath = path, encodePath(path)
	p.Out.URL.RawQuery = encodeQuery(p.In.URL.RawQuery)
	p.Out.Header.Del("Te")
	p.SetXForwarded()
	for name, values := range p.Out.Header {
		separator := ", "
		if name == "Cookie" {
			separator = "; "
		}
		p.Out.Header[name] = []string{strings.Join(values, separator)}
	}
	stampInvocation(p.Out.Header, id)
	setAs(p.Out.Header, "x-ms-invocation-id", id)
	if p.Out.Header.Get("Traceparent") == "" {
		setAs(p.Out.Header, "traceparent", newTraceparent())
	}
}

// newTraceparent returns a new trace that is not sampled.
func newTraceparent() string {
	var ids [24]byte
	_, _ = rand.Read(ids[:]) // never fails
	return "00-" + hex.EncodeToString(ids[:16]) + "-" + hex.EncodeToString(ids[16:]) + "-00"
}

// retryTransport sends one proxied request. It retries while the handler cannot be reached, for any method, and when a
// request without a body breaks off. So a handler may see one request several times, with the same invocation id.
type retryTransport struct {
	invoker *invoker
	// expired is closed when the function has timed out.
	expired <-chan struct{}
	// patience bounds the wait for the start of the answer.
	patience time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (t *retryTransport) RoundTrip(request *http.Request) (response *http.Response, err error) {
	// A consumed body cannot be sent again. The real host still tries, and takes its time.
	used := false
	pause := firstProxyPause
	for try := 1; ; try++ {
		if !used {
			if response, err = t.try(request); err == nil {
				return response, nil
			}
			used = request.Body != nil && !errors.Is(err, syscall.ECONNREFUSED)
		}
		if t.timedOut() {
			t.repeatUnheard(request)
			return nil, errors.Join(errTimedOver, err)
		}
		if try == proxyTries || errors.Is(err, errNoAnswer) || !sleep(request.Context(), pause) {
			return nil, err
		}
		pause = min(2*pause, maxProxyPause)
	}
}

func (t *retryTransport) timedOut() bool {
	select {
	case <-t.expired:
		return true
	default:
		return false
	}
}

// repeatUnheard sends a request without a body once more, as the real host does to the next handler after it has killed
// the previous one for a function's timeout. The answer is discarded.
func (t *retryTransport) repeatUnheard(request *http.Request) {
	if request.Body != nil {
		return
	}
	again := request.Clone(context.WithoutCancel(request.Context()))
	t.invoker.pending.Go(func() {
		if _, err := t.invoker.supervisor.await(again.Context()); err != nil {
			return
		}
		if response, err := t.invoker.supervisor.transport.RoundTrip(again); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	})
}

// try sends the request once. An answer that refuses an unread body counts only when the rest of the body could still
// be sent.
func (t *retryTransport) try(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	waiting := time.AfterFunc(t.patience, func() { cancel(fmt.Errorf("%w within %v", errNoAnswer, t.patience)) })
	attempt := request.WithContext(ctx)
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		// Without any body the transport itself would retry.
		attempt.Body = io.NopCloser(strings.NewReader(""))
	}
	var body *watchedBody
	if request.Body != nil {
		body = &watchedBody{Reader: request.Body, closed: make(chan struct{})}
		attempt.Body = body
	}
	response, err := t.invoker.supervisor.transport.RoundTrip(attempt)
	waiting.Stop()
	if err == nil && body != nil && response.StatusCode >= http.StatusBadRequest && !body.sent(ctx) {
		_ = response.Body.Close()
		err = errNotRead
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errNoAnswer) {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	response.Body = &cancelingBody{response.Body, cancel}
	return response, nil
}

// watchedBody reports whether the transport has read all of a request's body. The body itself stays open for another
// try; the server closes it.
type watchedBody struct {
	io.Reader
	closed chan struct{}

	once sync.Once
	mu   sync.Mutex
	end  bool
}

// Read implements [io.Reader].
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.mu.Lock()
		b.end = true
		b.mu.Unlock()
	}
	return n, err
}

// Close implements [io.Closer].
func (b *watchedBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// sent waits until the transport has finished with the body, and reports whether it reached the end.
func (b *watchedBody) sent(ctx context.Context) bool {
	select {
	case <-b.closed:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.end
}

// cancelingBody frees the resources of a request when its answer has been read.
type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements [io.Closer].
func (b *cancelingBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
