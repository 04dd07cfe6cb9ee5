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

// next is the token of the page that begins at a partition and row.
func (l *lookup) next(partition, row string) string {
	// Marshalling strings cannot fail.
	text, _ := json.Marshal(continuation{Query: l.partition.is, Scan: l.row.is, Partition: partition, Row: row})
	return base64.RawURLEncoding.EncodeToString(text)
}

// resume reads the lookup's token; the zero continuation is the first page's.
func (l *lookup) resume() (continuation, error) {
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
	if c.Query != l.partition.is || c.Scan != l.row.is {
		return c, fmt.Errorf("%w: the continuation belongs to another query", ErrInvalid)
	}
	return c, nil
}
