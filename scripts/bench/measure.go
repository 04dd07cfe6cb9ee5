package main

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// rounds is the number of repeats of a timed measurement, without the warm-up.
const rounds = 5

// repeat measures once to warm up, then in rounds that share d, and returns the results of the rounds.
func repeat(ctx context.Context, d time.Duration, round func(ctx context.Context, slice time.Duration) ([]float64, error)) ([][]float64, error) {
	var all [][]float64
	for i := range rounds + 1 {
		runtime.GC() // earlier garbage must not count for this round
		values, err := round(ctx, d/rounds)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			all = append(all, values)
		}
	}
	return all, nil
}

// saturate runs work repeatedly in concurrent workers for d and returns the rate in a second.
func saturate(ctx context.Context, concurrent int, d time.Duration, work func(context.Context) error) (float64, error) {
	var done atomic.Int64
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for range concurrent {
		group.Go(func() error {
			for first := true; first || time.Since(began) < d; first = false {
				if err := work(ctx); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), err
}

// timed runs work repeatedly for d, at least so often, and returns each duration, in microseconds.
func timed(ctx context.Context, d time.Duration, least int, work func(context.Context) (time.Duration, error)) ([]float64, error) {
	var samples []float64
	for began := time.Now(); len(samples) < least || time.Since(began) < d; {
		took, err := work(ctx)
		if err != nil {
			return nil, err
		}
		samples = append(samples, float64(took.Nanoseconds())/1000)
	}
	return samples, nil
}

// median returns the median of the results of all rounds.
func median(rounds [][]float64) float64 { return percentile(rounds, 50) }

// percentile returns the smallest value of all the rounds that p percent of them do not exceed.
func percentile(rounds [][]float64, p int) float64 {
	sorted := slices.Sorted(slices.Values(slices.Concat(rounds...)))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

// column returns the value with this number from each round.
func column(rounds [][]float64, i int) [][]float64 {
	out := make([][]float64, len(rounds))
	for r, values := range rounds {
		out[r] = values[i : i+1]
	}
	return out
}
