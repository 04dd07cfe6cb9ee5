package codec

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// columnSealed and its successors Sealed2, Sealed3 and so on together hold the encrypted columns of a row.
	columnSealed = "Sealed"
	// chunkBytes is the size of a binary property, maxChunks the most chunks of an entity.
	chunkBytes = 64 << 10
	maxChunks  = 16
	// maxSelect is the most columns that a query can select.
	maxSelect = 252
)

// These are the types of a packed column.
const (
	kindText   = 's'
	kindBinary = 'b'
)

// pack divides the columns of a row into those that stay as they are and the bytes of those to encrypt. The bytes hold
// the name, type and value of each column, in the order of names. They are nil if none of these columns has content.
func pack(props map[string]any, stays func(column string) bool) (clear map[string]any, packed []byte) {
	var hidden []string
	size := 0
	for name, value := range props {
		if n := content(value); n > 0 && !stays(name) {
			hidden = append(hidden, name)
			size += len(name) + n + 8
		}
	}
	if len(hidden) == 0 {
		return props, nil
	}
	clear = maps.Clone(props)
	packed = make([]byte, 0, size)
	slices.Sort(hidden)
	for _, name := range hidden {
		packed = appendField(packed, name)
		switch value := props[name].(type) {
		case string:
			packed = appendField(append(packed, kindText), value)
		case []byte:
			packed = appendField(append(packed, kindBinary), string(value))
		}
		delete(clear, name)
	}
	return clear, packed
}

// content is the length of a text or binary value, 0 for any other.
func content(value any) int {
	switch value := value.(type) {
	case string:
		return len(value)
	case []byte:
		return len(value)
	}
	return 0
}

func appendField(out []byte, text string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

// unpack adds packed columns to those of a row.
func unpack(packed []byte, props map[string]any) error {
	for len(packed) > 0 {
		name, rest, ok := cutField(packed)
		if !ok || len(rest) == 0 {
			return fmt.Errorf("%w: its columns cannot be read", ErrDamaged)
		}
		value, after, ok := cutField(rest[1:])
		switch kind := rest[0]; {
		case ok && kind == kindText:
			props[string(name)] = string(value)
		case ok && kind == kindBinary:
			props[string(name)] = slices.Clone(value)
		default:
			return fmt.Errorf("%w: its column %.64q cannot be read", ErrDamaged, name)
		}
		packed = after
	}
	return nil
}

func cutField(data []byte) (value, rest []byte, ok bool) {
	n, used := binary.Uvarint(data)
	if used <= 0 || n > uint64(len(data)-used) {
		return nil, nil, false
	}
	data = data[used:]
	return data[:n], data[n:], true
}

// putSealed adds encrypted columns to a row. The error is tables.ErrTooLarge.
func putSealed(props map[string]any, sealed []byte) error {
	if len(sealed) > maxChunks*chunkBytes {
		return fmt.Errorf("%w: the encrypted columns take %d bytes of at most %d", tables.ErrTooLarge, len(sealed), maxChunks*chunkBytes)
	}
	for i := 1; len(sealed) > 0; i++ {
		n := min(len(sealed), chunkBytes)
		props[sealedColumn(i)] = sealed[:n:n]
		sealed = sealed[n:]
	}
	return nil
}

// takeSealed removes the encrypted columns from a row and returns them; nil without any.
func takeSealed(props map[string]any) []byte {
	sealed, ok := props[columnSealed].([]byte)
	if !ok {
		return nil
	}
	delete(props, columnSealed)
	for i := 2; ; i++ {
		chunk, ok := props[sealedColumn(i)].([]byte)
		if !ok {
			return sealed
		}
		sealed = append(sealed, chunk...)
		delete(props, sealedColumn(i))
	}
}

func sealedColumn(i int) string {
	if i == 1 {
		return columnSealed
	}
	return columnSealed + strconv.Itoa(i)
}
