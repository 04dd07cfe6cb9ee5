package api

import (
	"encoding/base64"
	"encoding/json"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/redact"
)

// This file converts payloads for answers. Stored payloads keep their secrets, because the runtime needs them;
// answers do not show them.

// shownPayload returns a payload for an answer: without secrets, and a too large one only as its size.
func shownPayload(payload json.RawMessage) (json.RawMessage, int) {
	if len(payload) > maxShownPayload {
		return nil, len(payload)
	}
	return redact.JSON(payload), 0
}

// shownMessage returns the message of a dead letter for an answer, with its encoding: a message that is no text stays
// base64.
func shownMessage(d engine.DeadLetter) (text, encoding string) {
	text, encoding = d.MessageText()
	if encoding == "" {
		return redact.Document(text), ""
	}
	return base64.StdEncoding.EncodeToString([]byte(redact.Text(string(d.OriginalMessage)))), encoding
}
