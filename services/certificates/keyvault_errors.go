package certificates

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/vibedata/roundhouse/services/secrets"
)

// byStatus maps the answers of Key Vault to errors. For any other answer, the outcome is unknown.
var byStatus = map[int]error{
	http.StatusBadRequest:      secrets.ErrInvalid,
	http.StatusUnauthorized:    secrets.ErrForbidden,
	http.StatusForbidden:       secrets.ErrForbidden,
	http.StatusNotFound:        secrets.ErrNotFound,
	http.StatusConflict:        secrets.ErrThrottled, // another change of the same certificate is in progress
	http.StatusTooManyRequests: secrets.ErrThrottled,
}

// softDeleted is the inner code of a conflict with a deleted certificate of the same name.
const softDeleted = "ObjectIsDeletedButRecoverable"

// advice has the remedies of the inner codes that need an operator.
var advice = map[string]string{
	softDeleted:           ": recover the certificate (az keyvault certificate recover) or purge it (az keyvault certificate purge), then repeat",
	"ForbiddenByRbac":     ": give the identity the role Key Vault Certificates Officer",
	"ForbiddenByPolicy":   ": give the identity the certificate permissions list, get, create and update in the vault's access policy",
	"ForbiddenByFirewall": ": let this network through the vault's firewall",
}

// refusal is Key Vault's answer when it refuses.
type refusal struct {
	Error struct {
		Code       string `json:"code"`
		Message    string `json:"message"`
		InnerError struct {
			Code string `json:"code"`
		} `json:"innererror"`
	} `json:"error"`
}

// maxErrorText bounds the quoted message of a refusal.
const maxErrorText = 300

// classify converts an SDK error to one of package secrets. The SDK's own text is dropped, since it prints whole
// responses.
func classify(err error) error {
	status, body, refused := refusalOf(err)
	if !refused {
		return fmt.Errorf("%w: %w", secrets.ErrOutcomeUnknown, err)
	}
	kind, known := byStatus[status]
	if !known {
		kind = secrets.ErrOutcomeUnknown
	}
	inner := body.Error.InnerError.Code
	if inner == softDeleted {
		kind = secrets.ErrDeleted
	}
	message := body.Error.Message
	if len(message) > maxErrorText {
		message = message[:maxErrorText] + "..."
	}
	return fmt.Errorf("%w: status %d %s %s: %q%s", kind, status, body.Error.Code, inner, message, advice[inner])
}

// isConflict reports that another request is pending, which does not include a deleted certificate.
func isConflict(err error) bool {
	status, body, refused := refusalOf(err)
	return refused && status == http.StatusConflict && body.Error.InnerError.Code != softDeleted
}

// refusalOf reads a refusal if it is one of Key Vault's; of any other answer it only takes the status.
func refusalOf(err error) (status int, body refusal, refused bool) {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return 0, body, false
	}
	if answer.RawResponse != nil {
		if text, err := runtime.Payload(answer.RawResponse); err == nil && json.Unmarshal(text, &body) != nil {
			body = refusal{}
		}
	}
	return answer.StatusCode, body, true
}
