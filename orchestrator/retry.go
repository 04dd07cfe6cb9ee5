package orchestrator

import (
	"errors"
	"hash/fnv"
	"math"
	"strconv"
	"time"
)

// Retry says when a failed activity runs again. The zero value does not retry.
type Retry struct {
	// MaxAttempts bounds the attempts, the first included; 0 and 1 mean one.
	MaxAttempts int
	// FirstInterval is the delay before the second attempt; default 1 s.
	FirstInterval time.Duration
	// Coefficient multiplies the delay from attempt to attempt; default 2, at least 1.
	Coefficient float64
	// MaxInterval caps the delay; default 5 min, or FirstInterval if that is longer.
	MaxInterval time.Duration
	// Timeout bounds the time from the call to the last attempt's start; 0 does not.
	Timeout time.Duration
	// Jitter is the share of each delay that is random, 0 to 1; default 0.
	Jitter float64
	// Retryable, if it is set, says which errors another attempt can mend; it sees what Await would return. It may look
	// at anything: what it says is recorded.
	Retryable func(error) bool
}

// validate reports every field that makes no sense.
func (r Retry) validate() error {
	var errs []error
	if r.MaxAttempts < 0 {
		errs = append(errs, errors.New("retry: MaxAttempts is negative"))
	}
	if r.FirstInterval < 0 || r.MaxInterval < 0 || r.Timeout < 0 {
		errs = append(errs, errors.New("retry: an interval is negative"))
	}
	if r.Coefficient != 0 && r.Coefficient < 1 {
		errs = append(errs, errors.New("retry: Coefficient is below 1"))
	}
	if r.Jitter < 0 || r.Jitter > 1 {
		errs = append(errs, errors.New("retry: Jitter is outside 0 to 1"))
	}
	return errors.Join(errs...)
}

// delay is how long to wait after the given attempt failed. It is a pure function of the policy, the attempt and the
// key, so that two processes that look at the same failure agree.
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
	d := float64(first) * math.Pow(factor, float64(attempt-1))
	d = min(d, float64(most))
	if r.Jitter > 0 {
		h := fnv.New64a()
		h.Write([]byte(key))
		h.Write([]byte(strconv.Itoa(attempt)))
		share := float64(h.Sum64()>>11) / (1 << 53)
		d -= d * r.Jitter * share
	}
	return time.Duration(d)
}

// allows asks Retryable, which allows nothing when it panics.
func (r Retry) allows(err error) (ok bool) {
	defer func() { _ = recover() }()
	return r.Retryable(err)
}
