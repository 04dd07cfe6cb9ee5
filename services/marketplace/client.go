package marketplace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// The public cloud's endpoints and the audience of tokens.
const (
	// DefaultEndpoint is the marketplace's API.
	DefaultEndpoint = "https://marketplaceapi.microsoft.com/api"
	// DefaultManagement is Azure Resource Manager.
	DefaultManagement = "https://management.azure.com"
	// Resource is the marketplace's application id: the audience of tokens for it, and the caller of its webhooks.
	Resource = "20e940b3-4c77-4b0b-9a53-9e16a1b010a7"

	saasVersion        = "2018-08-31"
	applicationVersion = "2021-07-01"
	moduleName         = "marketplace"
	moduleVersion      = "v1.0.0"

	// defaultTryTimeout bounds one request: an acknowledgement counts for ten seconds only.
	defaultTryTimeout = 5 * time.Second
)

// Config has the addresses of the services. Credential is required.
type Config struct {
	// Endpoint and Management are URLs without a slash at the end; DefaultEndpoint and DefaultManagement when empty.
	Endpoint, Management string
	// Credential is the identity of the publisher. For the marketplace it is the app registration of the offer.
	Credential azcore.TokenCredential
	// Options tune transport and retries. Bodies are never logged, regardless of them.
	Options azcore.ClientOptions
}

// Client calls the services. It is safe for concurrent use.
type Client struct {
	endpoint, management string
	saas, arm            runtime.Pipeline
}

// New validates the configuration. It sends no request yet.
func New(c Config) (*Client, error) {
	if c.Endpoint == "" {
		c.Endpoint = DefaultEndpoint
	}
	if c.Management == "" {
		c.Management = DefaultManagement
	}
	errs := []error{checkURL("Endpoint", c.Endpoint), checkURL("Management", c.Management)}
	if c.Credential == nil {
		errs = append(errs, errors.New("no credential"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("open the marketplace: %w", err)
	}
	c.Options.Logging.IncludeBody = false
	if c.Options.Retry.TryTimeout == 0 {
		c.Options.Retry.TryTimeout = defaultTryTimeout
	}
	pipeline := func(scope string) runtime.Pipeline {
		bearer := runtime.NewBearerTokenPolicy(c.Credential, []string{scope}, nil)
		options := c.Options
		return runtime.NewPipeline(moduleName, moduleVersion, runtime.PipelineOptions{PerRetry: []policy.Policy{bearer}}, &options)
	}
	return &Client{endpoint: strings.TrimSuffix(c.Endpoint, "/"), management: strings.TrimSuffix(c.Management, "/"),
		saas: pipeline(Resource + "/.default"), arm: pipeline("https://management.azure.com/.default")}, nil
}

func checkURL(name, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s must be https://{host}{path} and nothing more", name)
	}
	return nil
}

// Operation reads an operation of a subscription.
func (c *Client) Operation(ctx context.Context, subscriptionID, operationID string) (Operation, error) {
	var o Operation
	err := c.call(ctx, "read", http.MethodGet, nil, &o, "subscriptions", subscriptionID, "operations", operationID)
	return o, err
}

// Pending lists the operations of a subscription that wait for an acknowledgement.
func (c *Client) Pending(ctx context.Context, subscriptionID string) ([]Operation, error) {
	var list struct {
		Operations []Operation `json:"operations"`
	}
	err := c.call(ctx, "list", http.MethodGet, nil, &list, "subscriptions", subscriptionID, "operations")
	return list.Operations, err
}

// Subscription reads a subscription.
func (c *Client) Subscription(ctx context.Context, subscriptionID string) (Subscription, error) {
	var s Subscription
	err := c.call(ctx, "read", http.MethodGet, nil, &s, "subscriptions", subscriptionID)
	return s, err
}

// Acknowledge answers an operation; ErrConflict means that it is concluded already.
func (c *Client) Acknowledge(ctx context.Context, subscriptionID, operationID string, a Acknowledgement) error {
	return c.call(ctx, "acknowledge", http.MethodPatch, a, nil, "subscriptions", subscriptionID, "operations", operationID)
}

// Activate starts the billing of a subscription whose instance is ready; on an active one it does nothing.
func (c *Client) Activate(ctx context.Context, subscriptionID, planID string, quantity Quantity) error {
	body := struct {
		PlanID   string   `json:"planId"`
		Quantity Quantity `json:"quantity"`
	}{planID, quantity}
	return c.call(ctx, "activate", http.MethodPost, body, nil, "subscriptions", subscriptionID, "activate")
}

// Application reads a managed application by its ARM id, which begins with a slash.
func (c *Client) Application(ctx context.Context, id string) (Application, error) {
	var a Application
	address, err := join(c.management, strings.Split(strings.TrimPrefix(id, "/"), "/"), applicationVersion)
	if err == nil {
		err = send(ctx, c.arm, http.MethodGet, address, nil, &a)
	}
	if err != nil {
		err = fmt.Errorf("read application %s: %w", id, err)
	}
	return a, err
}

func (c *Client) call(ctx context.Context, what, method string, body, answer any, path ...string) error {
	address, err := join(c.endpoint+"/saas", path, saasVersion)
	if err == nil {
		err = send(ctx, c.saas, method, address, body, answer)
	}
	if err != nil {
		return fmt.Errorf("%s %s of the marketplace: %w", what, strings.Join(path, "/"), err)
	}
	return nil
}

// join escapes each segment: ids are outside data, and must not address another resource.
func join(base string, segments []string, version string) (string, error) {
	for _, s := range segments {
		if s == "" || s == "." || s == ".." {
			return "", fmt.Errorf("%w: an id has the segment %q", ErrInvalid, s)
		}
		base += "/" + url.PathEscape(s)
	}
	return base + "?api-version=" + version, nil
}

func send(ctx context.Context, pipeline runtime.Pipeline, method, address string, body, answer any) error {
	req, err := runtime.NewRequest(ctx, method, address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if body != nil {
		if err := runtime.MarshalAsJSON(req, body); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	resp, err := pipeline.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer resp.Body.Close()
	if !runtime.HasStatusCode(resp, http.StatusOK, http.StatusAccepted, http.StatusNoContent) {
		return refusal(resp)
	}
	if answer == nil {
		return nil
	}
	if err := runtime.UnmarshalAsJSON(resp, answer); err != nil {
		return fmt.Errorf("%w: the answer cannot be read: %w", ErrUnavailable, err)
	}
	return nil
}
