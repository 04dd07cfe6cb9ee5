package api

import (
	"encoding/base64"
	"encoding/json"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/redact"
)

// This file makes of payloads what answers show. What is stored keeps its secrets, because the runtime goes on with it; who
// looks at it need not see them.

// shownPayload is a payload as an answer shows it: without secrets, and too large a one by its size only.
func shownPayload(payload json.RawMessage) (json.RawMessage, int) {
	if len(payload) > maxShownPayload {
		return nil, len(payload)
	}
	return redact.JSON(payload), 0
}

// shownMessage is the message of a dead letter as an answer shows it, with its encoding: what is not text stays base64.
func shownMessage(d engine.DeadLetter) (text, encoding string) {
	text, encoding = d.MessageText()
	if encoding == "" {
		return redact.Document(text), ""
	}
	return base64.StdEncoding.EncodeToString([]byte(redact.Text(string(d.OriginalMessage)))), encoding
}
