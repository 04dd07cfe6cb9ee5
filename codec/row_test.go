package codec

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// Packed columns are unpacked unchanged, with any names and values, and no others.
func TestPack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		props := map[string]any{"Number": int64(1)}
		for name, text := range rapid.MapOf(rapid.StringMatching(`[A-Z][a-z]{0,5}[0-9]?`), rapid.String()).Draw(t, "texts") {
			props[name] = text
		}
		for name, data := range rapid.MapOf(rapid.StringMatching(`B[a-z]{3,5}`), rapid.SliceOf(rapid.Byte())).Draw(t, "data") {
			props[name] = append([]byte{}, data...)
		}
		stays := func(column string) bool { return column < "M" }
		clear, packed := pack(props, stays)
		got := map[string]any{}
		for name, value := range clear {
			if content(value) > 0 && !stays(name) {
				t.Errorf("%s is in clear", name)
			}
			got[name] = value
		}
		expanded, err := expand(squeeze(packed, rapid.IntRange(0, 100).Draw(t, "from")))
		if err == nil {
			err = unpack(expanded, got)
		}
		if diff := cmp.Diff(props, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// The chunks of a row are joined as they were divided.
func TestChunks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, chunkBytes - 1, chunkBytes, chunkBytes + 1, maxChunks * chunkBytes} {
		props, sealed := map[string]any{"Name": "n"}, bytes.Repeat([]byte{7}, n)
		testenv.OK(t, putSealed(props, sealed))
		if got := takeSealed(props); !bytes.Equal(got, sealed) || len(props) != 1 {
			t.Errorf("%d bytes came back as %d, with %d columns", n, len(got), len(props))
		}
	}
}

// Bytes that pack did not write are damaged, and never a crash.
func FuzzUnpack(f *testing.F) {
	_, packed := pack(map[string]any{"Text": "x", "Data": []byte("y")}, func(string) bool { return false })
	f.Add(squeeze(packed, 0))
	f.Add(squeeze(packed, 1<<20))
	f.Add([]byte{formPlain, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := expand(data)
		if err == nil {
			err = unpack(out, map[string]any{})
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
	})
}
