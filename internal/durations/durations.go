// Package durations does saturating arithmetic on durations: results end at the longest duration instead of overflowing
// to a negative one. It owns no storage keys.
package durations

import (
	"math"
	"time"
)

const longest time.Duration = math.MaxInt64

// Of converts a number of nanoseconds to a duration, clamped to the longest and the shortest one; NaN is the longest.
func Of(nanoseconds float64) time.Duration {
	switch {
	case math.IsNaN(nanoseconds) || nanoseconds >= float64(longest):
		return longest
	case nanoseconds <= math.MinInt64:
		return math.MinInt64
	}
	return time.Duration(nanoseconds)
}

// Times returns n units; n may be negative.
func Times(n int64, unit time.Duration) time.Duration {
	d := time.Duration(n) * unit
	if unit != 0 && d/unit != time.Duration(n) {
		if (n < 0) != (unit < 0) {
			return math.MinInt64
		}
		return longest
	}
	return d
}

// Doubled returns d after this many doublings, at most most. d is not negative.
func Doubled(d time.Duration, doublings int, most time.Duration) time.Duration {
	for ; doublings > 0 && d > 0 && d < most; doublings-- {
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return min(d, most)
}

// Sum adds durations that are not negative.
func Sum(all ...time.Duration) (sum time.Duration) {
	for _, d := range all {
		if sum > longest-d {
			return longest
		}
		sum += d
	}
	return sum
}
