package durations_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/durations"
)

// exact returns the expected duration, clamped at both ends.
func exact(n *big.Int) time.Duration {
	switch {
	case n.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return math.MaxInt64
	case n.Cmp(big.NewInt(math.MinInt64)) < 0:
		return math.MinInt64
	}
	return time.Duration(n.Int64())
}

func TestOf(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]time.Duration{0: 0, 1.5e9: 1500 * time.Millisecond, math.MaxInt64: math.MaxInt64, 1e300: math.MaxInt64, math.Inf(1): math.MaxInt64,
		-1e300: math.MinInt64, math.Inf(-1): math.MinInt64} {
		if got := durations.Of(f); got != want {
			t.Errorf("%v: %v", f, got)
		}
	}
	if got := durations.Of(math.NaN()); got != math.MaxInt64 {
		t.Errorf("NaN: %v", got)
	}
}

// All arithmetic matches that of unbounded integers, clamped to the range.
func TestArithmetic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n, unit := rapid.Int64().Draw(r, "n"), rapid.Int64().Draw(r, "unit")
		if rapid.Bool().Draw(r, "usual") {
			unit = int64(time.Second)
		}
		if got, want := durations.Times(n, time.Duration(unit)), exact(new(big.Int).Mul(big.NewInt(n), big.NewInt(unit))); got != want {
			r.Errorf("%d times %d: %d, want %d", n, unit, got, want)
		}
		d, most := rapid.Int64Min(0).Draw(r, "d"), rapid.Int64Min(0).Draw(r, "most")
		doublings := rapid.IntRange(0, 100).Draw(r, "doublings")
		want := min(exact(new(big.Int).Lsh(big.NewInt(d), uint(doublings))), time.Duration(most))
		if got := durations.Doubled(time.Duration(d), doublings, time.Duration(most)); got != want {
			r.Errorf("%d doubled %d times, at most %d: %d, want %d", d, doublings, most, got, want)
		}
		if got, want := durations.Sum(time.Duration(d), time.Duration(most), time.Duration(d)), exact(new(big.Int).Add(big.NewInt(most), new(big.Int).Lsh(big.NewInt(d), 1))); got != want {
			r.Errorf("sum of %d, %d, %d: %d, want %d", d, most, d, got, want)
		}
	})
}
