package outbox

import (
	"math/rand/v2"
	"sync"
	"time"
)

// windowBuckets is the number of buckets of a window; it slides by one bucket at a time.
const windowBuckets = 60

// window counts events in a sliding period.
type window struct {
	length time.Duration

	mu      sync.Mutex
	started time.Time
	buckets [windowBuckets]bucket
}

type bucket struct {
	number                                int64
	processed, attempts, failures, deaths int64
}

func newWindow(length time.Duration) *window { return &window{length: length} }

// number returns the number of a time's bucket, counted since 1970.
func (w *window) number(t time.Time) int64 {
	return max(t.UnixNano(), 0) / int64(w.length/windowBuckets)
}

// at returns the bucket of now, and empties it if it was last used one period ago.
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

func (w *window) died(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at(now).deaths++
}

// deaths counts the messages that have died within the window.
func (w *window) deaths(now time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, newest := int64(0), w.number(now)
	for _, b := range w.buckets {
		if b.number > newest-windowBuckets && b.number <= newest {
			n += b.deaths
		}
	}
	return int(n)
}

// rates returns the messages processed per second and the share of failed attempts. A window younger than its length is
// measured by its age, but by a second at least.
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
