package orchestrator

import (
	"fmt"
	"testing"
)

// TestRoundKey: the keys are those that fmt pads, so that old rows keep their places.
func TestRoundKey(t *testing.T) {
	for n := 1; n < 10_000_000_000; n = 3*n + 1 {
		if got, want := roundKey(n, n-1), fmt.Sprintf("r-%08d-%08d", n, n-1); got != want {
			t.Errorf("round %d of execution %d has the key %s, want %s", n-1, n, got, want)
		}
	}
	for _, n := range []int{9, 10, 99, 100, 9_999_999, 10_000_000, 99_999_999, 100_000_000} {
		if got, want := roundKey(1, n), fmt.Sprintf("r-00000001-%08d", n); got != want {
			t.Errorf("round %d has the key %s, want %s", n, got, want)
		}
	}
}

// TestCommitTokens: no token repeats, from one journal or from two.
func TestCommitTokens(t *testing.T) {
	var a, b commitTokens
	seen := map[string]bool{}
	for range 1000 {
		seen[a.next()], seen[b.next()] = true, true
	}
	if len(seen) != 2000 {
		t.Errorf("2000 tokens, %d different ones", len(seen))
	}
}
