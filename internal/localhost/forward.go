package localhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const (
	// maxRequest bounds a client's request, as on the real host.
	maxRequest = 100 << 20
	// forwardTries is how often a forwarded GET is tried when the connection breaks.
	forwardTries = 4
)

// forward passes a request on by enableForwardingHttpRequest: buffered both ways, with the client's headers.
func (h *Host) forward(w http.ResponseWriter, r *http.Request, id string) error {
	generation, err := h.supervisor.await(r.Context())
	if err == nil && r.ContentLength < 0 {
		err = errors.New("a chunked request cannot be forwarded: enableProxyingHttpRequest can")
	}
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return fmt.Errorf("read the request: %w", err)
	}
	type answer struct {
		response *http.Response
		body     []byte
		err      error
	}
	answers := make(chan answer, 1)
	request, err := h.forwardedRequest(r, body, id)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return err
	}
	h.invoker.pending.Go(func() {
		response, body, err := h.invoker.sendForwarded(request)
		answers <- answer{response, body, err}
	})
	expired, stop := h.invoker.watch(generation)
	defer stop()
	select {
	case <-expired:
		w.WriteHeader(http.StatusInternalServerError)
		return fmt.Errorf("%w after %v", ErrTimedOut, h.invoker.timeout)
	case a := <-answers:
		if a.err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return fmt.Errorf("forward the request: %w", a.err)
		}
		copyHeader(w.Header(), a.response.Header)
		w.WriteHeader(a.response.StatusCode)
		_, _ = w.Write(a.body)
		return nil
	}
}

// forwardedRequest returns the client's request with the real host's changes.
func (h *Host) forwardedRequest(r *http.Request, body []byte, id string) (*http.Request, error) {
	target := handlerURL(h.supervisor.port) + r.URL.EscapedPath()
	if query := joinedQuery(r.URL.Query()); query != "" {
		target += "?" + query
	}
	request, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("forward the request: %w", err)
	}
	copyHeader(request.Header, r.Header)
	request.Host = r.Host
	request.Header.Set("User-Agent", strings.TrimSpace(r.UserAgent()+" "+userAgent))
	stampInvocation(request.Header, id)
	return request, nil
}

// joinedQuery encodes a query from its parsed values, those of one name joined by commas.
func joinedQuery(query url.Values) string {
	joined := url.Values{}
	for name, values := range query {
		joined.Set(name, strings.Join(values, ","))
	}
	return joined.Encode()
}

// copyHeader copies all headers except hop-by-hop ones.
func copyHeader(to, from http.Header) {
	for name, values := range from {
		switch name {
		case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		default:
			to[name] = values
		}
	}
}

// sendForwarded sends without following redirects; only a GET is retried.
func (i *invoker) sendForwarded(request *http.Request) (*http.Response, []byte, error) {
	tries := 1
	if request.Method == http.MethodGet {
		tries = forwardTries
	}
	for try := 1; ; try++ {
		attempt := *request
		attempt.Body, _ = request.GetBody() // never fails for a body in memory
		response, err := i.supervisor.transport.RoundTrip(&attempt)
		if err != nil {
			if try < tries {
				continue
			}
			return nil, nil, err
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
		_ = response.Body.Close()
		if err == nil && len(body) > maxReply {
			err = fmt.Errorf("the answer is larger than %d bytes", maxReply)
		}
		return response, body, err
	}
}
