package tables

import (
	"encoding/base64"
	"unicode/utf8"
)

// Each operation of a transaction adds a MIME part, a request line and headers; each property adds punctuation and, at
// worst, a type annotation. Both figures are slightly above the bytes that the SDK writes.
const (
	opOverhead       = 1024
	propertyOverhead = 64
	numberSize       = 40
)

// utf16Len returns the length of valid UTF-8 in UTF-16 units.
func utf16Len(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < 0x80 || c >= 0xc0 && c < 0xf0:
			n++
		case c >= 0xf0:
			n += 2
		}
	}
	return n
}

// upperSize returns an upper bound of RequestSize without examining texts. It suffices for most transactions, which are
// far from the limit.
func upperSize(op *Op) int {
	size := opOverhead + 9*(len(op.Entity.Partition)+len(op.Entity.Row))
	for name, v := range op.Entity.Properties {
		size += propertyOverhead + 2*len(name)
		switch v := v.(type) {
		case string:
			size += 6 * len(v)
		case []byte:
			size += base64.StdEncoding.EncodedLen(len(v))
		default:
			size += numberSize
		}
	}
	return size
}

// RequestSize returns the maximum number of bytes of an operation in the body of a transaction: its keys in the URL and
// in JSON, and its properties as JSON, where binary is base64. It is for implementations of Store.
func RequestSize(op Op) int {
	e := &op.Entity
	size := opOverhead + 3*(len(e.Partition)+len(e.Row)) + jsonLen(e.Partition) + jsonLen(e.Row)
	if op.Kind == OpDelete {
		return size
	}
	for name, v := range e.Properties {
		if v == nil {
			continue
		}
		size += propertyOverhead + 2*len(name)
		switch v := v.(type) {
		case string:
			size += jsonLen(v)
		case []byte:
			size += base64.StdEncoding.EncodedLen(len(v))
		default:
			size += numberSize
		}
	}
	return size
}

// jsonLen returns the length of a text in JSON, as encoding/json writes it, without the quotes.
func jsonLen(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			n += jsonByteLen(c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == '\u2028' || r == '\u2029' {
			n += 6
		} else {
			n += size
		}
		i += size
	}
	return n
}

func jsonByteLen(c byte) int {
	switch c {
	case '"', '\\', '\b', '\f', '\n', '\r', '\t':
		return 2
	case '<', '>', '&':
		return 6
	}
	if c < 0x20 {
		return 6
	}
	return 1
}
