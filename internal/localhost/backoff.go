package localhost

import (
	"math"
	"math/rand/v2"
	"time"
)

// backoff is how the real host spaces polls of an empty or failing queue: the shortest wait after messages, then
// growing, with a spread, up to the longest.
type backoff struct {
	shortest, longest time.Duration
	tries             int
}

// reset is called after messages were found.
func (b *backoff) reset() { b.tries = 0 }

// next is how long to wait after a poll that found nothing.
func (b *backoff) next() time.Duration {
	wait := b.shortest
	if b.tries > 0 {
		spread := 0.8 + 0.4*rand.Float64()
		wait += time.Duration(min(spread*math.Pow(2, float64(b.tries-1))*float64(b.shortest), float64(b.longest)))
	}
	if wait >= b.longest {
		return b.longest // tries stays: nothing grows any more
	}
	b.tries++
	return wait
}
