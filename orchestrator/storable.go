package orchestrator

import (
	"encoding/json"
	"fmt"

	"github.com/vibedata/roundhouse/internal/payload"
)

// These are the limits of every input, result, event and answer. A value of an orchestration that breaks them fails
// its call, or the orchestration, for good; a value from outside is rejected.
const (
	// MaxPayload bounds the JSON, in bytes.
	MaxPayload = payload.MaxBytes
	// MaxDepth bounds the nesting of arrays and objects.
	MaxDepth = payload.MaxDepth
)

// storable reports whether a payload can be stored: nil, or ErrPayload with the limit.
func storable(text json.RawMessage) error {
	if err := payload.Check(text); err != nil {
		return fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return nil
}

// encodePayload encodes a value for storage.
func encodePayload(v any) (json.RawMessage, error) {
	text, err := marshal(v)
	if err == nil {
		err = storable(text)
	}
	return text, err
}
