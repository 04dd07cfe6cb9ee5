package blobs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/internal/storage"
)

// The exported names of this file are for implementations of Store, such as Memory and the adapter in package azure.
// Implementations that check requests with them accept and reject the same ones.

// MaxPage is the most names of a page of List.
const MaxPage = 1000

// maxContinuation bounds a token from outside. It has room for the longest prefix and marker as JSON in base64.
const maxContinuation = 32 << 10

// CheckContainer checks the name of a container by the service's rules: 3 to 63 of a-z, 0-9 and single hyphens between
// them. It is for implementations of Store.
func CheckContainer(name string) error { return storage.CheckName("container", name) }

// CheckName rejects blob names that the service does not accept, and names that a URL would change. It is for
// implementations of Store.
func CheckName(name string) error {
	if err := checkText(name); err != nil {
		return err
	}
	return checkSegments(name, strings.Split(name, "/"))
}

// CheckPrefix rejects a prefix that no valid name has. The last segment may be incomplete, so it may be empty or end
// with a dot. It is for implementations of Store.
func CheckPrefix(prefix string) error {
	if err := checkText(prefix); err != nil {
		return err
	}
	segments := strings.Split(prefix, "/")
	return checkSegments(prefix, segments[:len(segments)-1])
}

// CheckSize rejects a blob of more than MaxSize bytes. It is for implementations of Store.
func CheckSize(n int64) error {
	if n > MaxSize {
		return fmt.Errorf("%w: the blob has %d bytes of at most %d", ErrTooLarge, n, MaxSize)
	}
	return nil
}

// Listing is the content of the continuation of a List or ListOld: the store's position and the list, so that a token
// works for its own list only. It is for implementations of Store.
type Listing struct {
	// Container and Prefix are those of the list.
	Container string `json:"c"`
	Prefix    string `json:"p,omitempty"`
	// Old is true for a list of old blobs.
	Old bool `json:"o,omitempty"`
	// Marker is the service's own, or in memory the name of the next blob. It is empty at the start of the list.
	Marker string `json:"m"`
}

// Continuation returns the token of the page that begins at p; "" at the end of the list.
func (p Listing) Continuation() string {
	if p.Marker == "" {
		return ""
	}
	text, _ := json.Marshal(p)
	return base64.RawURLEncoding.EncodeToString(text)
}

// Resume decodes a continuation into a position of the list that begins at p. A continuation of another list is an
// ErrInvalid.
func (p Listing) Resume(continuation string) (Listing, error) {
	if continuation == "" {
		return p, nil
	}
	if len(continuation) > maxContinuation {
		return p, fmt.Errorf("%w: the continuation is none of this store's", ErrInvalid)
	}
	var at Listing
	text, err := base64.RawURLEncoding.DecodeString(continuation)
	if err != nil || json.Unmarshal(text, &at) != nil || at.Marker == "" {
		return p, fmt.Errorf("%w: the continuation is none of this store's", ErrInvalid)
	}
	if at.Container != p.Container || at.Prefix != p.Prefix || at.Old != p.Old {
		return p, fmt.Errorf("%w: the continuation belongs to another list", ErrInvalid)
	}
	return at, nil
}
