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

// header says what a message has been through before the delivery at hand. It is a line before the original body,
// because storage counts a message that is put back as a new one.
type header struct {
	// MessageID and InsertedAt are those of the message that the sender sent.
	MessageID  string    `json:"messageId"`
	InsertedAt time.Time `json:"insertedAt"`
	// Attempts is how many attempts were used up.
	Attempts int `json:"attempts"`
	// Retry is set when the message is the retry of a dead letter.
	Retry *retryInfo `json:"retry,omitempty"`
}

// retryInfo identifies one retry of a dead letter.
type retryInfo struct {
	ID string `json:"id"`
	// Parent is the row key of the dead letter. Count is how many retries the message has had, this one included.
	Parent string `json:"parent"`
	Count  int    `json:"count"`
	// Edited is set when the message was edited: it names the bytes of before.
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

// Original is the body of a delivery as its sender has sent it.
func Original(d Delivery) []byte {
	_, body := splitHeader(d)
	return body
}

// Again is what to send to the queue of a delivery instead of letting the delivery fail: the message keeps its identity and the
// attempts that it had before, so this delivery uses up none.
func Again(d Delivery) ([]byte, error) {
	h, body := splitHeader(d)
	if checkID("message id", h.MessageID) != nil {
		return body, nil // such an id cannot be read again
	}
	h.Attempts += d.DequeueCount - 1
	return h.prepend(body)
}

// splitHeader is the inverse of prepend. A delivery that was never put back gets a new header. Any sender may have written the line, so
// values that prepend does not write are replaced by those of the delivery. A line that is no JSON object belongs to the body.
// Attempts that only the header has are checked before they count (attempt.countAttempts).
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
