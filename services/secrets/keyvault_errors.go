package secrets

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// byStatus maps the answers of Key Vault to errors. For any other answer, the outcome is unknown.
var byStatus = map[int]error{
	http.StatusBadRequest:            ErrInvalid,
	http.StatusUnauthorized:          ErrForbidden,
	http.StatusForbidden:             ErrForbidden,
	http.StatusNotFound:              ErrNotFound,
	http.StatusMethodNotAllowed:      ErrInvalid,
	http.StatusConflict:              ErrThrottled, // another change of the same secret is in progress
	http.StatusRequestEntityTooLarge: ErrInvalid,
	http.StatusTooManyRequests:       ErrThrottled,
}

// softDeleted is the inner code of a conflict with a deleted secret of the same name.
const softDeleted = "ObjectIsDeletedButRecoverable"

// advice has the remedies of the inner codes that need an operator.
var advice = map[string]string{
	softDeleted:           "recover the secret (az keyvault secret recover) or purge it (az keyvault secret purge), then repeat",
	"SecretDisabled":      "the version is disabled",
	"ForbiddenByRbac":     "give the identity a role with the secret permissions list and set (Key Vault Secrets Officer)",
	"ForbiddenByPolicy":   "give the identity the secret permissions list and set in the vault's access policy",
	"ForbiddenByFirewall": "let this network through the vault's firewall",
}

// errorBody is Key Vault's answer when it refuses.
type errorBody struct {
	Error struct {
		Code       string `json:"code"`
		Message    string `json:"message"`
		InnerError struct {
			Code string `json:"code"`
		} `json:"innererror"`
	} `json:"error"`
}

// maxErrorText bounds each quoted part of a refusal.
const maxErrorText = 300

// classify converts an SDK error to one of this package's. The SDK's own text is dropped, since it prints whole
// responses; of Key Vault's text it keeps only the parts that do not repeat secret ("" for a request without one).
func classify(err error, secret string) error {
	var refused *azcore.ResponseError
	if !errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	body := readErrorBody(refused.RawResponse)
	inner := body.Error.InnerError.Code
	kind, known := byStatus[refused.StatusCode]
	if !known {
		kind = ErrOutcomeUnknown
	}
	if inner == softDeleted {
		kind = ErrDeleted
	}
	text := fmt.Sprintf("status %d", refused.StatusCode)
	for _, part := range []string{body.Error.Code, inner, body.Error.Message, advice[inner]} {
		if part != "" && (secret == "" || !strings.Contains(part, secret)) {
			text += ": " + shorten(part)
		}
	}
	return fmt.Errorf("%w: %s", kind, text)
}

// classifyAdd is classify for a request that must not be repeated blindly: an unsent one has a known outcome.
func classifyAdd(err error, secret string, sent bool) error {
	var refused *azcore.ResponseError
	if !sent && !errors.As(err, &refused) {
		return fmt.Errorf("not sent: %w", err)
	}
	return classify(err, secret)
}

// readErrorBody reads a refusal if it is one of Key Vault's; of any other answer it takes nothing.
func readErrorBody(resp *http.Response) errorBody {
	if resp == nil {
		return errorBody{}
	}
	var body errorBody
	text, err := runtime.Payload(resp)
	if err != nil || json.Unmarshal(text, &body) != nil {
		return errorBody{}
	}
	return body
}

// shorten bounds text from the other side.
func shorten(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + "..."
}

// sentKey is the context key of the flag that sentPolicy sets.
type sentKey struct{}

// sentPolicy records that a request with a body was sent. It comes after the authentication policy, which requests its
// challenge without the body, and fails without sending when it gets no token.
type sentPolicy struct{}

func (sentPolicy) Do(req *policy.Request) (*http.Response, error) {
	if sent, ok := req.Raw().Context().Value(sentKey{}).(interface{ Store(bool) }); ok && req.Body() != nil {
		sent.Store(true)
	}
	return req.Next()
}
