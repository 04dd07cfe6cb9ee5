package sample

import "testing"

// Size returns how many things a test makes whose subject is their number: n divided by the share, and at least least.
func Size(t testing.TB, n, least int) int {
	t.Helper()
	share, err := share()
	if err != nil {
		t.Fatal(err)
	}
	return max(n/int(share), least)
}
