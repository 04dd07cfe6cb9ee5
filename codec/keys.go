package codec

import "context"

// Keys is a key-encryption key that never leaves its vault: it wraps and unwraps data keys. Implementations are safe
// for concurrent use. Their errors are not those of storage.
type Keys interface {
	// Wrap encrypts a data key of 32 bytes with the newest version of the key, and returns the id of that version, of at
	// most MaxKeyID bytes. The wrapped key has at most MaxWrapped bytes.
	Wrap(ctx context.Context, key []byte) (wrapped []byte, id string, err error)
	// Unwrap decrypts a data key that Wrap encrypted with the version of this id.
	Unwrap(ctx context.Context, id string, wrapped []byte) ([]byte, error)
}

// The limits of the results of Keys, in bytes. RSA keys of up to 4,096 bits fit.
const (
	MaxKeyID   = 256
	MaxWrapped = 512
)
