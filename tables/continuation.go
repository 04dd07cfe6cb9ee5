package tables

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// continuation is what Page.Next holds: where the service wants to be asked next, and for the Query of which partition
// or the Scan for which row key, so that a token cannot be carried over to another one.
type continuation struct {
	Query     string `json:"q,omitempty"`
	Scan      string `json:"s,omitempty"`
	Partition string `json:"p"`
	Row       string `json:"r,omitempty"`
}

// maxContinuation bounds a token that comes from outside.
const maxContinuation = 16 << 10

// text is the continuation as Page.Next holds it.
func (c continuation) text() string {
	// Marshalling strings cannot fail.
	text, _ := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(text)
}

// resume reads the lookup's token; the zero continuation is the first page's.
func (l *Lookup) resume() (continuation, error) {
	var c continuation
	if l.continuation == "" {
		return c, nil
	}
	if len(l.continuation) > maxContinuation {
		return c, fmt.Errorf("%w: the continuation is none of this store's", ErrInvalid)
	}
	text, err := base64.RawURLEncoding.DecodeString(l.continuation)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return c, fmt.Errorf("%w: the continuation is none of this store's", ErrInvalid)
	}
	if c.Query != l.Partition.Is || c.Scan != l.Row.Is {
		return c, fmt.Errorf("%w: the continuation belongs to another query", ErrInvalid)
	}
	return c, nil
}
