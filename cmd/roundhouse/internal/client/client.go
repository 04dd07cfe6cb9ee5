// Package client calls the HTTP API of the handler (docs/api.md). It sends a key or a token only to the configured
// address, over https unless that is this machine, and no error contains one. It owns no storage keys.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/vibedata/roundhouse/internal/keytext"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

// maxAnswer bounds an answer in bytes: a page of a hundred orchestrations with their rounds fits.
const maxAnswer = 64 << 20

// Config configures the address of the API and the caller's credentials.
type Config struct {
	// URL is the address of the app, without /api; https unless it is on this machine.
	URL string
	// Key is a function key; "" sends none.
	Key string
	// Credential provides a token for Scope; nil sends none.
	Credential azcore.TokenCredential
	Scope      string
	// Transport sends the requests; nil means one of its own.
	Transport http.RoundTripper
}

// Client calls the API. Make one with New; it is safe for concurrent use.
type Client struct {
	base   *url.URL
	config Config
	http   *http.Client
}

// New makes a client. It sends no request yet.
func New(c Config) (*Client, error) {
	base, err := url.Parse(c.URL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, errors.New("the address of the API is no http or https URL")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("the address of the API has a user, a query or a fragment: give a key with --key or ROUNDHOUSE_KEY")
	case base.Scheme == "http" && !Loopback(base):
		return nil, errors.New("the address of the API is another machine's: use https")
	}
	c.Key = strings.TrimSpace(c.Key)
	if err := keytext.Plain(c.Key); err != nil {
		return nil, fmt.Errorf("the function key of --key or ROUNDHOUSE_KEY: %w", err)
	}
	base.Path = strings.TrimSuffix(strings.TrimRight(base.Path, "/"), "/api")
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	// The API does not redirect; following a redirect would send the key elsewhere.
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base, c, &http.Client{Transport: c.Transport, CheckRedirect: refuse}}, nil
}

// Loopback reports whether an address is on this machine.
func Loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// URL returns the address of the API.
func (c *Client) URL() *url.URL { return c.base }

// Request is a request to the API. Only Method and Path are required.
type Request struct {
	Method string
	// Path are the unescaped segments after /api.
	Path  []string
	Query url.Values
	// Body is sent as JSON; nil sends none.
	Body any
	// IfMatch and IdempotencyKey are the headers, "" for none.
	IfMatch, IdempotencyKey string
	// CorrelationID identifies the request in the log of the API, "" lets the API choose.
	CorrelationID string
}

// Answer is an answer of the API.
type Answer struct {
	Status int
	// Data is the data of the envelope, or the whole body without an envelope.
	Data json.RawMessage
	// ETag is the version of Data, "" for none.
	ETag string
	// Date is the clock of the service, zero when it is missing.
	Date time.Time
}

// Get sends a GET request.
func (c *Client) Get(ctx context.Context, query url.Values, path ...string) (Answer, error) {
	return c.Do(ctx, Request{Method: http.MethodGet, Path: path, Query: query})
}

// Do sends a request. The errors are *Error for a refusal of the API, and ErrUnreachable. An answer is returned with
// an *Error, too: a failed health check has its report in it.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return Answer{}, c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return Answer{}, c.unreachable(ctx, err)
	case len(body) > maxAnswer:
		return Answer{}, fmt.Errorf("the answer has more than %d MiB: ask for less with --limit", maxAnswer>>20)
	}
	return decode(resp, body)
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	var body io.Reader
	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if err != nil {
			return nil, fmt.Errorf("the body is no JSON: %w", err)
		}
		if err := payload.Check(text); err != nil {
			return nil, fmt.Errorf("the body of the request is %w", err)
		}
		body = bytes.NewReader(text)
	}
	target := c.base.JoinPath("api").String()
	if c.config.Key != "" && c.config.Credential == nil && !probe(r.Path) {
		target = c.base.JoinPath("api", "machine").String() // where the host accepts keys
	}
	for _, segment := range r.Path {
		if segment == "" {
			return nil, &Error{Status: http.StatusNotFound, Code: "NotFound", Message: "There is nothing without a name."}
		}
		target += "/" + urlpath.Escape(segment)
	}
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, c.base.Host, err)
	}
	for name, value := range map[string]string{"x-functions-key": c.config.Key, "If-Match": r.IfMatch, "Idempotency-Key": r.IdempotencyKey, "x-correlation-id": r.CorrelationID} {
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, &Error{Status: http.StatusBadRequest, Code: "InvalidHeader", Target: name, Message: "The value of " + name + " has a line end or another control character: give it without."}
		}
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	return req, c.authorize(ctx, req)
}

// probe reports whether a path is that of a probe, which is public: it has no twin for keys.
func probe(path []string) bool {
	return len(path) == 2 && path[0] == "health" && (path[1] == "live" || path[1] == "ready")
}

func (c *Client) authorize(ctx context.Context, req *http.Request) error {
	if c.config.Credential == nil {
		return nil
	}
	token, err := c.config.Credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{c.config.Scope}})
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return &Error{Status: http.StatusUnauthorized, Code: "NoToken", Message: fmt.Sprintf("No token for %s: %.300s. Sign in, with az login for example.", c.config.Scope, first)}
	}
	req.Header.Set("Authorization", "Bearer "+token.Token)
	return nil
}

func (c *Client) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the URL repeats the address, and can be long
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.base.Redacted(), err)
}

// decode unwraps the envelope of an answer.
func decode(resp *http.Response, body []byte) (Answer, error) {
	a := Answer{Status: resp.StatusCode, ETag: resp.Header.Get("ETag"), Data: body}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		a.Date = date
	}
	var e struct {
		Status string          `json:"status"`
		Data   json.RawMessage `json:"data"`
		Error  *Error          `json:"error"`
	}
	enveloped := json.Unmarshal(body, &e) == nil && (e.Status == "Succeeded" || e.Status == "Failed")
	if enveloped {
		a.Data = e.Data
	}
	switch {
	case resp.StatusCode < http.StatusMultipleChoices && enveloped:
		return a, nil
	case resp.StatusCode < http.StatusMultipleChoices && json.Valid(body):
		return a, nil
	case !enveloped || e.Error == nil:
		return a, foreign(resp)
	}
	e.Error.Status = resp.StatusCode
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.Error.RetryAfter = time.Duration(seconds) * time.Second
	}
	return a, e.Error
}
