package codec

import (
	"context"
	"errors"
)

// These errors can be returned by everything that decrypts; test for them with errors.Is.
var (
	// ErrKey: the key that the data was encrypted with cannot be used, or it cannot be had at the moment. The data is as it
	// was: the same call succeeds when the key can be used again.
	ErrKey = errors.New("the payload's key cannot be used")
	// ErrDamaged: the data is not what was encrypted for this place: it was changed, cut or moved. Repeating cannot help.
	ErrDamaged = errors.New("the encrypted payload is damaged")
	// ErrSealed: rows that are encrypted cannot be changed here, because this program has no key.
	ErrSealed = errors.New("encrypted, and without the key it cannot be changed")
)

// Codec encrypts and decrypts payloads. Implementations are safe for concurrent use.
type Codec interface {
	// Encode encrypts plain for a place, such as the key of a row. The result is at most MaxOverhead bytes longer.
	Encode(ctx context.Context, plain []byte, place string) ([]byte, error)
	// Decode is the inverse of Encode, for the same place. The errors are ErrKey and ErrDamaged.
	Decode(ctx context.Context, sealed []byte, place string) ([]byte, error)
	// KeyID names the key that data was encrypted with, for people; "" when the data does not say it.
	KeyID(sealed []byte) string
}

// MaxOverhead is by how many bytes an encrypted payload may be longer than a plain one.
const MaxOverhead = 1 << 10

// Config says what of the stores is encrypted.
type Config struct {
	// Codec is required.
	Codec Codec
	// ReadOnly turns encryption off: nothing is encrypted any more, and what is encrypted is still decrypted.
	ReadOnly bool
	// Clear names the tables whose rows are encrypted, and for each the columns that stay in clear: those that queries
	// compare. All other text and binary columns are encrypted. Tables that it does not name are left alone.
	Clear map[string][]string
	// Containers are the containers whose blobs are encrypted.
	Containers []string
	// Queue reports whether the messages of a queue are encrypted: those that this program sends to itself.
	Queue func(queue string) bool
}
