package tables

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// continuation is the content of Page.Next: the service's position, and the partition of the Query or the row key of
// the Scan. So a token works for its own lookup only.
type continuation struct {
	Query     string `json:"q,omitempty"`
	Scan      string `json:"s,omitempty"`
	Partition string `json:"p"`
	Row       string `json:"r,omitempty"`
}

// maxContinuation bounds a token from outside.
const maxContinuation = 16 << 10

// text returns the continuation for Page.Next.
func (c continuation) text() string {
	text, _ := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(text)
}

// resume decodes the lookup's token; the first page has the zero continuation.
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
