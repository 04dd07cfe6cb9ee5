package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tracing"
)

// sampledShare is the share of sampled traces.
const sampledShare = 0.1

// traces compares the duration of sequences with that of an untraced runtime. In one case a tenth of the traces goes
// to a collector, in the other the trace contexts are only passed on. It also counts the storage requests that a
// recorded trace adds.
func traces() scenario {
	metrics := []metric{
		{"tracing/off/ratio", "ratio", "goal 1.00: time of a sequence without a tracer, the traceparent of its message passed on, to that of one without"},
		{"tracing/sampled/ratio", "ratio", "goal 1.05 or less: the same with a tenth of the traces sent by OTLP"},
		{"tracing/tx", "transactions", "goal 0: what a recorded trace adds to a sequence"},
	}
	return scenario{metrics, func(ctx context.Context, d time.Duration) (values []float64, err error) {
		collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // it keeps nothing
			w.Header().Set("Content-Type", "application/x-protobuf")
		}))
		defer collector.Close()
		samples, err := repeat(ctx, d, func(ctx context.Context, slice time.Duration) ([]float64, error) {
			return tracedInTurns(ctx, slice, collector.URL)
		})
		if err != nil {
			return nil, err
		}
		plain, plainErr := storageCalls(ctx, "", 0)
		whole, wholeErr := storageCalls(ctx, collector.URL, 1)
		return []float64{median(column(samples, 0)), median(column(samples, 1)), float64(whole - plain)}, errors.Join(plainErr, wholeErr)
	}}
}

// turns is the number of turns in a slice, so that other load on the machine affects all kinds.
const turns = 8

// tracedInTurns returns the duration of a sequence without a tracer and with a sampling one, divided by that of one
// without a trace.
func tracedInTurns(ctx context.Context, slice time.Duration, collector string) ([]float64, error) {
	kinds := []struct {
		endpoint, trace string
	}{{}, {trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, {endpoint: collector}}
	rigs, rates := make([]*rig, len(kinds)), make([]float64, len(kinds))
	var tracers []*tracing.Tracer
	for i, k := range kinds {
		r, tracer, err := tracedRig(ctx, orchestrator.Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory()}, k.endpoint, sampledShare)
		if err != nil {
			return nil, err
		}
		r.trace = k.trace
		rigs[i], tracers = r, append(tracers, tracer)
	}
	for range turns {
		for i, r := range rigs {
			rate, err := saturate(ctx, 1, slice/time.Duration(turns*len(kinds)), func(ctx context.Context) error { return r.run(ctx, "sequence", 3) })
			if err != nil {
				return nil, err
			}
			rates[i] += rate
		}
	}
	var errs []error
	for _, t := range tracers {
		errs = append(errs, t.Close(ctx))
	}
	return []float64{rates[0] / rates[1], rates[0] / rates[2]}, errors.Join(errs...)
}

// storageCalls counts those of a sequence.
func storageCalls(ctx context.Context, endpoint string, share float64) (int, error) {
	count := &faults.Plan{}
	r, tracer, err := tracedRig(ctx, orchestrator.Config{Tables: faults.Tables(tables.NewMemory(), count.Intercept), Blobs: faults.Blobs(blobs.NewMemory(), count.Intercept)}, endpoint, share)
	if err != nil {
		return 0, err
	}
	err = r.run(ctx, "sequence", 3)
	return len(count.Calls()), errors.Join(err, tracer.Close(ctx))
}

// tracedRig returns a rig with a tracer, or without one when there is no endpoint.
func tracedRig(ctx context.Context, c orchestrator.Config, endpoint string, share float64) (*rig, *tracing.Tracer, error) {
	tracer, err := tracing.New(ctx, tracing.Config{Endpoint: endpoint, Ratio: share})
	if err != nil {
		return nil, nil, err
	}
	if tracer != nil {
		c.Tracer = tracer
	}
	r, err := newRig(ctx, c)
	return r, tracer, err
}
