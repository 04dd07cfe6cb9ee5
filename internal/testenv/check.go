package testenv

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// maxDiff is how many lines of a difference a failure shows, so that the output of a test stays below thirty lines.
const maxDiff = 25

// test is the part of testing.TB that Check and Diff need; rapid's tests have it, too.
type test interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// Check ends the test when err is not nil. It is for steps that are not what the test is about.
func Check(t test, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Done returns a Check for calls that also return a value which the test does not need: Done(t)(store.Create(ctx, x)).
func Done(t test) func(value any, err error) {
	return func(_ any, err error) {
		t.Helper()
		Check(t, err)
	}
}

// Diff fails the test when got differs from want, with the difference first and what was compared before it; format may be "".
func Diff[T any](t test, want, got T, format string, args ...any) {
	t.Helper()
	diff := cmp.Diff(want, got)
	if diff == "" {
		return
	}
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	if more := len(lines) - maxDiff; more > 0 {
		lines = append(lines[:maxDiff], fmt.Sprintf("... and %d more lines", more))
	}
	t.Errorf("%s", strings.TrimSpace(fmt.Sprintf(format, args...)+" (-want +got):\n"+strings.Join(lines, "\n")))
}

// Bubble runs f as a parallel subtest in a bubble of virtual time.
func Bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}
