package codec

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// EnvelopeConfig configures an Envelope.
type EnvelopeConfig struct {
	// Keys wraps the data keys; required.
	Keys Keys
	// MaxAge and MaxUses bound the time and the number of payloads that a data key encrypts. The defaults are 24 hours and
	// 2^24. After a rotation of the key-encryption key, MaxAge is how long its old version may still be used.
	MaxAge  time.Duration
	MaxUses int
	// Cached is the number of unwrapped data keys in memory; the default is 4,096.
	Cached int
	// Now is the clock; the default is time.Now.
	Now func() time.Time
}

// Envelope is a Codec that encrypts each payload with AES-256-GCM under a data key. Data keys are random and belong to
// one process. Each payload starts with its data key, wrapped by the key-encryption key. So one wrap serves many
// payloads, and a process unwraps each data key once.
type Envelope struct {
	keys    Keys
	current current
	opened  *cache
}

var _ Codec = (*Envelope)(nil)

// keySize is the size of an AES-256 key in bytes.
const keySize = 32

// NewEnvelope returns an Envelope. It requests no key yet.
func NewEnvelope(c EnvelopeConfig) (*Envelope, error) {
	if c.Keys == nil {
		return nil, errors.New("codec: EnvelopeConfig.Keys is missing")
	}
	if c.MaxAge < 0 || c.MaxUses < 0 || c.Cached < 0 {
		return nil, errors.New("codec: MaxAge, MaxUses and Cached are not negative")
	}
	if c.MaxAge == 0 {
		c.MaxAge = 24 * time.Hour
	}
	if c.MaxUses == 0 {
		c.MaxUses = 1 << 24 // random nonces of 96 bits allow 2^32
	}
	if c.Cached == 0 {
		c.Cached = 4096
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	opened := newCache(c.Cached, c.Now)
	// A process decrypts its own data without a request.
	made := func(key *dataKey) { opened.add(cached{key: string(key.header), aead: key.aead}) }
	return &Envelope{keys: c.Keys, current: current{keys: c.Keys, maxAge: c.MaxAge, maxUses: c.MaxUses, now: c.Now, made: made}, opened: opened}, nil
}

// Check makes sure that a data key can be made, so that an error of the key-encryption key shows before the first
// payload.
func (e *Envelope) Check(ctx context.Context) error {
	_, err := e.Encode(ctx, nil, "a first payload")
	return err
}

// Encode implements Codec. It calls Keys for the first data key and when the current one is due for replacement.
func (e *Envelope) Encode(ctx context.Context, plain []byte, place string) ([]byte, error) {
	key, err := e.current.use(ctx)
	if err != nil {
		return nil, fmt.Errorf("encrypt %s: %w: %w", place, ErrKey, err)
	}
	out := make([]byte, 0, len(key.header)+len(plain)+key.aead.Overhead())
	out = append(out, key.header...)
	return key.aead.Seal(out, nil, plain, bound(key.header, place)), nil
}

// Decode implements Codec. It calls Keys for an unknown data key.
func (e *Envelope) Decode(ctx context.Context, sealed []byte, place string) ([]byte, error) {
	h, rest, err := decodeHeader(sealed)
	if err != nil {
		return nil, fmt.Errorf("decrypt %s: %w", place, err)
	}
	aead, err := e.opened.get(ctx, string(sealed[:len(sealed)-len(rest)]), func(ctx context.Context) (cipher.AEAD, error) {
		key, err := e.keys.Unwrap(ctx, h.id, h.wrapped)
		if err != nil {
			return nil, err
		}
		return newAEAD(key)
	})
	if err != nil {
		return nil, fmt.Errorf("decrypt %s, encrypted with the key %s: %w: %w", place, h.id, ErrKey, err)
	}
	plain, err := aead.Open(nil, nil, rest, bound(sealed[:len(sealed)-len(rest)], place))
	if err != nil {
		return nil, fmt.Errorf("decrypt %s, encrypted with the key %s: %w: it was changed, cut or moved after it was stored", place, h.id, ErrDamaged)
	}
	return plain, nil
}

// KeyID implements Codec.
func (e *Envelope) KeyID(sealed []byte) string { return KeyID(sealed) }

// KeyID returns the id of the key that an Envelope encrypted with; "" when the data cannot be read.
func KeyID(sealed []byte) string {
	h, _, _ := decodeHeader(sealed)
	return h.id
}

// bound returns the additional data that authenticates a payload: its header and its place.
func bound(header []byte, place string) []byte {
	out := make([]byte, 0, len(header)+len(place))
	return append(append(out, header...), place...)
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("the data key has %d bytes instead of %d", len(key), keySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// newKey returns a random data key.
func newKey() []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return key
}
