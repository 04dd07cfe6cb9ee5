// Package fuzzvalue makes values from the bytes of a fuzz target, so that a target can test that a decoder reads the
// output of its encoder. It prefers difficult values: characters that JSON, keys or UTF-16 treat specially, lengths
// near limits, extreme numbers.
package fuzzvalue

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Source makes values. When its bytes are used up, all values are zero.
type Source struct{ data []byte }

// New returns a Source of these bytes.
func New(data []byte) *Source { return &Source{data} }

// Seeds adds seeds to a target: no bytes, and some bytes without a pattern.
func Seeds(f *testing.F) {
	f.Helper()
	f.Add([]byte{})
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, seed))
		data := make([]byte, 16<<(seed%6))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
}

// Byte returns the next byte.
func (s *Source) Byte() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

// Bool returns true half of the time.
func (s *Source) Bool() bool { return s.Byte()&1 == 1 }

// Int returns a number from 0 to most, both included.
func (s *Source) Int(most int) int {
	n := int(s.Byte())
	if most > math.MaxUint8 {
		n = n<<16 | int(s.Byte())<<8 | int(s.Byte())
	}
	return n % (most + 1)
}

// Int64 returns any number, the extremes among them.
func (s *Source) Int64() int64 {
	switch s.Int(4) {
	case 0:
		return math.MinInt64
	case 1:
		return math.MaxInt64
	case 2:
		return int64(s.Byte())
	default:
		n := int64(0)
		for range 8 {
			n = n<<8 | int64(s.Byte())
		}
		return n
	}
}

// Bytes returns up to most bytes.
func (s *Source) Bytes(most int) []byte {
	out := make([]byte, s.Int(min(most, 64)))
	for i := range out {
		out[i] = s.Byte()
	}
	return out
}

// runes returns characters that some layer treats specially.
func runes() []string {
	return []string{"a", "B", "0", "<", ">", "&", `"`, `\`, "/", "#", "?", "%", "'", "=", "~", "-", ".", " ", "\t", "\n", "\r", "\x00", "\x1f", "\x7f", "\u0085",
		"\u00e9", "\u2028", "\u2029", "\ufeff", "\ufffd", "\uffff", "\u8a9e", "\U0001d11e", "{", "}", "[", "]", ":", ",", "_", "+"}
}

func (s *Source) rune() string {
	all := runes()
	return all[s.Int(len(all)-1)]
}

// Text returns UTF-8 of up to most bytes: short and mixed, or long and of one character, then often of the maximum
// length.
func (s *Source) Text(most int) string {
	var b strings.Builder
	if s.Int(7) == 0 {
		r := s.rune()
		b.WriteString(strings.Repeat(r, max(0, most-s.Int(3))/len(r)))
		return b.String()
	}
	for n := s.Int(24); n > 0; n-- {
		r := s.rune()
		if b.Len()+len(r) > most {
			break
		}
		b.WriteString(r)
	}
	return b.String()
}

// Name returns a Text that is not empty.
func (s *Source) Name(most int) string {
	if text := s.Text(most); text != "" {
		return text
	}
	return "n"
}

// Time returns a time of the years 1970 to 9999 in UTC, in microseconds.
func (s *Source) Time() time.Time {
	const last = 253402300799999999
	micros := s.Int64() % (last + 1)
	if micros < 0 {
		micros = -micros
	}
	return time.UnixMicro(micros).UTC()
}

// Strings returns up to most texts, each of up to length bytes; nil for none.
func (s *Source) Strings(most, length int) []string {
	var out []string
	for range s.Int(most) {
		out = append(out, s.Name(length))
	}
	return out
}

// JSON returns a JSON value without white space, of some levels.
func (s *Source) JSON() json.RawMessage {
	text, err := json.Marshal(s.value(5))
	if err != nil {
		panic(err) // unreachable: all its values can be marshalled
	}
	return text
}

func (s *Source) value(levels int) any {
	kind := s.Int(7)
	if levels == 0 {
		kind %= 5
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return s.Bool()
	case 2:
		return s.Int64()
	case 3:
		return json.Number([]string{"1e400", "-0", "0.1000", "1E+5", "123456789012345678901234567890"}[s.Int(4)])
	case 4:
		return s.Text(300)
	case 5, 6:
		out := []any{}
		for range s.Int(3) {
			out = append(out, s.value(levels-1))
		}
		return out
	default:
		out := map[string]any{}
		for range s.Int(3) {
			out[s.Text(40)] = s.value(levels - 1)
		}
		return out
	}
}
