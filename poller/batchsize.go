package poller

import "time"

// batchSize adapts the number of rows of a batch: it doubles while the handler is quick, then grows by steps, and
// halves when the handler is slow or fails.
type batchSize struct {
	least, most, step int
	// target is the longest desired time of the handler.
	target time.Duration

	size  int
	steps bool
}

// observe adapts the size to the handler's time for n rows.
func (b *batchSize) observe(n int, d time.Duration) {
	switch {
	case d > b.target:
		b.shrink()
	case n < b.size || d > b.target/2:
	case b.steps:
		b.size = min(b.most, b.size+b.step)
	default:
		b.size = min(b.most, 2*b.size)
	}
}

// shrink halves the size.
func (b *batchSize) shrink() {
	b.size, b.steps = max(b.least, b.size/2), true
}
