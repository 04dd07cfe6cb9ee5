package sample

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// All seeds together reach every case, and each seed about its share of them.
func TestEveryCaseIsReached(t *testing.T) {
	t.Parallel()
	const share, cases = 8, 4000
	reached := make([]int, cases)
	for seed := range 200 {
		kept := 0
		for i := range cases {
			if keep(share, strconv.Itoa(seed), "case "+strconv.Itoa(i)) {
				reached[i]++
				kept++
			}
		}
		if kept < cases/share*7/10 || kept > cases/share*13/10 {
			t.Errorf("seed %d keeps %d of %d cases with a share of one in %d", seed, kept, cases, share)
		}
	}
	for i, n := range reached {
		if n == 0 {
			t.Errorf("no seed reaches case %d", i)
		}
	}
}

// Not parallel: it changes the environment.
func TestEnvironment(t *testing.T) {
	t.Setenv(Share, "4")
	t.Setenv(Seed, "one")
	first := Seeds(t, 100)
	if diff := cmp.Diff(first, Seeds(t, 100)); diff != "" {
		t.Errorf("the same environment chooses other cases:\n%s", diff)
	}
	t.Setenv(Share, "1")
	if all := Seeds(t, 100); len(all) != 100 {
		t.Errorf("a share of 1 keeps %d of 100 seeds", len(all))
	}
	t.Setenv(Share, "1000000")
	if few := Seeds(t, 3); len(few) != 1 {
		t.Errorf("the smallest share keeps %v, want one seed", few)
	}
	for _, wrong := range []string{"0", "-1", "1/8", "all"} {
		t.Setenv(Share, wrong)
		if _, err := share(); err == nil {
			t.Errorf("the share %q is accepted", wrong)
		}
	}
}
