package queues

import (
	"encoding/base64"
	"unicode/utf8"
)

// Decode returns the body in a message's text: the decoded bytes if the text is base64 (standard alphabet, padded, not
// empty) of valid UTF-8, otherwise the text itself. So it reads the output of Send, plain JSON as most other senders
// write it, and any other text. A plain text that happens to be base64 of UTF-8 is decoded.
func Decode(text string) []byte {
	if text == "" {
		return []byte{}
	}
	body, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(body) == 0 || !utf8.Valid(body) {
		return []byte(text)
	}
	return body
}

func encode(body []byte) string { return base64.StdEncoding.EncodeToString(body) }
