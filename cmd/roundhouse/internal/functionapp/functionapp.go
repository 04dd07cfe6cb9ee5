// Package functionapp reads a deployed Function App through Azure Resource Manager and compares it with a program's
// requirements: settings, roles of its identity, functions, host.json, sign-in.
//
// It changes nothing in Azure. No finding and no error contains the value of a setting. A part that the caller may
// not read is a finding, not a failure. Every problem has a command that fixes it. The package owns no storage keys.
package functionapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	armruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/arm/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

const (
	// maxAnswer bounds one answer, and maxPages a list.
	maxAnswer = 8 << 20
	maxPages  = 50
)

// ErrNotApp: an id is not that of a Function App or of a slot of one.
var ErrNotApp = errors.New("this is no id of a Function App: use /subscriptions/S/resourceGroups/G/providers/Microsoft.Web/sites/NAME")

// Error is a refusal of Azure Resource Manager.
type Error struct {
	// Status is the HTTP status, and Code Azure's own code.
	Status        int
	Code, Message string
}

// Error contains the status, and Azure's message.
func (e *Error) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s %s: %.300s", e.Status, http.StatusText(e.Status), e.Code, e.Message))
}

// Config configures the connection to Azure Resource Manager. Credential is required.
type Config struct {
	Credential azcore.TokenCredential
	// Endpoint is the address of Azure Resource Manager; "" for the public cloud's.
	Endpoint string
	// Transport sends requests; nil for the default one.
	Transport policy.Transporter
}

// Client reads from Azure Resource Manager.
type Client struct {
	endpoint string
	pipeline runtime.Pipeline
}

// New makes a client. It sends no request yet.
func New(c Config) (*Client, error) {
	services := cloud.AzurePublic
	endpoint := services.Services[cloud.ResourceManager].Endpoint
	if c.Endpoint != "" {
		endpoint = strings.TrimSuffix(c.Endpoint, "/")
		services.Services = map[cloud.ServiceName]cloud.ServiceConfiguration{cloud.ResourceManager: {Endpoint: endpoint, Audience: endpoint}}
	}
	options := &arm.ClientOptions{DisableRPRegistration: true, ClientOptions: policy.ClientOptions{Cloud: services, Transport: c.Transport}}
	pipeline, err := armruntime.NewPipeline("roundhouse", "v0", c.Credential, runtime.PipelineOptions{}, options)
	if err != nil {
		return nil, fmt.Errorf("reach Azure Resource Manager: %w", err)
	}
	return &Client{endpoint: endpoint, pipeline: pipeline}, nil
}

// get reads the resource at a path, with a query that contains the version of the API.
func (c *Client) get(ctx context.Context, path, query string, into any) error {
	return c.ask(ctx, http.MethodGet, c.endpoint+path+"?"+query, into)
}

// list reads all pages of a list.
func list[T any](ctx context.Context, c *Client, path, query string) ([]T, error) {
	var all []T
	next := c.endpoint + path + "?" + query
	for range maxPages {
		var page struct {
			Value    []T
			NextLink string
		}
		if err := c.ask(ctx, http.MethodGet, next, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Value...)
		if page.NextLink == "" {
			return all, nil
		}
		if !strings.HasPrefix(page.NextLink, c.endpoint+"/") {
			return nil, errors.New("the next page is said to be at another address")
		}
		next = page.NextLink
	}
	return nil, fmt.Errorf("the list has more than %d pages", maxPages)
}

func (c *Client) ask(ctx context.Context, method, address string, into any) error {
	request, err := runtime.NewRequest(ctx, method, address)
	if err != nil {
		return err
	}
	runtime.SkipBodyDownload(request)
	answer, err := c.pipeline.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(body) > maxAnswer:
		return fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case answer.StatusCode != http.StatusOK:
		return refusal(answer.StatusCode, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return errors.New("the answer is not the JSON that was expected") // which may contain a setting
	}
	return nil
}

func refusal(status int, body []byte) error {
	var said struct {
		Error struct{ Code, Message string }
	}
	_ = json.Unmarshal(body, &said) // another document yields no message
	return &Error{Status: status, Code: said.Error.Code, Message: said.Error.Message}
}
