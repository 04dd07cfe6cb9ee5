package marketplace

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// maxErrorText bounds a service's quoted text, in bytes.
const maxErrorText = 300

// refusal makes an error of an answer. It keeps only the service's code and message of the body.
func refusal(resp *http.Response) error {
	var kind error
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		kind = ErrNotFound
	case http.StatusConflict:
		kind = ErrConflict
	case http.StatusUnauthorized, http.StatusForbidden:
		kind = ErrDenied
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		kind = ErrUnavailable
	default:
		kind = ErrInvalid
		if resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode < http.StatusBadRequest {
			kind = ErrUnavailable
		}
	}
	return fmt.Errorf("%w: status %d%s", kind, resp.StatusCode, reasonOf(resp))
}

// reasonOf reads the code and the message of both services' error documents.
func reasonOf(resp *http.Response) string {
	var document struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Error   struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	body, err := runtime.Payload(resp)
	if err != nil || json.Unmarshal(body, &document) != nil {
		return ""
	}
	var text string
	for _, part := range []string{document.Code, document.Message, document.Error.Code, document.Error.Message} {
		if part != "" {
			text += ": " + strings.ToValidUTF8(part[:min(len(part), maxErrorText)], "")
		}
	}
	return text
}
