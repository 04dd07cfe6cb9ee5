package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// headerMark is the beginning of a message with a header. No JSON begins with it.
const headerMark = "roundhouse/1 "

// header records the history of a message before this delivery. It is a line before the original body, because
// storage counts a requeued message as a new one.
type header struct {
	// MessageID and InsertedAt are those of the sender's message.
	MessageID  string    `json:"messageId"`
	InsertedAt time.Time `json:"insertedAt"`
	// Attempts is the number of used attempts.
	Attempts int `json:"attempts"`
	// Retry is set when the message is the retry of a dead letter.
	Retry *retryInfo `json:"retry,omitempty"`
}

// retryInfo identifies one retry of a dead letter.
type retryInfo struct {
	ID string `json:"id"`
	// Parent is the row key of the dead letter. Count is the number of retries of the message, this one included.
	Parent string `json:"parent"`
	Count  int    `json:"count"`
	// Edited is set when the message was edited: it identifies the original bytes.
	Edited string `json:"edited,omitempty"`
}

// parentLetter returns the row key and the number of retries for a dead letter of this message.
func (h header) parentLetter() (rowKey string, retries int) {
	if h.Retry == nil {
		return "", 0
	}
	return h.Retry.Parent, h.Retry.Count
}

// prepend puts the header before the body.
func (h header) prepend(body []byte) ([]byte, error) {
	line, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("write the header of message %s: %w", h.MessageID, err)
	}
	var out bytes.Buffer
	out.WriteString(headerMark)
	out.Write(line)
	out.WriteByte('\n')
	out.Write(body)
	return out.Bytes(), nil
}

// Original returns the sender's body of a delivery.
func Original(d Delivery) []byte {
	_, body := splitHeader(d)
	return body
}

// Again returns the body to requeue instead of failing the delivery: the message keeps its identity and its previous
// attempts, so this delivery uses up none.
func Again(d Delivery) ([]byte, error) {
	h, body := splitHeader(d)
	if checkID("message id", h.MessageID) != nil {
		return body, nil // such an id could not be read back
	}
	h.Attempts += d.DequeueCount - 1
	return h.prepend(body)
}

// splitHeader is the inverse of prepend. A delivery that was never requeued gets a new header. Any sender can write
// the line, so values that prepend does not write are replaced by those of the delivery. A line that is not a JSON
// object belongs to the body. Attempts that only the header has are checked before they count
// (attempt.countAttempts).
func splitHeader(d Delivery) (header, []byte) {
	first := header{MessageID: d.ID, InsertedAt: d.InsertedAt}
	rest, ok := bytes.CutPrefix(d.Body, []byte(headerMark))
	if !ok {
		return first, d.Body
	}
	line, body, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || !bytes.HasPrefix(line, []byte("{")) || !json.Valid(line) {
		return first, d.Body
	}
	var h header
	if json.Unmarshal(line, &h) != nil || h.Attempts < 0 || checkID("message id", h.MessageID) != nil {
		return first, body
	}
	h.Attempts = min(h.Attempts, math.MaxInt32)
	if r := h.Retry; r != nil && (len(r.ID) > MaxIDLength || len(r.Edited) > MaxIDLength || len(r.Parent) > MaxInstanceIDLength || r.Count < 0 || r.Count > math.MaxInt32) {
		h.Retry = nil
	}
	return h, body
}
