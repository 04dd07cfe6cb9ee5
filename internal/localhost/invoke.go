package localhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	hostVersion  = "4.1045.200.25556"
	userAgent    = "Azure-Functions-Host/" + hostVersion
	maxRedirects = 50
	// maxReply bounds a handler's answer, far above any answer of a queue or timer function.
	maxReply = 64 << 20
)

// invoker sends invocations to the handler process.
type invoker struct {
	supervisor *supervisor
	client     *http.Client
	chunked    bool
	timeout    time.Duration // functionTimeout; 0: unbounded
	killGrace  time.Duration // from the timeout of a function to the kill of the process

	pending sync.WaitGroup // requests that may outlive their invocation
}

// newClient follows redirects as the real host does, but only to the handler itself.
func newClient(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(request *http.Request, via []*http.Request) error {
		if request.URL.Host != via[0].URL.Host {
			return errors.New("a redirect that leaves the handler is not followed")
		}
		if len(via) > maxRedirects {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// invoke runs a function once: it waits for the handler, posts the envelope and evaluates the answer.
func (i *invoker) invoke(ctx context.Context, function, id string, e envelope) (result, error) {
	generation, err := i.supervisor.await(ctx)
	if err != nil {
		return result{}, fmt.Errorf("function %s: wait for the handler: %w", function, err)
	}
	type answer struct {
		reply reply
		err   error
	}
	answers := make(chan answer, 1)
	// The real host does not cancel a request whose function has timed out, nor a running one when it stops; both end with
	// the process.
	request, err := i.request(context.WithoutCancel(ctx), function, id, e)
	if err != nil {
		return result{}, err
	}
	i.pending.Go(func() {
		r, err := i.send(request)
		answers <- answer{r, err}
	})
	expired, stop := i.watch(generation)
	defer stop()
	select {
	case a := <-answers:
		if a.err != nil {
			return result{}, fmt.Errorf("function %s: invoke the handler: %w", function, a.err)
		}
		return judge(function, a.reply)
	case <-expired:
		return result{}, fmt.Errorf("function %s: %w after %v", function, ErrTimedOut, i.timeout)
	}
}

// watch bounds an invocation: expired is closed at functionTimeout, and the process that got the invocation is killed
// shortly after, even if the answer still arrives.
func (i *invoker) watch(generation int) (expired <-chan struct{}, stop func()) {
	if i.timeout == 0 {
		return nil, func() {}
	}
	end := make(chan struct{})
	timer := time.AfterFunc(i.timeout, func() {
		close(end)
		time.AfterFunc(i.killGrace, func() { i.supervisor.killTimedOut(generation) })
	})
	return end, func() { timer.Stop() }
}

func (i *invoker) request(ctx context.Context, function, id string, e envelope) (*http.Request, error) {
	body := []byte(encode(e))
	target := handlerURL(i.supervisor.port) + "/" + url.PathEscape(function)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("function %s: %w", function, err)
	}
	if i.chunked {
		request.ContentLength = -1
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("User-Agent", userAgent)
	stampInvocation(request.Header, id)
	return request, nil
}

// stampInvocation adds the headers of every request to the handler, replacing a client's.
func stampInvocation(header http.Header, id string) {
	setAs(header, "X-Azure-Functions-HostVersion", hostVersion)
	setAs(header, "X-Azure-Functions-InvocationId", id)
}

// setAs sets a header in the real host's spelling, which need not be the canonical one.
func setAs(header http.Header, name, value string) {
	header.Del(name)
	header[name] = []string{value}
}

func (i *invoker) send(request *http.Request) (reply, error) {
	response, err := i.client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	if err != nil {
		return reply{}, fmt.Errorf("read the answer: %w", err)
	}
	if len(body) > maxReply {
		return reply{}, fmt.Errorf("the answer is larger than %d bytes", maxReply)
	}
	return reply{status: response.StatusCode, contentType: response.Header.Get("Content-Type"), body: body}, nil
}
