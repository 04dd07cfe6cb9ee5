package orchestrator

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// An accepted policy never waits less than its first interval, nor less than after the previous attempt, and never
// longer than its bound; without jitter.
func TestDelaysNeverShrink(t *testing.T) {
	t.Parallel()
	intervals := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Just(time.Duration(math.MaxInt64)), rapid.Custom(func(r *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Min(0).Draw(r, "interval"))
	}), rapid.Custom(func(r *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(r, "short"))
	}))
	coefficients := rapid.OneOf(rapid.SampledFrom([]float64{0, 1, 2, 1.5, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), -1, 0.5}), rapid.Float64())
	rapid.Check(t, func(r *rapid.T) {
		p := Retry{MaxAttempts: 100, FirstInterval: intervals.Draw(r, "first"), MaxInterval: intervals.Draw(r, "most"), Coefficient: coefficients.Draw(r, "coefficient"),
			Jitter: coefficients.Draw(r, "jitter")}
		if p.validate() != nil {
			return
		}
		jitter := p.Jitter
		p.Jitter = 0
		first := p.FirstInterval
		if first == 0 {
			first = time.Second
		}
		most := p.MaxInterval
		if most == 0 {
			most = max(5*time.Minute, first)
		}
		before := min(first, most)
		for attempt := 1; attempt <= 100; attempt++ {
			d := p.delay(attempt, "k")
			if d < before || d > most {
				r.Fatalf("%+v: %v after attempt %d, %v before, at most %v", p, d, attempt, before, most)
			}
			before = d
			spread := p
			spread.Jitter = jitter
			if s := spread.delay(attempt, "k"); s < 0 || s > d {
				r.Fatalf("%+v: %v of %v with jitter", spread, s, d)
			}
		}
	})
}

func TestRetryTakesNumbersAlone(t *testing.T) {
	t.Parallel()
	for _, p := range []Retry{{Coefficient: math.NaN()}, {Coefficient: math.Inf(1)}, {Coefficient: math.Inf(-1)}, {Coefficient: 0.9}, {Jitter: math.NaN()}, {Jitter: math.Inf(1)}, {Jitter: -0.1}, {Jitter: 1.1}} {
		if p.validate() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}
