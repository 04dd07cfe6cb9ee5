package codec

import (
	"context"
	"errors"
)

// These errors can be returned by everything that decrypts. Test for them with errors.Is.
var (
	// ErrKey means that the key of the data cannot be used or is unavailable. The data is unchanged: the same call
	// succeeds when the key can be used again.
	ErrKey = errors.New("the payload's key cannot be used")
	// ErrDamaged means that the data was changed, cut or moved since its encryption. Do not retry.
	ErrDamaged = errors.New("the encrypted payload is damaged")
	// ErrSealed means that encrypted rows cannot be changed here, because this program has no key.
	ErrSealed = errors.New("encrypted, and without the key it cannot be changed")
)

// Codec encrypts and decrypts payloads. Implementations are safe for concurrent use.
type Codec interface {
	// Encode encrypts plain for a place, such as the key of a row. The result is at most MaxOverhead bytes longer.
	Encode(ctx context.Context, plain []byte, place string) ([]byte, error)
	// Decode is the inverse of Encode, for the same place. The errors are ErrKey and ErrDamaged.
	Decode(ctx context.Context, sealed []byte, place string) ([]byte, error)
	// KeyID returns the id of the key that encrypted the data, for operators; "" when the data does not contain it.
	KeyID(sealed []byte) string
}

// MaxOverhead is the most bytes that encryption adds to a payload.
const MaxOverhead = 1 << 10

// Config selects the data of the stores to encrypt.
type Config struct {
	// Codec is required.
	Codec Codec
	// ReadOnly turns encryption off; encrypted data is still decrypted.
	ReadOnly bool
	// Clear names the tables whose rows are encrypted, and for each the columns that stay in clear: those that queries
	// compare. All other text and binary columns are encrypted. Other tables are left alone.
	Clear map[string][]string
	// Containers lists the containers whose blobs are encrypted.
	Containers []string
	// Queue reports whether the messages of a queue are encrypted. It returns true for the queues of messages that this
	// program sends to itself.
	Queue func(queue string) bool
}
