package localhost

import (
	"math"
	"math/rand/v2"
	"time"
)

// backoff spaces the polls of an empty or failing queue as the real host does: the shortest wait after messages, then
// growing, with a jitter, up to the longest, where it stays.
type backoff struct {
	shortest, longest time.Duration
	random            func() float64 // in [0, 1)
	tries             int
	last              time.Duration
}

// newBackoff draws the jitter from math/rand.
func newBackoff(shortest, longest time.Duration) *backoff {
	return &backoff{shortest: shortest, longest: longest, random: rand.Float64}
}

// reset is called after messages were found.
func (b *backoff) reset() { b.tries, b.last = 0, 0 }

// next returns the wait after a poll without messages.
func (b *backoff) next() time.Duration {
	if b.last == b.longest {
		return b.last
	}
	b.last = b.shortest
	if b.tries > 0 {
		spread := 0.8 + 0.4*b.random()
		b.last += time.Duration(min(spread*math.Pow(2, float64(b.tries-1))*float64(b.shortest), float64(b.longest)))
	}
	b.last = min(b.last, b.longest)
	b.tries++
	return b.last
}
