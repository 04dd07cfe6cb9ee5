package quota

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// samples is how many records a caller has at first, and sampleEvery the time after which it has another one.
	samples     = 20
	sampleEvery = time.Minute
)

// Sampler bounds the records that a caller can cause: the first ones, then one a minute, which counts those in between. It is safe for
// concurrent use.
type Sampler struct {
	skipped func()
	kept    kept[*sample]
}

// NewSampler returns a Sampler. skipped counts what is not recorded; nil counts nothing.
func NewSampler(skipped func()) *Sampler {
	if skipped == nil {
		skipped = func() {}
	}
	return &Sampler{skipped: skipped, kept: keep(func(Caller) *sample {
		return &sample{records: rate.NewLimiter(rate.Every(sampleEvery), samples)}
	})}
}

// Take reports whether a record of a caller is to be made, and how many were skipped since the last one.
func (s *Sampler) Take(c Caller) (skipped int, ok bool) {
	v := s.kept.of(c)
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.records.AllowN(time.Now(), 1) {
		v.skipped++
		s.skipped()
		return 0, false
	}
	skipped, v.skipped = v.skipped, 0
	return skipped, true
}

// sample is what is known of the records of a caller.
type sample struct {
	records *rate.Limiter

	mu      sync.Mutex
	skipped int
}

func (s *sample) left(now time.Time) (left float64, full bool) {
	left = s.records.TokensAt(now)
	return left, left >= float64(s.records.Burst())
}
