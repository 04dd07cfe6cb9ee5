package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/queues"
)

// dropClaim deletes the blob that held the payload of an applied signal; the rounds hold the payload by then. A
// failure to delete does no harm.
func (r *Runtime) dropClaim(ctx context.Context, s Signal) {
	if s.Payload.Blob == "" {
		return
	}
	if err := r.dropBlob(ctx, s.InstanceID, s.Payload.Blob); err != nil {
		r.config.Log.WarnContext(ctx, "a payload that is not needed any more stays", "orchestrationId", s.InstanceID, "error", err.Error())
	}
}

// pack returns the message body for a signal. A payload that does not fit goes into a blob, and the message names that
// blob (claim check).
func (r *Runtime) pack(ctx context.Context, s Signal) ([]byte, error) {
	body, err := marshal(s)
	if err != nil || len(body) <= queues.MaxBody {
		return body, err
	}
	if s.Payload.Blob, err = r.claim(ctx, s.InstanceID, s.SignalID, s.Payload); err != nil {
		return nil, err
	}
	s.Payload = Payload{Blob: s.Payload.Blob, Event: s.Payload.Event, Command: s.Payload.Command}
	return marshal(s)
}

// unpack validates a signal and loads the payload that it keeps in a blob. gone reports that the blob no longer
// exists: the signal is a late duplicate whose payload the rounds hold, or its orchestration is gone.
func (r *Runtime) unpack(ctx context.Context, s Signal) (_ Signal, gone bool, err error) {
	if err := s.validate(); err != nil || s.Payload.Blob == "" {
		return s, false, err
	}
	text, err := r.config.Blobs.Get(ctx, r.config.Container, blobName(s.InstanceID, s.Payload.Blob))
	if errors.Is(err, blobs.ErrNotFound) {
		if s.Type != ExternalSignal {
			s.Payload = Payload{Lost: s.Payload.Lost}
		}
		return s, true, nil
	}
	claimed := s.Payload.Blob
	if err == nil {
		err = json.Unmarshal(text, &s.Payload)
	}
	s.Payload.Blob = claimed
	if err == nil {
		err = s.Payload.storable()
	}
	if err != nil {
		return s, false, fmt.Errorf("signal to orchestration %s: %w", s.InstanceID, err)
	}
	return s, false, nil
}

// claim writes a value that is too large for a message to a blob, and returns the last part of the blob's name. The
// name depends on id, so that no other message uses the same blob.
func (r *Runtime) claim(ctx context.Context, orchestration, id string, v any) (string, error) {
	text, err := marshal(v)
	if err != nil {
		return "", err
	}
	hash := hashOf(append(json.RawMessage(id), text...))
	return hash, r.config.Blobs.Put(ctx, r.config.Container, blobName(orchestration, hash), text)
}

// validBlob reports whether name is a valid blob name in a message; "" means no blob.
func validBlob(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && (name == "" || len(raw) == sha256.Size)
}
