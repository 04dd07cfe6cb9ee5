package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/internal/urlpath"
)

// maxAnswer bounds an answer of the API, in bytes. A page of a list is far below, and so is a message that fits a
// queue.
const maxAnswer = 16 << 20

// errAnswer means that the API's answer is unreadable.
var errAnswer = errors.New("the API has answered in a way that cannot be read")

// identifying are the headers of a request by which the API identifies the sender, its origin and its trace. Only
// programs send the key of a local host as such, and elsewhere the API ignores it.
var identifying = []string{"X-Ms-Client-Principal", "X-Functions-Key", "X-Forwarded-Host", "X-Forwarded-For", "Origin", "Sec-Fetch-Site", "Traceparent", "Tracestate"}

// client sends requests to the API in the name of the browser's user. Several goroutines can use it.
type client struct {
	api    http.Handler
	host   string
	header http.Header
	// seen records the answers to GET; may be nil.
	seen *seen
}

// unnoted returns a client that does not record its answers.
func (c *client) unnoted() *client {
	out := *c
	out.seen = nil
	return &out
}

// client returns the client of a request. The key of the local host replaces the cookie that represents it.
func (c *Console) client(r *http.Request) *client {
	out := &client{api: c.config.API, host: r.Host, header: http.Header{}}
	for _, name := range identifying {
		for _, value := range r.Header.Values(name) {
			out.header.Add(name, value)
		}
	}
	if c.signedInHere(r) {
		out.header.Set("x-functions-key", c.config.Control.LocalKey)
	}
	return out
}

// apiError is the API's answer when it refuses or fails.
type apiError struct {
	Status        int
	Code          string
	Message       Text
	CorrelationID string
	// RetryAfter is the header of the answer, "" for none.
	RetryAfter string
}

// Error returns the sentence of the answer.
func (e *apiError) Error() string { return string(e.Message) }

// asAPIError finds the answer of the API in an error.
func asAPIError(err error) (*apiError, bool) { return errors.AsType[*apiError](err) }

// status returns the status of an error of the API, 0 for others.
func status(err error) int {
	if e, ok := asAPIError(err); ok {
		return e.Status
	}
	return 0
}

// get requests a resource and decodes its data into out.
func (c *client) get(ctx context.Context, path string, query url.Values, out any) error {
	_, err := c.send(ctx, http.MethodGet, path, query, nil, nil, out)
	return err
}

// document requests a resource without an envelope, and decodes it into out. These statuses are accepted.
func (c *client) document(ctx context.Context, path string, out any, statuses ...int) error {
	operation := http.MethodGet + " " + path
	_, body, err := c.fetch(ctx, path, statuses...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s: %w: %w", operation, errAnswer, err)
	}
	return nil
}

// send sends a request, with a body as JSON unless it is nil, and decodes the data of the answer into out unless that
// is nil.
func (c *client) send(ctx context.Context, method, path string, query url.Values, header http.Header, body, out any) (http.Header, error) {
	operation := method + " " + path
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("%s: %w", operation, err)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	a, err := c.do(ctx, method, path, header, text)
	if err != nil {
		return nil, err
	}
	e, err := a.envelope(operation)
	if err != nil {
		return a.header, err
	}
	if method == http.MethodGet {
		c.seen.note(path, a, e)
	}
	return a.header, a.decode(operation, e, out)
}

// post sends a text as it is, and decodes the data of the answer into out.
func (c *client) post(ctx context.Context, path string, text []byte, out any) error {
	operation := http.MethodPost + " " + path
	a, err := c.do(ctx, http.MethodPost, path, nil, text)
	if err != nil {
		return err
	}
	e, err := a.envelope(operation)
	if err != nil {
		return err
	}
	return a.decode(operation, e, out)
}

// fetch requests a resource without an envelope, and returns it as it is. These statuses are accepted.
func (c *client) fetch(ctx context.Context, path string, statuses ...int) (http.Header, []byte, error) {
	operation := http.MethodGet + " " + path
	a, err := c.do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	var e envelope
	_ = json.Unmarshal(a.body.Bytes(), &e) // stays empty for other texts
	if !slices.Contains(statuses, a.status) || e.Error != nil {
		return nil, nil, cmp.Or(a.decode(operation, e, nil), fmt.Errorf("%s: %w (status %d)", operation, errAnswer, a.status))
	}
	return a.header, a.body.Bytes(), nil
}

// do sends a request to a path with its query, whose text is JSON, or nil for none.
func (c *client) do(ctx context.Context, method, path string, header http.Header, text []byte) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	r.Host, r.RequestURI, r.Header = c.host, path, c.header.Clone()
	for name, values := range header {
		r.Header[name] = values
	}
	if text != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	a := &answer{header: http.Header{}}
	c.api.ServeHTTP(a, r)
	return a, nil
}

// row returns the path of a row of an engine.
func row(collection, engine, rowKey string) string {
	return "/api/" + collection + "/" + urlpath.Escape(engine) + "/" + urlpath.Escape(rowKey)
}

// answer receives the API's answer.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements [http.ResponseWriter]. It refuses more than maxAnswer.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.body.Len()+len(p) > maxAnswer {
		return 0, io.ErrShortBuffer
	}
	return a.body.Write(p)
}

// envelope is the body of an answer.
type envelope struct {
	CorrelationID string          `json:"correlationId"`
	Data          json.RawMessage `json:"data"`
	Error         *struct {
		Code    string `json:"code"`
		Message Text   `json:"message"`
		Target  Text   `json:"target"`
	} `json:"error"`
}

func (a *answer) envelope(operation string) (e envelope, err error) {
	if err := json.Unmarshal(a.body.Bytes(), &e); err != nil {
		return e, fmt.Errorf("%s: %w (status %d)", operation, errAnswer, a.status)
	}
	return e, nil
}

func (a *answer) decode(operation string, e envelope, out any) error {
	switch {
	case e.Error != nil:
		text := e.Error.Message
		if e.Error.Target != "" && !strings.Contains(string(text), string(e.Error.Target)) {
			text = e.Error.Target + ": " + text
		}
		return &apiError{Status: a.status, Code: e.Error.Code, Message: text, CorrelationID: e.CorrelationID, RetryAfter: a.header.Get("Retry-After")}
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(e.Data, out); err != nil {
		return fmt.Errorf("%s: %w: %w", operation, errAnswer, err)
	}
	return nil
}
