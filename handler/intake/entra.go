package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/entraid"
)

const (
	// DefaultAuthority is Microsoft Entra in the public cloud.
	DefaultAuthority = "https://login.microsoftonline.com"
	// MarketplaceCaller is the application id of the commercial marketplace, which sends webhooks.
	MarketplaceCaller = "20e940b3-4c77-4b0b-9a53-9e16a1b010a7"
	// AlertsCaller is the application id of Azure Monitor's action groups.
	AlertsCaller = "461e8683-5575-4561-ac7f-899cc907d62a"

	maxToken = 16 << 10 // bytes
	maxKeys  = 1 << 20  // bytes of a key set
	// keysTimeout bounds the request for the key set, well below a sender's patience.
	keysTimeout = 3 * time.Second
	// minKeyAge is the minimum age of a key set before it is fetched again: a stream of tokens with forged signatures
	// must not become a stream of requests to the issuer.
	minKeyAge = 30 * time.Second
)

// EntraConfig selects the accepted tokens. All but the last three are required.
type EntraConfig struct {
	// Tenant is the id of our tenant, which issues the tokens.
	Tenant string
	// Audiences are our application ids, or their URIs, for which tokens are accepted.
	Audiences []string
	// Callers are the application ids of accepted callers.
	Callers []string
	// Authority is the address of Microsoft Entra; DefaultAuthority when empty.
	Authority string
	// Client fetches the key set; one of its own when nil. A redirect of the key set is not followed.
	Client *http.Client
	// Now is the clock; time.Now when nil.
	Now func() time.Time
}

// Validate returns all errors of the configuration, joined into one.
func (c EntraConfig) Validate() error {
	var errs []error
	if _, err := entraid.Parse(c.Tenant); err != nil {
		errs = append(errs, fmt.Errorf("the tenant: %w", err))
	}
	if len(c.Audiences) == 0 || slices.Contains(c.Audiences, "") {
		errs = append(errs, errors.New("name an audience, and none that is empty"))
	}
	if len(c.Callers) == 0 {
		errs = append(errs, errors.New("name a caller"))
	}
	for _, caller := range c.Callers {
		if _, err := entraid.Parse(caller); err != nil {
			errs = append(errs, fmt.Errorf("the caller %.64q: %w", caller, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("tokens of Microsoft Entra: %w", err)
	}
	return nil
}

// Entra verifies tokens of Microsoft Entra, version 1 and 2: signature, issuer, tenant, audience, caller and life
// time. It is safe for concurrent use. Keys are fetched when a token needs an unknown one, and cached.
type Entra struct {
	config   EntraConfig
	issuers  []string
	verifier *oidc.IDTokenVerifier
}

// NewEntra checks the configuration. It does not use the network.
func NewEntra(c EntraConfig) (*Entra, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Authority = strings.TrimRight(c.Authority, "/"); c.Authority == "" {
		c.Authority = DefaultAuthority
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Tenant, c.Audiences = entraid.Normal(c.Tenant), slices.Clone(c.Audiences)
	for i, audience := range c.Audiences {
		c.Audiences[i] = entraid.Audience(audience)
	}
	client := http.Client{Timeout: keysTimeout}
	if c.Client != nil {
		client = *c.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Transport = &keyFetcher{next: client.Transport, now: c.Now}
	keys := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), &client), c.Authority+"/"+c.Tenant+"/discovery/v2.0/keys")
	return &Entra{
		config: c,
		// Version 1 and version 2, of this tenant only.
		issuers: []string{"https://sts.windows.net/" + c.Tenant + "/", c.Authority + "/" + c.Tenant + "/v2.0"},
		// Issuer and audience have several valid values each, so they are checked here.
		verifier: oidc.NewVerifier("", noting{keys}, &oidc.Config{SkipIssuerCheck: true, SkipClientIDCheck: true, SupportedSigningAlgs: []string{oidc.RS256}, Now: c.Now}),
	}, nil
}

// Authorize checks the token of a request. The error is engine.ErrUnauthorized, or another one when the keys are
// unavailable.
func (e *Entra) Authorize(ctx context.Context, r *http.Request) error {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return engine.ErrUnauthorized
	}
	var unreachable error
	verified, err := e.verifier.Verify(context.WithValue(ctx, unreachableKey{}, &unreachable), strings.TrimSpace(token))
	switch {
	case unreachable != nil:
		return fmt.Errorf("%w: %w", errUnavailable, unreachable)
	case err != nil:
		return fmt.Errorf("%w: %w", engine.ErrUnauthorized, err)
	}
	claims := map[string]any{}
	if err := verified.Claims(&claims); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrUnauthorized, err)
	}
	if err := standard(claims); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrUnauthorized, err)
	}
	caller, _ := claims["appid"].(string) // version 1
	if verified.Issuer == e.issuers[1] {
		caller, _ = claims["azp"].(string)
	}
	tenant, _ := claims["tid"].(string)
	switch {
	case !slices.Contains(e.issuers, verified.Issuer), !entraid.Same(tenant, e.config.Tenant):
		return fmt.Errorf("%w: a token of another tenant", engine.ErrUnauthorized)
	case len(verified.Audience) != 1 || !slices.Contains(e.config.Audiences, entraid.Audience(verified.Audience[0])):
		return fmt.Errorf("%w: a token for somebody else", engine.ErrUnauthorized)
	case !slices.ContainsFunc(e.config.Callers, func(c string) bool { return entraid.Same(c, caller) }):
		return fmt.Errorf("%w: a token in another's name", engine.ErrUnauthorized)
	}
	return nil
}

