package sample

import "testing"

func TestCommand(t *testing.T) {
	t.Parallel()
	got := command(packagePath(), "TestX/a_(b)/don't", "-seed=7")
	if want := `ROUNDHOUSE_TEST_SHARE=1 go test ./internal/sample -run '^TestX$/^a_\(b\)$/^don.t$' -seed=7`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
