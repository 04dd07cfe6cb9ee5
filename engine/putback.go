package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	return j, body
}
