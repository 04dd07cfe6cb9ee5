package hmac_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine/hmac"
)

// Inputs at their limits are accepted unchanged; beyond them they are refused with the limit.
func TestSizesOfInputs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what  string
		limit int
		parse func(n int) (hmac.Input, error)
		slot  func(n int) string
	}{
		{"document", 8 << 10, func(n int) (hmac.Input, error) {
			return hmac.ParseInput("", "i", []byte(`{"slot":"s"`+strings.Repeat(" ", n-12)+`}`))
		}, func(int) string { return "s" }},
		{"slot", 512, func(n int) (hmac.Input, error) {
			return hmac.ParseInput("", "i", []byte(`{"slot":"`+strings.Repeat("<", n)+`"}`))
		}, func(n int) string { return strings.Repeat("<", n) }},
		{"instance", 512, func(n int) (hmac.Input, error) { return hmac.ParseInput("", strings.Repeat("i", n), nil) }, func(int) string { return "" }},
		{"instance as a key", 512, func(n int) (hmac.Input, error) {
			return hmac.ParseInput("", strings.Repeat("/", 170)+strings.Repeat("i", n-510), nil)
		}, func(int) string { return "" }},
	} {
		for n := tt.limit - 1; n <= tt.limit+1; n++ {
			in, err := tt.parse(n)
			if (err == nil) != (n <= tt.limit) || err == nil && in.Slot != tt.slot(n) || err != nil && !strings.Contains(err.Error(), fmt.Sprint(tt.limit)) {
				t.Errorf("%s of %d: %v", tt.what, n, err)
			}
		}
	}
}
