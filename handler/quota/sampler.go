package quota

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// samples is the initial number of records of a caller, and sampleEvery the time until the next one.
	samples     = 20
	sampleEvery = time.Minute
)

// Sampler limits the records of a caller: the first ones, then one a minute, which counts the skipped ones. It is
// safe for concurrent use.
type Sampler struct {
	skipped func()
	kept    kept[*sample]
}

// NewSampler returns a Sampler. skipped is called for each skipped record; it may be nil.
func NewSampler(skipped func()) *Sampler {
	if skipped == nil {
		skipped = func() {}
	}
	return &Sampler{skipped: skipped, kept: keep(func(Caller) *sample {
		return &sample{records: rate.NewLimiter(rate.Every(sampleEvery), samples)}
	})}
}

// Take reports whether to make a record of a caller, and the number skipped since the last one.
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

// sample is the state of a caller's records.
type sample struct {
	records *rate.Limiter

	mu      sync.Mutex
	skipped int
}

func (s *sample) left(now time.Time) (left float64, full bool) {
	left = s.records.TokensAt(now)
	return left, left >= float64(s.records.Burst())
}
