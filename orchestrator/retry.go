package orchestrator

import (
	"errors"
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/internal/durations"
)

// Retry is the retry policy of a call. The zero value does not retry.
type Retry struct {
	// MaxAttempts bounds the attempts, the first included; 0 and 1 mean one.
	MaxAttempts int
	// FirstInterval is the delay before the second attempt; the default is 1 s.
	FirstInterval time.Duration
	// Coefficient multiplies the delay from attempt to attempt; the default is 2, and it is a number of at least 1.
	Coefficient float64
	// MaxInterval bounds the delay; the default is 5 min, or FirstInterval if that is longer.
	MaxInterval time.Duration
	// Timeout bounds the time from the call to the start of the last attempt; 0 sets no bound.
	Timeout time.Duration
	// Jitter is the share of each delay that is random, 0 to 1; default 0.
	Jitter float64
	// Retryable, if it is set, reports whether another attempt can fix an error; it gets the error that Await would
	// return. It need not be deterministic, because its answer is recorded.
	Retryable func(error) bool
}

// validate reports every field that is out of range.
func (r Retry) validate() error {
	var errs []error
	if r.MaxAttempts < 0 {
		errs = append(errs, errors.New("retry: MaxAttempts is negative"))
	}
	if r.FirstInterval < 0 || r.MaxInterval < 0 || r.Timeout < 0 {
		errs = append(errs, errors.New("retry: an interval is negative"))
	}
	if r.Coefficient != 0 && (!(r.Coefficient >= 1) || math.IsInf(r.Coefficient, 0)) {
		errs = append(errs, errors.New("retry: Coefficient is below 1, or not a number"))
	}
	if !(r.Jitter >= 0 && r.Jitter <= 1) {
		errs = append(errs, errors.New("retry: Jitter is outside 0 to 1"))
	}
	return errors.Join(errs...)
}

// delay returns the wait after this failed attempt. It is a pure function of the policy, the attempt and the key, so
// that two processes that see the same failure agree.
func (r Retry) delay(attempt int, key string) time.Duration {
	first, factor, most := r.FirstInterval, r.Coefficient, r.MaxInterval
	if first == 0 {
		first = time.Second
	}
	if factor == 0 {
		factor = 2
	}
	if most == 0 {
		most = max(5*time.Minute, first)
	}
	d := min(float64(first)*math.Pow(factor, float64(attempt-1)), float64(most))
	if r.Jitter > 0 {
		h := fnv.New64a()
		h.Write([]byte(key))
		h.Write([]byte(strconv.Itoa(attempt)))
		share := float64(h.Sum64()>>11) / (1 << 53)
		d -= d * r.Jitter * share
	}
	return min(durations.Of(d), most)
}

// allows calls Retryable. A Retryable that panics allows no further attempt.
func (r Retry) allows(err error) (ok bool) {
	defer func() { _ = recover() }()
	return r.Retryable(err)
}
