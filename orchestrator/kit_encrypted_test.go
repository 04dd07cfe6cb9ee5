package orchestrator

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"flag"
	"testing"

	payloads "github.com/vibedata/roundhouse/codec"
)

var encrypted = flag.Bool("encrypted", false, "whether what the tests store is encrypted")

// encrypt encrypts the world's storage from then on, as a program with a key does.
func (w *world) encrypt(t *testing.T) {
	t.Helper()
	envelope := must(payloads.NewEnvelope(payloads.EnvelopeConfig{Keys: testKey{}}))(t)
	c := payloads.Config{Codec: envelope, Clear: ClearColumns(), Containers: []string{DefaultContainer}, Queue: func(string) bool { return true }}
	w.tables, w.blobs, w.queues = c.Tables(w.tables), c.Blobs(w.blobs), c.Queues(w.queues)
}

// testKey wraps data keys as Key Vault does, in 256 bytes.
type testKey struct{}

func (testKey) aead() cipher.AEAD {
	block, _ := aes.NewCipher(make([]byte, 32)) // the length is right
	aead, _ := cipher.NewGCMWithRandomNonce(block)
	return aead
}

func (k testKey) Wrap(_ context.Context, key []byte) ([]byte, string, error) {
	return append(make([]byte, 196), k.aead().Seal(nil, nil, key, nil)...), "payloads/0123456789abcdef0123456789abcdef", nil
}

func (k testKey) Unwrap(_ context.Context, _ string, wrapped []byte) ([]byte, error) {
	return k.aead().Open(nil, nil, wrapped[196:], nil)
}
