package testenv

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// diffLines is the number of lines of a difference that a failure shows.
const diffLines = 30

// Test is the part of *testing.T and *rapid.T that a step needs.
type Test interface {
	Helper()
	Fatal(args ...any)
}

// OK ends the test when a step that it needs fails.
func OK(t Test, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns the value of a step that the test needs, and ends the test when the step fails:
// Must(store.Get(ctx, key))(t).
func Must[T any](value T, err error) func(t Test) T {
	return func(t Test) T {
		t.Helper()
		OK(t, err)
		return value
	}
}

// Comparison is the part of a test that Equal needs.
type Comparison interface {
	Helper()
	Error(args ...any)
}

// Equal reports the first lines of the difference between two values of one type. what is their name.
func Equal[T any](t Comparison, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	diff := cmp.Diff(want, got, options...)
	if diff == "" {
		return
	}
	lines := strings.SplitAfter(strings.TrimSuffix(diff, "\n"), "\n")
	more := ""
	if n := len(lines) - diffLines; n > 0 {
		lines, more = lines[:diffLines], fmt.Sprintf("... and %d lines more", n)
	}
	t.Error(strings.TrimSpace(what+" (-want +got):") + "\n" + strings.Join(lines, "") + more)
}