// standard checks that the deciding claims are those of the standard. The verifier matches their names in any letter
// case and reads times that are texts, and a tenant can add its own claims.
func standard(claims map[string]any) error {
	for name := range claims {
		for _, decides := range []string{"iss", "aud", "exp", "nbf", "iat", "tid", "appid", "azp"} {
			if name != decides && strings.EqualFold(name, decides) {
				return fmt.Errorf("the claim %q is not %q", name, decides)
			}
		}
	}
	for _, name := range []string{"exp", "nbf", "iat"} {
		if at, ok := claims[name]; ok {
			if _, number := at.(float64); !number {
				return fmt.Errorf("the claim %s is no number", name)
			}
		}
	}
	return nil
}

// unreachableKey finds, in a context, the place for the reason why keys could not be fetched: the verifier itself does not
// tell that from a bad signature.
type unreachableKey struct{}

// noting records why keys could not be fetched.
type noting struct{ keys oidc.KeySet }

// VerifySignature implements oidc.KeySet.
func (n noting) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := n.keys.VerifySignature(ctx, token)
	if errors.Is(err, errKeys) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		if note, ok := ctx.Value(unreachableKey{}).(*error); ok {
			*note = err
		}
	}
	return payload, err
}

// errKeys marks a key set that could not be fetched.
var errKeys = errors.New("the issuer's keys cannot be had")

// keyFetcher fetches the key set, when the known keys do not match a signature: for forgeries, and for tokens by a
// new key. Between two fetches it cannot distinguish them, and returns that instead of a refusal.
type keyFetcher struct {
	next http.RoundTripper // http.DefaultTransport when nil
	now  func() time.Time

	mu sync.Mutex
	at time.Time
}

// RoundTrip implements http.RoundTripper.
func (k *keyFetcher) RoundTrip(req *http.Request) (*http.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if age := k.now().Sub(k.at); age < minKeyAge {
		return nil, fmt.Errorf("%w: they were fetched %v ago", errKeys, age)
	}
	next := k.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errKeys, err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close() // nothing was read of it
		return nil, fmt.Errorf("%w: status %d", errKeys, resp.StatusCode)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxKeys), resp.Body}
	k.at = k.now()
	return resp, nil
}
