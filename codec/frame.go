package codec

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"

	"github.com/vibedata/roundhouse/blobs"
)

// magic begins encrypted blobs and messages. Its first byte begins no UTF-8 text, and so no JSON; nor does it begin a
// deflated text, because its bits name an undefined block type. The last byte is the version.
const magic = "\x8fRHP\x01"

// framed reports whether data is an encrypted blob or message.
func framed(data []byte) bool { return bytes.HasPrefix(data, []byte(magic)) }

// frame marks the output of a Codec.
func frame(sealed []byte) []byte { return append([]byte(magic), sealed...) }

// unframe is the inverse of frame.
func unframe(data []byte) []byte { return data[len(magic):] }

// These are the first bytes of encrypted data and say whether it was compressed before.
const (
	formPlain   = 0
	formDeflate = 1
)

const (
	// deflateFrom is the size in bytes from which rows and messages are compressed. A smaller value has room for the
	// overhead of encryption everywhere. Any larger text is shorter compressed and encrypted than in clear, because no
	// UTF-8 text uses all bytes evenly.
	deflateFrom = 16 << 10
	// deflateBlobFrom is the same for blobs, most of which are far from any limit.
	deflateBlobFrom = blobs.MaxSize - MaxOverhead
	// maxInflated bounds inflated data, in bytes.
	maxInflated = blobs.MaxSize
)

// squeeze compresses data from a size on, unless that makes it longer.
func squeeze(data []byte, from int) []byte {
	if len(data) >= from {
		out := bytes.NewBuffer(make([]byte, 0, len(data)))
		out.WriteByte(formDeflate)
		w, _ := flate.NewWriter(out, flate.BestSpeed) // the level is valid
		_, _ = w.Write(data)                          // a bytes.Buffer never fails
		_ = w.Close()
		if out.Len() <= len(data) {
			return out.Bytes()
		}
	}
	return append([]byte{formPlain}, data...)
}

// expand is the inverse of squeeze. Its argument was authenticated, so an error means that a newer program wrote it.
func expand(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrDamaged)
	}
	switch form, data := data[0], data[1:]; form {
	case formPlain:
		return data, nil
	case formDeflate:
		out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), maxInflated+1))
		if err != nil || len(out) > maxInflated {
			return nil, fmt.Errorf("%w: it cannot be decompressed", ErrDamaged)
		}
		return out, nil
	default:
		return nil, fmt.Errorf("%w: it has the form %d, which this program does not know: update it", ErrDamaged, form)
	}
}
