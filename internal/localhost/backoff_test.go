package localhost

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shortest int
		random   []float64 // one for each wait; the first needs none
		want     []int     // milliseconds
	}{
		"in the middle": {100, []float64{0, .5, .5, .5, .5, .5, .5, .5}, []int{100, 200, 300, 500, 900, 1700, 2000, 2000}},
		"shortest":      {100, []float64{0, 0, 0, 0, 0, 0, 0, 0}, []int{100, 180, 260, 420, 740, 1380, 2000, 2000}},
		"longest":       {100, []float64{0, 1, 1, 1, 1, 1, 1, 1}, []int{100, 220, 340, 580, 1060, 2000, 2000, 2000}},
		// Once at the longest wait, a small draw does not shorten it.
		"once at its longest": {100, []float64{0, .5, .5, .5, .5, 1, 0, 0}, []int{100, 200, 300, 500, 900, 2000, 2000, 2000}},
		"nothing to grow":     {2000, []float64{0, 0, 1}, []int{2000, 2000, 2000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackoff(time.Duration(test.shortest)*time.Millisecond, 2*time.Second)
			for range 2 { // after messages it restarts
				var got []int
				for _, draw := range test.random {
					b.random = func() float64 { return draw }
					got = append(got, int(b.next().Round(time.Millisecond).Milliseconds()))
				}
				testenv.Equal(t, "waits", test.want, got)
				b.reset()
			}
		})
	}
}

// Any draw yields a wait between the shortest and the longest.
func TestBackoffDraws(t *testing.T) {
	t.Parallel()
	b := newBackoff(100*time.Millisecond, 2*time.Second)
	for range 100 {
		if wait := b.next(); wait < b.shortest || wait > b.longest {
			t.Fatalf("it waits %v", wait)
		}
	}
}
