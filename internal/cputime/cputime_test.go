package cputime

import (
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// Work uses processor time.
func TestUsed(t *testing.T) {
	t.Parallel()
	before, err := Used()
	testenv.OK(t, err)
	for sum := 0; ; sum++ { // ends as soon as the clock of the system advances
		now, err := Used()
		testenv.OK(t, err)
		if now > before {
			return
		}
	}
}
