package entra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

// DefaultLogin is the login of the public cloud.
const DefaultLogin = "https://login.microsoftonline.com"

// Login tests whether passwords are accepted, by requesting a token (client credentials) and discarding it. It is safe
// for concurrent use.
type Login struct {
	tokenURL, scope string
	pipeline        runtime.Pipeline
}

// tenantSyntax is that of a tenant id or of a domain.
var tenantSyntax = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.-]{0,253}$`)

// NewLogin returns a client of the login at authority, DefaultLogin when "", of the tenant with the applications (its
// id or a domain of it), for tokens for the Graph at resource, DefaultGraph when "". It sends no request yet. opts may
// be nil; bodies are never logged, regardless of opts.
func NewLogin(authority, tenant, resource string, opts *policy.ClientOptions) (*Login, error) {
	if authority == "" {
		authority = DefaultLogin
	}
	if resource == "" {
		resource = DefaultGraph
	}
	authority, authorityErr := address("open login: authority", authority)
	resource, resourceErr := address("open login: resource", resource)
	var tenantErr error
	if !tenantSyntax.MatchString(tenant) {
		tenantErr = fmt.Errorf("open login: %w: the tenant must be an id or a domain", ErrInvalid)
	}
	if err := errors.Join(authorityErr, resourceErr, tenantErr); err != nil {
		return nil, err
	}
	return &Login{
		tokenURL: authority + "/" + tenant + "/oauth2/v2.0/token", scope: resource + "/.default",
		pipeline: runtime.NewPipeline("entra", "v1", runtime.PipelineOptions{}, options(opts)),
	}, nil
}

// hopeless are the permanent error codes of the login.
var hopeless = []int{
	90002,   // no such tenant
	7000112, // the application is disabled
	7000222, // the password has expired
}

// Try returns nil when the password gets a token. Otherwise it returns ErrNotAccepted, which may change within minutes
// for a new one; ErrInvalid for a permanent refusal; ErrThrottled or ErrOutcomeUnknown without an answer of the login.
func (l *Login) Try(ctx context.Context, applicationID string, password []byte) error {
	if err := l.try(ctx, applicationID, password); err != nil {
		return fmt.Errorf("log application %.64s in: %w", applicationID, err)
	}
	return nil
}

func (l *Login) try(ctx context.Context, applicationID string, password []byte) error {
	if err := CheckApplicationID(applicationID); err != nil {
		return err
	}
	req, err := runtime.NewRequest(ctx, http.MethodPost, l.tokenURL)
	if err != nil {
		return err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {applicationID},
		"client_secret": {string(password)}, "scope": {l.scope}}
	body := streaming.NopCloser(strings.NewReader(form.Encode()))
	if err := req.SetBody(body, "application/x-www-form-urlencoded"); err != nil {
		return err
	}
	resp, err := l.pipeline.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		// The token is not needed; the rest of the answer is read so that its connection can be used again.
		_, _ = io.Copy(io.Discard, resp.Body)
		return nil
	}
	return loginRefusal(resp)
}

// loginRefusal returns only the codes of a refusal: its texts come from a service that saw the password.
func loginRefusal(resp *http.Response) error {
	var body struct {
		Codes []int `json:"error_codes"`
	}
	if payload, err := runtime.Payload(resp); err != nil || json.Unmarshal(payload, &body) != nil {
		body.Codes = nil
	}
	kind := kindOf(resp.StatusCode)
	switch {
	case slices.ContainsFunc(body.Codes, func(code int) bool { return slices.Contains(hopeless, code) }):
		kind = ErrInvalid
	case resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnauthorized:
		kind = ErrNotAccepted
	}
	text := fmt.Sprintf("status %d", resp.StatusCode)
	for i, code := range body.Codes {
		if i == 5 {
			break
		}
		text += fmt.Sprintf(": AADSTS%d", code)
	}
	return fmt.Errorf("%w: %s", kind, text)
}
