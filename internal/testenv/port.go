package testenv

import (
	"testing"

	"github.com/vibedata/roundhouse/internal/freeport"
)

// Port returns a port on 127.0.0.1 that is reserved while the test runs. It is for a server of another process, or
// stays without a server, so that connections to it are refused.
func Port(t testing.TB) int {
	t.Helper()
	p, err := freeport.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p.Number
}
