package cli

import (
	"slices"
	"strings"
	"testing"
)

// Commands refuse input that is too deep for the API before they send it, with the limit: alone, or inside the
// request's body.
func TestDeepInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, "waits", "")
	for _, tt := range []struct {
		wraps int
		args  []string
	}{
		{1, []string{"orchestration", "start", "approval", "--input"}},
		{0, []string{"orchestration", "raise", "waits", "unread", "--input"}},
		{1, []string{"task", "complete", "waits", "1-1", "--answer"}},
		{0, []string{"poller", "reset-to-cursor", "orders", "5"}},
	} {
		for _, levels := range []int{500, 501, 9_998} {
			w.mu.Lock()
			w.asked = nil
			w.mu.Unlock()
			value := strings.Repeat("[", levels-tt.wraps) + strings.Repeat("]", levels-tt.wraps)
			r := w.run(t, append(slices.Clone(tt.args), value)...)
			if refused := strings.Contains(r.err, "nested too deep: 500 levels"); refused != (levels > 500) || refused && (r.code != 2 || len(w.asked) != 0) {
				t.Errorf("%v, %d levels: %d %.200s, asked %v", tt.args, levels, r.code, r.err, w.asked)
			}
		}
	}
}
