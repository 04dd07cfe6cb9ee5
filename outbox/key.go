package outbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// KeyForm is a way to derive idempotency keys. docs/outbox.md has test vectors for both.
type KeyForm int

// The forms of keys.
const (
	// LengthPrefixed is Key: no two different inputs look alike.
	LengthPrefixed KeyForm = iota + 1
	// Document is DocumentKey: what the outbox document describes, for producers that share keys with it.
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

// Key derives an idempotency key from what makes an event the same event (outbox document, "Deterministic Key
// Utility"): who owns it, the domain, which thing, what happened to it, and which time. It is the SHA-256 of the five
// parts, each behind its length in bytes (32 bits, big endian), as a UUID of version 8 (RFC 9562). Upper and lower case
// are different.
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

// DocumentKey derives a key as the outbox document has it: the parts in lower case with colons between them, 0 for a
// version that is "", SHA-256, and its first 16 bytes as new Guid(bytes) of .NET reads them, with the first three groups
// little endian. Parts that hold colons, or differ in case only, may collide: prefer Key.
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

// legacyKey is the key of a row from before there were keys: its id when that is one, else one made of it, the same
// each time, so that a delivery that is repeated before the key is stored repeats it, too.
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
