package azure

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

// asciiJSON writes the JSON of a request in ASCII for the emulator, which decodes each network chunk of a body
// separately and loses a character that two chunks share. (It reads transactions as a whole.)
type asciiJSON struct{}

// Do sends one request.
func (asciiJSON) Do(req *policy.Request) (*http.Response, error) {
	contentType := req.Raw().Header.Get("Content-Type")
	if req.Body() == nil || !strings.HasPrefix(contentType, "application/json") {
		return req.Next()
	}
	body, err := io.ReadAll(req.Body())
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if err := req.SetBody(streaming.NopCloser(bytes.NewReader(toASCII(body))), contentType); err != nil {
		return nil, err
	}
	return req.Next()
}

// toASCII escapes non-ASCII characters. In JSON they occur in strings only.
func toASCII(body []byte) []byte {
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		r, size := utf8.DecodeRune(body[i:])
		switch {
		case r < utf8.RuneSelf:
			out = append(out, body[i])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	return out
}
