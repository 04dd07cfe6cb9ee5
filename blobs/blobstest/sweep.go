package blobstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
)

// Names up to the longest one hold their blobs. The store itself refuses a longer name and returns the limit.
func testNameSweep(t *testing.T, e env) {
	for _, tt := range []struct {
		what  string
		limit int
		name  func(n int) string
	}{
		{"units", 1024, func(n int) string { return strings.Repeat("n", n) }},
		{"units of three bytes", 1024, func(n int) string { return strings.Repeat("語", n) }},
		{"pairs of units", 512, func(n int) string { return strings.Repeat("𝄞", n) }},
		{"segments", 254, func(n int) string { return strings.Repeat("s/", n-1) + "s" }},
	} {
		for n := tt.limit - 1; n <= tt.limit+1; n++ {
			what, name := fmt.Sprintf("%d %s", n, tt.what), tt.name(n)
			err := e.store.Put(t.Context(), e.container, name, []byte(what))
			if n > tt.limit {
				wantError(t, what, err, blobs.ErrTooLarge)
				if err == nil || !strings.Contains(err.Error(), "at most") {
					t.Errorf("%s: %.200v does not say the limit", what, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", what, err)
			} else if got := e.get(t, name); string(got) != what {
				t.Errorf("%s: it holds %q", what, got)
			}
		}
	}
	for n := 62; n <= 64; n++ {
		wantErr := error(nil)
		if n > 63 {
			wantErr = blobs.ErrInvalid
		}
		wantError(t, fmt.Sprintf("a container's name of %d", n), e.store.CreateContainer(t.Context(), e.container+strings.Repeat("x", n-len(e.container))), wantErr)
	}
}
