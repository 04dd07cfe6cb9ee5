package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// maxErrorText bounds each quoted part of a refusal.
const maxErrorText = 300

// refusals maps the answers of Key Vault that need an operator to their errors and remedies. Any other answer is
// ErrUnavailable.
var refusals = map[int]struct {
	kind   error
	advice string
}{
	http.StatusBadRequest:   {ErrInvalid, "the key must be of type RSA, with the operations wrapKey and unwrapKey"},
	http.StatusUnauthorized: {ErrForbidden, "the identity gets no token for this vault"},
	http.StatusForbidden:    {ErrForbidden, "give the identity the role Key Vault Crypto Service Encryption User on the vault, enable the version of the key, and let this network through the vault's firewall"},
	http.StatusNotFound:     {ErrNotFound, "recover the key (az keyvault key recover), or restore it from its backup"},
	http.StatusConflict:     {ErrNotFound, "recover the key (az keyvault key recover)"},
}

// classify converts an SDK error to one of this package's. The SDK's own text is dropped, since it prints whole
// responses.
func classify(err error) error {
	var refused *azcore.ResponseError
	if !errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	text := fmt.Sprintf("status %d", refused.StatusCode)
	code, message := refusalText(refused.RawResponse)
	for _, part := range []string{code, message} {
		if len(part) > maxErrorText {
			part = strings.ToValidUTF8(part[:maxErrorText], "") + "..."
		}
		if part != "" {
			text += ": " + part
		}
	}
	if r, known := refusals[refused.StatusCode]; known {
		return fmt.Errorf("%w: %s: %s", r.kind, text, r.advice)
	}
	return fmt.Errorf("%w: %s", ErrUnavailable, text)
}

// refusalText reads a refusal if it is one of Key Vault's.
func refusalText(resp *http.Response) (code, message string) {
	var body struct {
		Error struct {
			Code       string `json:"code"`
			Message    string `json:"message"`
			InnerError struct {
				Code string `json:"code"`
			} `json:"innererror"`
		} `json:"error"`
	}
	if resp == nil {
		return "", ""
	}
	if text, err := runtime.Payload(resp); err != nil || json.Unmarshal(text, &body) != nil {
		return "", ""
	}
	return strings.Trim(body.Error.Code+" "+body.Error.InnerError.Code, " "), body.Error.Message
}
