package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// DefaultClaimsContainer is the container of Claims (NewClaims).
const DefaultClaimsContainer = "engine-messages"

// errClaimUnavailable marks a message whose input no retry can load.
var errClaimUnavailable = errors.New("the input of the message cannot be had")

// Claims keeps inputs that are too large for a queue message in blobs (claim check). The message then carries the
// name of the blob, {engine}/{correlationId}/{SHA-256 of the input}. The blob is written before the message that
// names it, and writing it again changes nothing. So a crash in between may leave an unreferenced blob, but never a
// message without its blob. A blob outlives its message, because a dead letter may need it; Pipeline.SweepClaims
// deletes unreferenced blobs.
type Claims struct {
	blobs     blobs.Store
	container string
}

// NewClaims uses a container of the store; "" means engine-messages.
func NewClaims(store blobs.Store, container string) *Claims {
	if container == "" {
		container = DefaultClaimsContainer
	}
	return &Claims{store, container}
}

func (c *Claims) createContainer(ctx context.Context) error {
	if c == nil {
		return nil
	}
	return c.blobs.CreateContainer(ctx, c.container)
}

// Pack returns the message as the body of a queue message, with its input in a blob if it does not fit otherwise. The
// engine and the correlation id are required. The errors are those of blobs, of payload.Check, and of ids that are
// missing or too long.
func (c *Claims) Pack(ctx context.Context, m Message) ([]byte, error) {
	if err := errors.Join(checkID("engine", m.Engine), checkID("correlation id", m.CorrelationID), checkTenant(m.TenantID)); err != nil {
		return nil, fmt.Errorf("pack a message: %w", err)
	}
	body, err := m.encode()
	if err != nil {
		return nil, fmt.Errorf("pack the message %s: %w", m.CorrelationID, err)
	}
	if len(body) <= MaxMessage {
		return body, nil
	}
	m.Blob = claimName(m.Engine, m.CorrelationID, m.Input)
	if err := c.blobs.Put(ctx, c.container, m.Blob, m.Input); err != nil {
		return nil, fmt.Errorf("store the input of %s in blob %s: %w", m.CorrelationID, m.Blob, err)
	}
	m.Input = nil
	if body, err = json.Marshal(m); err == nil && len(body) > MaxMessage {
		err = fmt.Errorf("the message %s has %d bytes without its input, %d are allowed: %w", m.CorrelationID, len(body), MaxMessage, errTooLarge)
	}
	return body, err
}

// resolve returns the message with its input loaded from the blob.
func (c *Claims) resolve(ctx context.Context, engine string, m Message) (Message, error) {
	if m.Blob == "" {
		return m, nil
	}
	if c == nil {
		return m, fmt.Errorf("%w: this program reads no blobs of messages: set Config.Claims", errClaimUnavailable)
	}
	input, err := c.blobs.Get(ctx, c.container, m.Blob)
	switch {
	case errors.Is(err, blobs.ErrNotFound), errors.Is(err, blobs.ErrInvalid), errors.Is(err, blobs.ErrTooLarge):
		return m, fmt.Errorf("%w: blob %.200s: %w", errClaimUnavailable, m.Blob, err)
	case err != nil:
		return m, fmt.Errorf("read the input from blob %s: %w", m.Blob, err)
	case m.Blob != claimName(engine, m.CorrelationID, input):
		// The name is external data: it must not lead to the blob of another message.
		return m, fmt.Errorf("%w: blob %.200s is of another message, or its content has changed", errClaimUnavailable, m.Blob)
	}
	m.Input, m.Blob = input, ""
	return m, nil
}

func claimName(engine, correlationID string, input []byte) string {
	sum := sha256.Sum256(input)
	return tables.EscapeSegment(engine) + "/" + tables.EscapeSegment(correlationID) + "/" + hex.EncodeToString(sum[:])
}

// inputOrBlob returns the input as the history shows it.
func (m Message) inputOrBlob() json.RawMessage {
	if m.Blob == "" {
		return m.Input
	}
	reference, err := json.Marshal(map[string]string{"blob": m.Blob})
	if err != nil {
		return nil // unreachable: a map of strings
	}
	return reference
}
