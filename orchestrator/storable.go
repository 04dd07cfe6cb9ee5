package orchestrator

import (
	"encoding/json"
	"fmt"

	"github.com/vibedata/roundhouse/internal/payload"
)

// The limits of every input, result, event and answer. What an orchestration cannot store fails the call that would need
// it, or the orchestration, for good; what comes from outside is refused.
const (
	// MaxPayload is in bytes of JSON.
	MaxPayload = payload.MaxBytes
	// MaxDepth is how deep arrays and objects may be nested.
	MaxDepth = payload.MaxDepth
)

// storable says whether a payload can be stored: nil, or ErrPayload with the limit.
func storable(text json.RawMessage) error {
	if err := payload.Check(text); err != nil {
		return fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return nil
}

// encodePayload is marshal for what is to be stored.
func encodePayload(v any) (json.RawMessage, error) {
	text, err := marshal(v)
	if err == nil {
		err = storable(text)
	}
	return text, err
}
