package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// encryption compares the speed of sequences with encrypted payloads, and of those with encryption turned off, as in
// every app without a key, with the speed on plain stores.
func encryption() scenario {
	metrics := []metric{
		{"memory/sequence3/encryption_on/ratio", "ratio", "of the speed on plain stores; goal 0.5 or more"},
		{"memory/sequence3/encryption_off/ratio", "ratio", "the same; goal 0.95 or more"},
	}
	return scenario{metrics, func(ctx context.Context, d time.Duration) ([]float64, error) {
		samples, err := repeat(ctx, d, func(ctx context.Context, slice time.Duration) ([]float64, error) {
			plain, err := sequencesPerSecond(ctx, slice/3, nil)
			on, onErr := sequencesPerSecond(ctx, slice/3, &codec.Config{})
			off, offErr := sequencesPerSecond(ctx, slice/3, &codec.Config{ReadOnly: true})
			return []float64{on / plain, off / plain}, errors.Join(err, onErr, offErr)
		})
		if err != nil {
			return nil, err
		}
		return []float64{median(column(samples, 0)), median(column(samples, 1))}, nil
	}}
}

// sequencesPerSecond returns how many sequences of three activities run in a second, one at a time, with an
// encryption or none.
func sequencesPerSecond(ctx context.Context, d time.Duration, with *codec.Config) (float64, error) {
	c := orchestrator.Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory()}
	if with != nil {
		envelope, err := codec.NewEnvelope(codec.EnvelopeConfig{Keys: fixedKey{}})
		if err != nil {
			return 0, err
		}
		with.Codec, with.Clear, with.Containers = envelope, orchestrator.ClearColumns(), []string{orchestrator.DefaultContainer}
		c.Tables, c.Blobs = with.Tables(c.Tables), with.Blobs(c.Blobs)
	}
	r, err := newRig(ctx, c)
	if err != nil {
		return 0, err
	}
	return saturate(ctx, 1, d, func(ctx context.Context) error { return r.run(ctx, "sequence", 3) })
}

// fixedKey wraps data keys without a vault, in as many bytes as an RSA key of 2,048 bits.
type fixedKey struct{}

func (fixedKey) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// padding makes a wrapped key as long as a vault's.
const padding = 196

// Wrap implements codec.Keys.
func (k fixedKey) Wrap(_ context.Context, key []byte) (wrapped []byte, id string, err error) {
	aead, err := k.aead()
	if err != nil {
		return nil, "", err
	}
	return aead.Seal(make([]byte, padding), nil, key, nil), "payloads/0123456789abcdef0123456789abcdef", nil
}

// Unwrap implements codec.Keys.
func (k fixedKey) Unwrap(_ context.Context, _ string, wrapped []byte) ([]byte, error) {
	aead, err := k.aead()
	if err != nil {
		return nil, err
	}
	return aead.Open(nil, nil, wrapped[padding:], nil)
}
