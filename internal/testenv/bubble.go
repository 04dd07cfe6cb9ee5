package testenv

import (
	"testing"
	"testing/synctest"
)

// Bubble runs f as a parallel subtest in a bubble of virtual time.
func Bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}
