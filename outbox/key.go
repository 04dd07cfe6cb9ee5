package outbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// KeyForm is a way of deriving idempotency keys. docs/outbox.md has test vectors for both forms.
type KeyForm int

// These are the forms of keys.
const (
	// LengthPrefixed is Key: different inputs are always encoded differently.
	LengthPrefixed KeyForm = iota + 1
	// Document is DocumentKey, the form in the outbox document, for producers that share keys with other implementations
	// of it.
	Document
)

// String names the form in errors.
func (f KeyForm) String() string {
	switch f {
	case LengthPrefixed:
		return "LengthPrefixed"
	case Document:
		return "Document"
	}
	return fmt.Sprintf("unknown key form %d", int(f))
}

// Key derives a key in this form.
func (f KeyForm) Key(tenant, category, entity, kind, version string) uuid.UUID {
	if f == Document {
		return DocumentKey(tenant, category, entity, kind, version)
	}
	return Key(tenant, category, entity, kind, version)
}

// Key derives an idempotency key from the parts that identify an event (outbox document, "Deterministic Key Utility"):
// its tenant, the domain, the entity, the kind of event, and the version. It is the SHA-256 of the five parts, each
// after its length in bytes (32 bits, big endian), as a UUID of version 8 (RFC 9562). Upper and lower case are
// different.
func Key(tenant, category, entity, kind, version string) uuid.UUID {
	h := sha256.New()
	for _, part := range [...]string{tenant, category, entity, kind, version} {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	var id uuid.UUID
	copy(id[:], h.Sum(nil))
	return version8(id)
}

// DocumentKey derives a key as the outbox document does: the SHA-256 of the parts in lower case with colons between
// them, with 0 for a version that is "". The first 16 bytes are read like new Guid(bytes) of .NET, the first three
// groups little endian. Parts that contain colons, or differ only in case, may collide: prefer Key.
func DocumentKey(tenant, category, entity, kind, version string) uuid.UUID {
	if version == "" {
		version = "0"
	}
	sum := sha256.Sum256([]byte(strings.ToLower(strings.Join([]string{tenant, category, entity, kind, version}, ":"))))
	var id uuid.UUID
	copy(id[:], sum[:])
	id[0], id[1], id[2], id[3] = sum[3], sum[2], sum[1], sum[0]
	id[4], id[5] = sum[5], sum[4]
	id[6], id[7] = sum[7], sum[6]
	return id
}

// legacyKey returns the key of a row from before idempotency keys: its id if that is a UUID, otherwise a key derived
// from it. It is always the same, so a delivery that is repeated before the key is stored has the same key.
func legacyKey(tenant, id string) uuid.UUID {
	if parsed, err := uuid.Parse(id); err == nil && parsed.String() == id && parsed != uuid.Nil {
		return parsed
	}
	return Key(tenant, "outbox", id, "legacy-row", "")
}

// version8 sets the version and variant of a custom UUID.
func version8(id uuid.UUID) uuid.UUID {
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}
