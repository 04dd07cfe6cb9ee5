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

// Authorize checks the sender's permission, for engine.Intake.
type Authorize = func(ctx context.Context, r *http.Request) error

// Verify checks the sender of a body, for engine.Intake.
type Verify = func(ctx context.Context, header http.Header, body []byte) error

// Signed admits the signed events of an outbox. known, if it is set, checks whether a signed event is for this app:
// engine.ErrNotTaken if not.
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

// CheckKey returns the error in a key or a signature: too short, or with impossible characters.
func CheckKey(key string) error {
	if len(key) < minKey {
		return fmt.Errorf("set %d characters or more", minKey)
	}
	return keytext.Plain(key)
}

// Signature admits senders with a value in a query parameter, which is part of the published address.
func Signature(parameter, value string) Authorize {
	return func(_ context.Context, r *http.Request) error {
		if value == "" || !same(r.URL.Query().Get(parameter), value) {
			return engine.ErrUnauthorized
		}
		return nil
	}
}

// KeyOrToken admits senders with the key (in x-functions-key, or the query parameter code), or a valid token. A token
// does not make up for a wrong key. Without a key only tokens are accepted, and vice versa.
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

// same compares in constant time, the length included.
func same(got, want string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
