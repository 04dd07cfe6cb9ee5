package tables

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// continuation is what Page.Next holds: where the service wants to be asked next, and for which partition, so that a
// token cannot be carried over to another one.
type continuation struct {
	Query     string `json:"q"`
	Partition string `json:"p"`
	Row       string `json:"r,omitempty"`
}

// maxContinuation bounds a token that comes from outside.
const maxContinuation = 16 << 10

func (c continuation) encode() string {
	// Marshalling three strings cannot fail.
	text, _ := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodeContinuation(q *Query) (continuation, error) {
	var c continuation
	if len(q.Continuation) > maxContinuation {
		return c, fmt.Errorf("%w: the continuation is none of this store's", ErrInvalid)
	}
	text, err := base64.RawURLEncoding.DecodeString(q.Continuation)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return c, fmt.Errorf("%w: the continuation is none of this store's", ErrInvalid)
	}
	if c.Query != q.Partition {
		return c, fmt.Errorf("%w: the continuation belongs to another query", ErrInvalid)
	}
	return c, nil
}
