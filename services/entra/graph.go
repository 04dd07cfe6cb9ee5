package entra

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// DefaultGraph is Microsoft Graph of the public cloud.
const DefaultGraph = "https://graph.microsoft.com"

// Graph manages the passwords of applications. Its identity needs the application permission
// Application.ReadWrite.OwnedBy and has to own the applications. It is safe for concurrent use.
type Graph struct {
	endpoint string
	pipeline runtime.Pipeline
	addRetry policy.RetryOptions // repeats only rejected requests: each applied one makes a password
}

// NewGraph returns a client of Microsoft Graph at endpoint, DefaultGraph when "". It sends no request yet. opts may be
// nil; bodies are never logged, regardless of opts.
func NewGraph(endpoint string, credential azcore.TokenCredential, opts *policy.ClientOptions) (*Graph, error) {
	if endpoint == "" {
		endpoint = DefaultGraph
	}
	endpoint, err := address("open graph", endpoint)
	if err != nil {
		return nil, err
	}
	if credential == nil {
		return nil, errors.New("open graph: no credential")
	}
	o := options(opts)
	auth := runtime.NewBearerTokenPolicy(credential, []string{endpoint + "/.default"}, nil)
	addRetry := o.Retry
	addRetry.ShouldRetry = func(resp *http.Response, err error) bool {
		return err == nil && resp.StatusCode == http.StatusTooManyRequests
	}
	pipeline := runtime.NewPipeline("entra", "v1", runtime.PipelineOptions{PerRetry: []policy.Policy{auth}}, o)
	return &Graph{endpoint: endpoint, pipeline: pipeline, addRetry: addRetry}, nil
}

// credentialDocument is a password as Graph writes it. Its hint is left out: that is the beginning of the value.
type credentialDocument struct {
	KeyID       string    `json:"keyId"`
	DisplayName string    `json:"displayName"`
	Start       time.Time `json:"startDateTime"`
	End         time.Time `json:"endDateTime"`
	SecretText  wipeable  `json:"secretText"`
}

func (d credentialDocument) password() Password {
	return Password{KeyID: d.KeyID, DisplayName: d.DisplayName, Start: d.Start.UTC(), End: d.End.UTC()}
}

// wipeable is JSON text in its own bytes, which can be cleared.
type wipeable []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *wipeable) UnmarshalText(text []byte) error {
	*w = bytes.Clone(text)
	return nil
}

// Passwords lists the passwords of an application, those of other creators included. Recent ones may be missing.
func (g *Graph) Passwords(ctx context.Context, applicationID string) ([]Password, error) {
	var document struct {
		Credentials []credentialDocument `json:"passwordCredentials"`
	}
	if err := g.do(ctx, http.MethodGet, applicationID, "?$select=passwordCredentials", nil, &document); err != nil {
		return nil, fmt.Errorf("list passwords of application %.64s: %w", applicationID, err)
	}
	var passwords []Password
	for _, c := range document.Credentials {
		passwords = append(passwords, c.password())
	}
	return passwords, nil
}

// AddPassword makes Graph create a password that ends at end, and returns its value, which cannot be read again: the
// caller stores it and then clears it. Each call makes one; only a request that was rejected for its rate (429) is
// repeated. After ErrOutcomeUnknown a password without a known value may exist: list, search for the display name,
// remove it.
func (g *Graph) AddPassword(ctx context.Context, applicationID, displayName string, end time.Time) (Password, []byte, error) {
	body := map[string]any{"passwordCredential": map[string]any{
		"displayName": displayName, "endDateTime": end.UTC().Format(time.RFC3339),
	}}
	var document credentialDocument
	ctx = policy.WithRetryOptions(ctx, g.addRetry)
	err := g.do(ctx, http.MethodPost, applicationID, "/addPassword", body, &document)
	if err == nil && (document.KeyID == "" || len(document.SecretText) == 0) {
		err = fmt.Errorf("%w: the answer lacks keyId or secretText", ErrOutcomeUnknown)
	}
	if err != nil {
		clear(document.SecretText)
		return Password{}, nil, fmt.Errorf("add password %q to application %.64s: %w", displayName, applicationID, err)
	}
	return document.password(), document.SecretText, nil
}

// RemovePassword removes a password. A missing one counts as removed.
func (g *Graph) RemovePassword(ctx context.Context, applicationID, keyID string) error {
	err := g.do(ctx, http.MethodPost, applicationID, "/removePassword", map[string]any{"keyId": keyID}, nil)
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) {
		// Graph also answers like this when an earlier request, whose answer was lost, has removed it.
		passwords, listErr := g.Passwords(ctx, applicationID)
		if listErr == nil && !slices.ContainsFunc(passwords, func(p Password) bool { return p.KeyID == keyID }) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("remove password %s of application %.64s: %w", keyID, applicationID, err)
	}
	return nil
}

// do sends one request about an application. body may be nil, and so may into.
func (g *Graph) do(ctx context.Context, method, applicationID, action string, body, into any) error {
	if err := CheckApplicationID(applicationID); err != nil {
		return err
	}
	req, err := runtime.NewRequest(ctx, method, g.endpoint+"/v1.0/applications(appId='"+applicationID+"')"+action)
	if err != nil {
		return err
	}
	if body != nil {
		if err := runtime.MarshalAsJSON(req, body); err != nil {
			return err
		}
	}
	resp, err := g.pipeline.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return refusal(resp)
	}
	if into == nil {
		return nil
	}
	text, err := runtime.Payload(resp)
	defer clear(text)
	if err != nil {
		return fmt.Errorf("%w: read the answer: %w", ErrOutcomeUnknown, err)
	}
	if json.Unmarshal(text, into) != nil {
		// The decoder's error may quote the answer.
		return fmt.Errorf("%w: the answer cannot be decoded", ErrOutcomeUnknown)
	}
	return nil
}

// maxErrorText bounds each quoted part of a refusal.
const maxErrorText = 300

// refusal converts a refusal to one of this package's errors. The SDK's own error is not used: it prints whole answers.
func refusal(resp *http.Response) error {
	var body struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	text := fmt.Sprintf("status %d", resp.StatusCode)
	if payload, err := runtime.Payload(resp); err == nil && json.Unmarshal(payload, &body) == nil {
		for _, part := range []string{body.Error.Code, body.Error.Message} {
			if part != "" {
				text += ": " + shorten(part)
			}
		}
	}
	return fmt.Errorf("%w: %s", kindOf(resp.StatusCode), text)
}

// shorten bounds text from the other side.
func shorten(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + "..."
}
