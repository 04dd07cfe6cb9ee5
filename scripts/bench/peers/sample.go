package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// latencySamples is the minimum number of orchestrations for the percentiles of a latency.
	latencySamples = 500
	// replayed is the number of activities in a history of 10,000 events: each was called, and each has ended.
	replayed = 5000
)

// sample measures one figure.
func sample(ctx context.Context, lib library, figure string, d time.Duration) ([]float64, error) {
	work := func(shape string, n int) func(context.Context) error {
		return func(ctx context.Context) error { return lib.run(ctx, shape, n) }
	}
	switch figure {
	case "sequence3/1":
		return throughput(ctx, 1, d, 1, work("sequence", 3))
	case "sequence3/10":
		return throughput(ctx, 10, d, 1, work("sequence", 3))
	case "sequence3/100":
		return throughput(ctx, 100, d, 1, work("sequence", 3))
	case "fanout/100":
		return throughput(ctx, 1, d, 100, work("fanout", 100))
	case "fanout/1000":
		return throughput(ctx, 1, d, 1000, work("fanout", 1000))
	case "hello":
		us, err := warmTimes(ctx, d, latencySamples, work("sequence", 1), work("sequence", 1))
		return []float64{percentile(us, 50), percentile(us, 99)}, err
	case "sequence/1000":
		us, err := warmTimes(ctx, d, 1, work("sequence", 100), work("sequence", 1000))
		return []float64{percentile(us, 50) / 1000}, err
	case "sequence/10000":
		us, err := warmTimes(ctx, d, 1, work("sequence", 100), work("sequence", 10_000))
		return []float64{percentile(us, 50) / 10_000}, err
	case "replay":
		us, err := lib.replay(ctx, replayed, d)
		return []float64{percentile(us, 50) / 1000}, err
	}
	return nil, fmt.Errorf("there is no such figure")
}

// throughput runs work repeatedly in so many workers, each time worth weight, and returns the rate in a second. A
// quarter of the time is the warm-up.
func throughput(ctx context.Context, concurrent int, d time.Duration, weight float64, work func(context.Context) error) ([]float64, error) {
	if _, err := saturate(ctx, concurrent, d/4, work); err != nil {
		return nil, err
	}
	rate, err := saturate(ctx, concurrent, d, work)
	return []float64{rate * weight}, err
}

func saturate(ctx context.Context, concurrent int, d time.Duration, work func(context.Context) error) (float64, error) {
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var workers sync.WaitGroup
	began := time.Now()
	for range concurrent {
		workers.Go(func() {
			for first := true; first || time.Since(began) < d; first = false {
				if err := work(ctx); err != nil {
					failed.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(done.Load()) / time.Since(began).Seconds(), nil
}

// warmTimes returns each duration of work, in microseconds, after a quarter of the time for warming up.
func warmTimes(ctx context.Context, d time.Duration, least int, warm, work func(context.Context) error) ([]float64, error) {
	if _, err := times(ctx, d/4, 1, warm); err != nil {
		return nil, err
	}
	return times(ctx, d, least, work)
}

func times(ctx context.Context, d time.Duration, least int, work func(context.Context) error) ([]float64, error) {
	var us []float64
	for began := time.Now(); len(us) < least || time.Since(began) < d; {
		began := time.Now()
		if err := work(ctx); err != nil {
			return nil, err
		}
		us = append(us, micros(time.Since(began)))
	}
	return us, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// percentile returns the smallest of the values that p percent of them do not exceed, 0 of none.
func percentile(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}
