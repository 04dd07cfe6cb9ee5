package testenv

// Test is what a step needs of a test: that of a *testing.T and of a *rapid.T.
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

// Must returns the value of a step that the test needs, and ends the test when the step fails: Must(store.Get(ctx, key))(t).
func Must[T any](value T, err error) func(t Test) T {
	return func(t Test) T {
		t.Helper()
		OK(t, err)
		return value
	}
}
