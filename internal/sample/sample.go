// Package sample decides which cases of an exhaustive test a run carries out. It lets a pull request try a part of all
// crash points, seeds and programs, and a nightly run all of them, with one rule for every test.
//
// The choice depends only on the case's name, the share and the seed: the same environment repeats it on any machine,
// and all seeds together reach every case. The package owns no storage keys, but two environment variables.
package sample

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"testing"
)

const (
	// Share is the environment variable that holds n for one case in n; "1" is every case. Unset, a run tries every case,
	// and one in ShortShare with -short.
	Share = "ROUNDHOUSE_TEST_SHARE"
	// Seed is the environment variable that chooses among the parts of one size, for example a commit. Unset is another
	// seed.
	Seed = "ROUNDHOUSE_TEST_SEED"
	// ShortShare is the share of a -short run.
	ShortShare = 256
)

// Keep reports whether this run carries out the case that parts name within t. A share that is not a positive number
// fails t.
func Keep(t testing.TB, parts ...any) bool {
	t.Helper()
	share, err := share()
	if err != nil {
		t.Fatal(err)
	}
	return keep(share, os.Getenv(Seed), fmt.Sprintln(append([]any{t.Name()}, parts...)...))
}

// Seeds returns the numbers of 1 to n that this run carries out, in order, and always at least one.
func Seeds(t testing.TB, n int) []int {
	t.Helper()
	var chosen []int
	for seed := 1; seed <= n; seed++ {
		if Keep(t, seed) {
			chosen = append(chosen, seed)
		}
	}
	if len(chosen) == 0 {
		chosen = []int{1 + int(sum(os.Getenv(Seed)+t.Name())%uint64(n))}
	}
	return chosen
}

func share() (uint64, error) {
	text := os.Getenv(Share)
	switch {
	case text == "" && testing.Short():
		return ShortShare, nil
	case text == "":
		return 1, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%s: %q is not a positive number", Share, text)
	}
	return n, nil
}

func keep(share uint64, seed, name string) bool {
	return sum(name)%share == sum(seed)%share
}

// sum returns a hash whose low bits depend on every byte.
func sum(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}
