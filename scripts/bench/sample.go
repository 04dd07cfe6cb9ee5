package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// sampleLatencies is the minimum number of orchestrations for the percentiles of one sample's latency.
const sampleLatencies = 500

// samplers returns functions that take one sample of each contest in this process. The peers' program does the same
// for them: a quarter of the time is the warm-up, then it measures.
func samplers() map[string]func(context.Context, time.Duration) ([]float64, error) {
	return map[string]func(context.Context, time.Duration) ([]float64, error){
		"sequence3/1":    sampleRate(1, "sequence", 3, 1),
		"sequence3/10":   sampleRate(10, "sequence", 3, 1),
		"sequence3/100":  sampleRate(100, "sequence", 3, 1),
		"fanout/100":     sampleRate(1, "fanout", 100, 100),
		"fanout/1000":    sampleRate(1, "fanout", 1000, 1000),
		"hello":          sampleHello,
		"sequence/1000":  sampleSequence(1000),
		"sequence/10000": sampleSequence(10_000),
		"replay":         sampleReplays,
	}
}

// sample prints the values of one sample as a JSON array.
func sample(ctx context.Context, name string, d time.Duration, out io.Writer) error {
	take, ok := samplers()[name]
	if !ok {
		return fmt.Errorf("-sample %q: there is no such sample", name)
	}
	values, err := take(ctx, d)
	if err != nil {
		return fmt.Errorf("sample %s: %w", name, err)
	}
	return json.NewEncoder(out).Encode(values)
}

func sampleRate(concurrent int, shape string, n int, weight float64) func(context.Context, time.Duration) ([]float64, error) {
	return func(ctx context.Context, d time.Duration) ([]float64, error) {
		r, err := newMemoryRig(ctx)
		if err != nil {
			return nil, err
		}
		work := func(ctx context.Context) error { return r.run(ctx, shape, n) }
		if _, err := saturate(ctx, concurrent, d/4, work); err != nil {
			return nil, err
		}
		rate, err := saturate(ctx, concurrent, d, work)
		return []float64{rate * weight}, err
	}
}

func sampleHello(ctx context.Context, d time.Duration) ([]float64, error) {
	us, err := warmTimes(ctx, d, sampleLatencies, 1, 1)
	if err != nil {
		return nil, err
	}
	return []float64{percentile([][]float64{us}, 50), percentile([][]float64{us}, 99)}, nil
}

func sampleSequence(n int) func(context.Context, time.Duration) ([]float64, error) {
	return func(ctx context.Context, d time.Duration) ([]float64, error) {
		us, err := warmTimes(ctx, d, 1, 100, n)
		if err != nil {
			return nil, err
		}
		return []float64{median([][]float64{us}) / float64(n)}, nil
	}
}

// warmTimes times sequences of n activities after sequences of warm activities, in microseconds.
func warmTimes(ctx context.Context, d time.Duration, least, warm, n int) ([]float64, error) {
	if _, err := runs(ctx, d/4, 1, warm); err != nil {
		return nil, err
	}
	return runs(ctx, d, least, n)
}

// sampleReplays returns the milliseconds of a replay of 10,000 events, of a sequence and of a fan-out.
func sampleReplays(ctx context.Context, d time.Duration) ([]float64, error) {
	var out []float64
	for _, shape := range []code{calls, fannedOut} {
		c := newCutOff(replayed, shape)
		if err := c.begin(ctx); err != nil {
			return nil, err
		}
		runtime.GC() // earlier garbage must not count for the replays
		us, err := timed(ctx, d, 1, c.replay)
		if err != nil {
			return nil, err
		}
		out = append(out, median([][]float64{us})/1000)
	}
	return out, nil
}

// fannedOut calls all activities but the last in parallel.
func fannedOut(ctx *orchestrator.Context, n int, step, _, last *orchestrator.Activity[int, int]) (int, error) {
	if _, err := fanOut(ctx, n-1, func(int) *orchestrator.Activity[int, int] { return step }); err != nil {
		return 0, err
	}
	return last.Call(ctx, n).Await()
}

// sampleNames lists the samples, for the usage.
func sampleNames() string {
	var names []string
	for _, c := range contests() {
		names = append(names, c.sample)
	}
	return strings.Join(names, ", ")
}
