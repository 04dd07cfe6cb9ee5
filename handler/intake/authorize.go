package intake

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/keytext"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/outbox/receiver"
)

// minKey is the least length of a key or signature, in bytes.
const minKey = 16

// Authorize says who may send, as engine.Intake wants it.
type Authorize = func(ctx context.Context, r *http.Request) error

// Verify says who may send a body, as engine.Intake wants it.
type Verify = func(ctx context.Context, header http.Header, body []byte) error

// Signed lets in the events of an outbox that are signed. known, if it is set, says of an event that is whether it is one for this
// app: engine.ErrNotTaken for another.
func Signed(events receiver.Receiver, known func(ctx context.Context, e receiver.Event) error) Verify {
	return func(ctx context.Context, header http.Header, body []byte) error {
		e, err := events.Verify(ctx, header, body)
		switch {
		case errors.Is(err, outbox.ErrSignature):
			return fmt.Errorf("%w: %w", engine.ErrUnauthorized, err)
		case errors.Is(err, receiver.ErrEvent):
			return fmt.Errorf("%w: %w", engine.ErrNotTaken, err)
		case err != nil || known == nil:
			return err
		}
		return known(ctx, e)
	}
}

// CheckKey says what is wrong with a key or a signature: it is too short, or has characters with which it never fits.
func CheckKey(key string) error {
	if len(key) < minKey {
		return fmt.Errorf("set %d characters or more", minKey)
	}
	return keytext.Plain(key)
}

// Signature lets in who has a value in a query parameter: what the publisher of an address has put into it.
func Signature(parameter, value string) Authorize {
	return func(_ context.Context, r *http.Request) error {
		if value == "" || !same(r.URL.Query().Get(parameter), value) {
			return engine.ErrUnauthorized
		}
		return nil
	}
}

// KeyOrToken lets in who has the key (in x-functions-key, or the query parameter code), or a good token. A key that is wrong
// is not made good by a token. Without a key there are only tokens, and the other way round.
func KeyOrToken(key string, tokens *Entra) Authorize {
	return func(ctx context.Context, r *http.Request) error {
		given := r.Header.Get("x-functions-key")
		if given == "" {
			given = r.URL.Query().Get("code")
		}
		switch {
		case given != "" && key != "" && same(given, key):
			return nil
		case given != "" || tokens == nil:
			return engine.ErrUnauthorized
		default:
			return tokens.Authorize(ctx, r)
		}
	}
}

// same compares in a time that tells nothing, the length included.
func same(got, want string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
