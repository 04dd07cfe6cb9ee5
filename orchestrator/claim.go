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

// dropClaim drops what a signal had claimed that is kept in another place by now. A blob that stays is of no harm.
func (r *Runtime) dropClaim(ctx context.Context, s Signal) {
	if s.Payload.Blob == "" {
		return
	}
	if err := r.dropBlob(ctx, s.InstanceID, s.Payload.Blob); err != nil {
		r.config.Log.Warn("a payload that is not needed any more stays", "orchestration", s.InstanceID, "reason", err.Error())
	}
}

// pack gives the body of a signal's message. What does not fit goes into a blob, which the message then names.
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

// unpack checks a signal and brings back what a blob holds of it. gone says that the blob is not there any more: the signal
// is a late duplicate, and what it brought is in the rounds, or its orchestration is gone.
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

// claim puts what is too large for a message into a blob, and gives the last part of its name, which no message of another
// id has.
func (r *Runtime) claim(ctx context.Context, orchestration, id string, v any) (string, error) {
	text, err := marshal(v)
	if err != nil {
		return "", err
	}
	hash := hashOf(append(json.RawMessage(id), text...))
	return hash, r.config.Blobs.Put(ctx, r.config.Container, blobName(orchestration, hash), text)
}

// validBlob says whether a message can name a blob so; "" is none.
func validBlob(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && (name == "" || len(raw) == sha256.Size)
}
