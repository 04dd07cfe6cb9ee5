package blobs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
)

// maxPage is the most names of a page.
const maxPage = 1000

// maxContinuation bounds a token that comes from outside. It has room for the longest prefix and marker as JSON in
// base64.
const maxContinuation = 32 << 10

// All walks the names of a container's blobs that begin with prefix, over all pages of List. It stops at the first
// error, which it yields with an empty name. It can be walked again.
func All(ctx context.Context, store Store, container, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		continuation := ""
		for {
			names, next, err := store.List(ctx, container, prefix, continuation)
			if err != nil {
				yield("", err)
				return
			}
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			continuation = next
		}
	}
}

// position is what a continuation holds: where the store wants to be asked next, and for which list, so that a token
// cannot be carried over to another one.
type position struct {
	Container string `json:"c"`
	Prefix    string `json:"p,omitempty"`
	// Old says that it is a list of old blobs.
	Old bool `json:"o,omitempty"`
	// Marker is the service's own, or in memory the name of the next blob. The empty one begins the list.
	Marker string `json:"m"`
}

// continuation is the token of the page that begins at p; "" where p is no place to go on.
func (p position) continuation() string {
	if p.Marker == "" {
		return ""
	}
	// Marshalling strings cannot fail.
	text, _ := json.Marshal(p)
	return base64.RawURLEncoding.EncodeToString(text)
}

// resume gives the place in the list that begins at p which a continuation names.
func (p position) resume(continuation string) (position, error) {
	if continuation == "" {
		return p, nil
	}
	if len(continuation) > maxContinuation {
		return p, fmt.Errorf("%w: the continuation is none of this store's", ErrInvalid)
	}
	var at position
	text, err := base64.RawURLEncoding.DecodeString(continuation)
	if err != nil || json.Unmarshal(text, &at) != nil || at.Marker == "" {
		return p, fmt.Errorf("%w: the continuation is none of this store's", ErrInvalid)
	}
	if at.Container != p.Container || at.Prefix != p.Prefix || at.Old != p.Old {
		return p, fmt.Errorf("%w: the continuation belongs to another list", ErrInvalid)
	}
	return at, nil
}
