package outbound

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/outbox"
)

// maxBody bounds a signed body, in bytes.
const maxBody = 16 << 20

// caller signs requests and refuses redirects.
type caller struct {
	next http.RoundTripper
	keys outbox.SigningKeys // nil for none
	host string             // of the target
	now  func() time.Time
}

// RoundTrip implements [http.RoundTripper].
func (c *caller) RoundTrip(request *http.Request) (*http.Response, error) {
	signed, err := c.sign(request)
	if err != nil {
		closeBody(request)
		return nil, err
	}
	response, err := c.next.RoundTrip(signed)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 300 || response.StatusCode >= 400 {
		return response, nil
	}
	_ = response.Body.Close() // its body is not needed
	return nil, fmt.Errorf("%s answers %d and leads to %s: %w", c.host, response.StatusCode, leadsTo(response), ErrRedirect)
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (c *caller) CloseIdleConnections() { closeIdle(c.next) }

// leadsTo returns the host in a Location header; the rest may be secret.
func leadsTo(response *http.Response) string {
	to, err := response.Location()
	if err != nil || to.Host == "" {
		return "nowhere"
	}
	return to.Host
}

// sign adds the signatures. The caller's request is unchanged.
func (c *caller) sign(request *http.Request) (*http.Request, error) {
	if c.keys == nil {
		return request, nil
	}
	keys, err := c.keys(request.Context())
	if err != nil {
		return nil, err
	}
	var body []byte
	if request.Body != nil {
		body, err = io.ReadAll(io.LimitReader(request.Body, maxBody+1))
		if err != nil {
			return nil, fmt.Errorf("read the body that is to be signed: %w", err)
		}
		if len(body) > maxBody {
			return nil, fmt.Errorf("a body of more than %d bytes cannot be signed", maxBody)
		}
		closeBody(request)
	}
	signed := request.Clone(request.Context())
	if request.Body != nil {
		signed.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		signed.Body, _ = signed.GetBody() // never fails
		signed.ContentLength = int64(len(body))
	}
	id := cmp.Or(WebhookID(request.Header.Get(outbox.HeaderIdempotencyKey)), uuid.NewString())
	return signed, outbox.Sign(signed.Header, id, c.now(), body, keys)
}

// identified adds a token and presents a client certificate, to the target only.
type identified struct {
	target   *url.URL
	audience string // "" for no token
	token    func(ctx context.Context, audience string) (string, error)
	pools    *pools
}

// RoundTrip implements [http.RoundTripper].
func (i *identified) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != i.target.Scheme || hostOf(request.URL) != hostOf(i.target) {
		closeBody(request)
		return nil, fmt.Errorf("%w (%s)", ErrElsewhere, i.target.Host)
	}
	pool, fingerprint, err := i.pools.get(request.Context())
	if err != nil {
		closeBody(request)
		return nil, err
	}
	sent := request
	if i.audience != "" {
		token, err := i.token(request.Context(), i.audience)
		if err != nil {
			closeBody(request)
			return nil, err
		}
		sent = request.Clone(request.Context())
		sent.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := pool.RoundTrip(sent)
	if err == nil {
		note(request, i.audience, fingerprint)
	}
	return response, err
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (i *identified) CloseIdleConnections() { i.pools.close() }

// token returns a token of the app's own identity; the SDK caches it while it is valid.
func (c *Clients) token(ctx context.Context, audience string) (string, error) {
	credential, err := c.identity()
	if err == nil {
		token, tokenErr := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{audience + tokenScope}})
		if tokenErr == nil {
			return token.Token, nil
		}
		err = tokenErr
	}
	first, _, _ := strings.Cut(err.Error(), "\n") // the rest lists the other attempts
	return "", &tokenError{text: fmt.Sprintf("no token for %s: %.300s", audience, first), err: err}
}

// tokenError has a text that may be stored and displayed, unlike that of its cause.
type tokenError struct {
	text string
	err  error
}

func (e *tokenError) Error() string { return e.text }

func (e *tokenError) Unwrap() error { return e.err }

// Is reports that nothing was sent because configuration is missing.
func (e *tokenError) Is(target error) bool { return target == outbox.ErrMisconfigured }

// closeBody closes the body of a request that is not sent, as a transport has to.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// closeIdle closes the idle connections of a transport that has any.
func closeIdle(t http.RoundTripper) {
	if pool, ok := t.(interface{ CloseIdleConnections() }); ok {
		pool.CloseIdleConnections()
	}
}
