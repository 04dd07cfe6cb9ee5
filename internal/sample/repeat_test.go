package sample

import "testing"

func TestCommand(t *testing.T) {
	t.Parallel()
	got := command(packagePath(), "TestX/a_(b)/don't", "-seed=7")
	if want := `ROUNDHOUSE_TEST_SHARE=1 go test ./internal/sample -run '^TestX$/^a_\(b\)$/^don.t$' -seed=7`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Not parallel: it changes the environment.
func TestSize(t *testing.T) {
	for share, want := range map[string]int{"1": 1000, "8": 125, "64": 20} {
		t.Setenv(Share, share)
		if got := Size(t, 1000, 20); got != want {
			t.Errorf("a share of %s makes %d, want %d", share, got, want)
		}
	}
}
