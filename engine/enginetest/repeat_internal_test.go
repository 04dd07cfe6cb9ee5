package enginetest

import "testing"

// The command repeats exactly one case, with any share.
func TestRepeat(t *testing.T) {
	t.Parallel()
	want := `ROUNDHOUSE_TEST_SHARE=1 go test ./engine/enginetest -run '^TestX$/^3-tables-Get-409$'`
	if got := repeat("TestX/3-tables-Get-409"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
