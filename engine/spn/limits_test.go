package spn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine/spn"
)

// Inputs at their limits are accepted unchanged; beyond them they are refused with the limit.
func TestSizesOfInputs(t *testing.T) {
	t.Parallel()
	const application = "1c2f6d3e-9e3f-4a44-8a2e-6f1d1d4a6f11"
	frame := `{"applicationId":"` + application + `","slot":"s"}`
	for _, tt := range []struct {
		what     string
		limit    int
		document func(n int) string
		slot     func(n int) string
	}{
		{"document", 8 << 10, func(n int) string { return frame + strings.Repeat(" ", n-len(frame)) }, func(int) string { return "s" }},
		{"slot", 512, func(n int) string { return strings.Replace(frame, `"s"`, `"`+strings.Repeat("<", n)+`"`, 1) }, func(n int) string { return strings.Repeat("<", n) }},
	} {
		for n := tt.limit - 1; n <= tt.limit+1; n++ {
			in, err := spn.ParseInput(spn.OperationRotate, []byte(tt.document(n)))
			if (err == nil) != (n <= tt.limit) || err == nil && in.Slot != tt.slot(n) || err != nil && !strings.Contains(err.Error(), fmt.Sprint(tt.limit)) {
				t.Errorf("%s of %d: %v", tt.what, n, err)
			}
		}
	}
}
