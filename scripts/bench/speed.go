package main

import (
	"context"
	"fmt"
	"time"
)

// latencySamples is the minimum number of orchestrations for the percentiles of the latency.
const latencySamples = 2000

// speeds lists the timings on the memory store.
func speeds() []scenario {
	var all []scenario
	for _, concurrent := range []int{1, 10, 100} {
		all = append(all, throughput(metric{fmt.Sprintf("memory/sequence3/orchestrations_per_s/%d", concurrent), "orchestrations/s", "goal 8000 or more"},
			concurrent, "sequence", 3, 1))
	}
	all = append(all,
		throughput(metric{"memory/fanout/100/activities_per_s", "activities/s", ""}, 1, "fanout", 100, 100),
		throughput(metric{"memory/fanout/1000/activities_per_s", "activities/s", "goal 27000 or more"}, 1, "fanout", 1000, 1000),
		latency(),
	)
	goals := map[int]string{1000: "goal 25 or less", 10_000: "goal 1.5 times that of 100 or less"}
	for _, n := range []int{100, 1000, 10_000} {
		all = append(all, perActivity(n, goals[n]))
	}
	return all
}

// throughput runs orchestrations of n activities, so many in parallel, each counting as weight.
func throughput(m metric, concurrent int, name string, n int, weight float64) scenario {
	return scenario{[]metric{m}, func(ctx context.Context, d time.Duration) ([]float64, error) {
		rates, err := repeat(ctx, d, func(ctx context.Context, slice time.Duration) ([]float64, error) {
			r, err := newMemoryRig(ctx)
			if err != nil {
				return nil, err
			}
			rate, err := saturate(ctx, concurrent, slice, func(ctx context.Context) error { return r.run(ctx, name, n) })
			return []float64{rate * weight}, err
		})
		if err != nil {
			return nil, err
		}
		return []float64{median(rates)}, nil
	}}
}

// latency runs orchestrations of one activity, one at a time.
func latency() scenario {
	metrics := []metric{
		{"memory/hello/latency_us/p50", "us", "goal 150 or less"},
		{"memory/hello/latency_us/p99", "us", ""},
	}
	return scenario{metrics, func(ctx context.Context, d time.Duration) ([]float64, error) {
		samples, err := repeat(ctx, d, func(ctx context.Context, slice time.Duration) ([]float64, error) {
			return runs(ctx, slice, latencySamples/rounds, 1)
		})
		if err != nil {
			return nil, err
		}
		return []float64{percentile(samples, 50), percentile(samples, 99)}, nil
	}}
}

// perActivity runs sequences of n activities, one at a time.
func perActivity(n int, goal string) scenario {
	m := metric{fmt.Sprintf("memory/sequence/%d/us_per_activity", n), "us", goal}
	return scenario{[]metric{m}, func(ctx context.Context, d time.Duration) ([]float64, error) {
		samples, err := repeat(ctx, d, func(ctx context.Context, slice time.Duration) ([]float64, error) {
			return runs(ctx, slice, 1, n)
		})
		if err != nil {
			return nil, err
		}
		return []float64{median(samples) / float64(n)}, nil
	}}
}

// runs times sequences of n activities on a new store, in microseconds.
func runs(ctx context.Context, d time.Duration, least, n int) ([]float64, error) {
	r, err := newMemoryRig(ctx)
	if err != nil {
		return nil, err
	}
	return timed(ctx, d, least, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		err := r.run(ctx, "sequence", n)
		return time.Since(began), err
	})
}
