package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// putBackMark begins a message that the pipeline has put back into its queue. No JSON begins with it.
const putBackMark = "roundhouse/1 "

// journey is what a message has been through before the delivery at hand. It travels as a line of its own before the
// original body, because storage counts a message that is put back as a new one.
type journey struct {
	// MessageID and InsertedAt are those of the message that its sender sent.
	MessageID  string    `json:"messageId"`
	InsertedAt time.Time `json:"insertedAt"`
	// Attempts is how many attempts were used up.
	Attempts int `json:"attempts"`
	// Retry says that it was sent again as a dead letter, and as which; nil for what was not.
	Retry *retryMark `json:"retry,omitempty"`
}

// retryMark names one retry of a dead letter.
type retryMark struct {
	ID string `json:"id"`
	// Parent is the row key of the dead letter, Count how many retries its message has had, this one included.
	Parent string `json:"parent"`
	Count  int    `json:"count"`
}

// parent is what a dead letter that this journey ends in has to tell of the one before.
func (j journey) parent() (rowKey string, retries int) {
	if j.Retry == nil {
		return "", 0
	}
	return j.Retry.Parent, j.Retry.Count
}

// wrap puts the line before the body.
func (j journey) wrap(body []byte) ([]byte, error) {
	line, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("describe the journey of message %s: %w", j.MessageID, err)
	}
	var out bytes.Buffer
	out.WriteString(putBackMark)
	out.Write(line)
	out.WriteByte('\n')
	out.Write(body)
	return out.Bytes(), nil
}

// unwrap undoes wrap. A delivery that was never put back begins its journey; a line that cannot be read belongs to the
// body.
func unwrap(d Delivery) (journey, []byte) {
	first := journey{MessageID: d.ID, InsertedAt: d.InsertedAt}
	rest, ok := bytes.CutPrefix(d.Body, []byte(putBackMark))
	if !ok {
		return first, d.Body
	}
	line, body, ok := bytes.Cut(rest, []byte("\n"))
	var j journey
	if !ok || json.Unmarshal(line, &j) != nil || j.Attempts < 0 || checkID("message id", j.MessageID) != nil {
		return first, d.Body
	}
	if r := j.Retry; r != nil && (len(r.ID) > MaxIDLength || len(r.Parent) > MaxInstanceIDLength || r.Count < 0 || r.Count > math.MaxInt32) {
		j.Retry = nil
	}
	return j, body
}
