package outbox

import (
	"math/rand/v2"
	"sync"
	"time"
)

// windowBuckets is into how many parts a window is divided: it slides by one of them.
const windowBuckets = 60

// window counts what happened in the last while.
type window struct {
	length time.Duration

	mu      sync.Mutex
	started time.Time
	buckets [windowBuckets]bucket
}

type bucket struct {
	number                        int64
	processed, attempts, failures int64
}

func newWindow(length time.Duration) *window { return &window{length: length} }

// number is the bucket of a time, counted since 1970.
func (w *window) number(t time.Time) int64 {
	return max(t.UnixNano(), 0) / int64(w.length/windowBuckets)
}

// at is the bucket of now, emptied if it was last used a window ago.
func (w *window) at(now time.Time) *bucket {
	if w.started.IsZero() {
		w.started = now
	}
	n := w.number(now)
	b := &w.buckets[n%windowBuckets]
	if b.number != n {
		*b = bucket{number: n}
	}
	return b
}

func (w *window) attempted(now time.Time, failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.at(now)
	b.attempts++
	if failed {
		b.failures++
	}
}

func (w *window) processed(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at(now).processed++
}

// rates gives the messages processed a second and the share of failed attempts. A window that is younger than its
// length is taken for what it is, but for a second at least.
func (w *window) rates(now time.Time) (throughput, failureRatio float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var sum bucket
	newest := w.number(now)
	for _, b := range w.buckets {
		if b.number > newest-windowBuckets && b.number <= newest {
			sum.processed += b.processed
			sum.attempts += b.attempts
			sum.failures += b.failures
		}
	}
	if sum.attempts > 0 {
		failureRatio = float64(sum.failures) / float64(sum.attempts)
	}
	if sum.processed > 0 {
		interval := min(max(now.Sub(w.started), time.Second), w.length)
		throughput = float64(sum.processed) / interval.Seconds()
	}
	return throughput, failureRatio
}

func random() float64 { return rand.Float64() }
