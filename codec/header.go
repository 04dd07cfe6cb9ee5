package codec

import (
	"encoding/binary"
	"fmt"
)

// header precedes the data that an Envelope has encrypted. It holds the id of the key-encryption key and the wrapped
// data key, each preceded by its length in two bytes.
type header struct {
	id      string
	wrapped []byte
}

func (h header) encode() []byte {
	out := make([]byte, 0, 4+len(h.id)+len(h.wrapped))
	out = binary.BigEndian.AppendUint16(out, uint16(len(h.id)))
	out = append(out, h.id...)
	out = binary.BigEndian.AppendUint16(out, uint16(len(h.wrapped)))
	return append(out, h.wrapped...)
}

// decodeHeader returns the header of sealed, and the bytes after it.
func decodeHeader(sealed []byte) (h header, rest []byte, err error) {
	id, rest, ok := field(sealed)
	wrapped, rest, also := field(rest)
	if !ok || !also || len(id) == 0 || len(id) > MaxKeyID || len(wrapped) == 0 || len(wrapped) > MaxWrapped {
		return h, nil, fmt.Errorf("%w: its header cannot be read", ErrDamaged)
	}
	return header{string(id), wrapped}, rest, nil
}

func field(data []byte) (value, rest []byte, ok bool) {
	if len(data) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(data))
	if data = data[2:]; len(data) < n {
		return nil, nil, false
	}
	return data[:n], data[n:], true
}
