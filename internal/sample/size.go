package sample

import "testing"

// Size returns the number of objects for a test of large numbers: n divided by the share, and at least least.
func Size(t testing.TB, n, least int) int {
	t.Helper()
	share, err := share()
	if err != nil {
		t.Fatal(err)
	}
	return max(n/int(share), least)
}

// Chosen returns the seeds of a test whose flags can request one seed, or the first seeds. Without them, which is 0, it
// returns Seeds(t, n).
func Chosen(t testing.TB, n, first, one int) []int {
	t.Helper()
	switch {
	case one != 0:
		return []int{one}
	case first == 0:
		return Seeds(t, n)
	}
	seeds := make([]int, first)
	for i := range seeds {
		seeds[i] = i + 1
	}
	return seeds
}
