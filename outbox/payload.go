package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/blobs"
)

const (
	// spillPayload is the largest payload that a row holds, in bytes.
	spillPayload = 48 << 10
	// maxRequest is the used part of a transaction's 4 MiB, in bytes.
	maxRequest = 3 << 20
	// rowOverhead is the size of a message's rows in a transaction besides its texts, in bytes.
	rowOverhead = 8 << 10
)

// requestSize returns an upper bound of the message's bytes in a transaction. The payload counts as JSON text, in which
// a quotation mark takes two bytes and < and > take six, and counts twice if its p- row repeats it.
func (m *message) requestSize() int {
	size := 0
	for _, c := range m.Payload {
		switch {
		case c == '<' || c == '>' || c == '&' || c < 0x20:
			size += 6
		case c == '"' || c == '\\':
			size += 2
		default:
			size++
		}
	}
	// U+2028 and U+2029 also take six bytes for three; no other character does.
	size += size / 2
	if len(m.Payload) <= inlinePayload {
		size *= 2
	}
	return size + 6*len(m.Error) + rowOverhead
}

// spill writes a payload that is too large for a row to a blob, before the row that names it. The name belongs to this
// Add alone, so that deleting the blob cannot affect another payload. The tenant comes first: unreferenced blobs are
// searched by tenant.
func (o *Outbox) spill(ctx context.Context, m *message) error {
	if len(m.Payload) <= spillPayload || m.blob != "" {
		return nil
	}
	if _, err := o.register(ctx, m.TenantID); err != nil {
		return err
	}
	name := digest(m.TenantID) + "/" + m.ID + "/" + m.origin
	if err := o.blobs.Put(ctx, o.container, name, m.Payload); err != nil {
		return fmt.Errorf("spill the payload: %w", err)
	}
	m.blob, m.Payload = name, nil
	return nil
}

// dropSpilled deletes the blob of an Add that found its message existing already. A crash before it leaves an
// unreferenced blob.
func (o *Outbox) dropSpilled(ctx context.Context, m *message) {
	if m.blob == "" {
		return
	}
	if err := o.blobs.Delete(ctx, o.container, m.blob); err != nil {
		o.logger.WarnContext(ctx, "outbox payload of a duplicate not removed", "blob", m.blob, "error", err)
	}
}

// payload returns a message's payload, read from its blob if necessary.
func (o *Outbox) payload(ctx context.Context, m *message) (json.RawMessage, error) {
	if m.blob == "" {
		return m.Payload, nil
	}
	data, err := o.blobs.Get(ctx, o.container, m.blob)
	if errors.Is(err, blobs.ErrNotFound) {
		return nil, fmt.Errorf("%w: payload %s is missing", ErrCorrupt, m.blob)
	}
	if err != nil {
		return nil, fmt.Errorf("read the payload: %w", err)
	}
	return data, nil
}
