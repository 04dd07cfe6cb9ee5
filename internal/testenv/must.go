package testenv

import "testing"

// OK ends the test when a step that it needs fails.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns the value of a step that the test needs, and ends the test when the step fails: Must(store.Get(ctx, key))(t).
func Must[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return value
	}
}
