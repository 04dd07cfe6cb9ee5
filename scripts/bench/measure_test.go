package main

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// Every timed scenario works in a short time. Azurite is stopped when its scenario is over.
func TestTimedScenarios(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	timed := append(selected(scenarios(), "memory/"), selected(scenarios(), "azurite/")...)
	for _, s := range append(timed, outboxes()...) {
		t.Run(s.metrics[0].name, func(t *testing.T) {
			t.Parallel()
			figures := testenv.Must(s.figures(t.Context(), time.Millisecond))(t)
			for _, f := range figures {
				bad := math.IsNaN(f.Value) || math.IsInf(f.Value, 0) || f.Value < 0
				if bad || (f.Value == 0 && f.Name != "memory/parked/bytes") || f.Unit == "" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestRepeat(t *testing.T) {
	t.Parallel()
	calls := 0
	got, err := repeat(t.Context(), rounds*time.Second, func(_ context.Context, slice time.Duration) ([]float64, error) {
		if slice != time.Second {
			t.Errorf("a round of %v", slice)
		}
		calls++
		return []float64{float64(calls), -float64(calls)}, nil
	})
	if err != nil || calls != rounds+1 || len(got) != rounds {
		t.Fatalf("%d calls, %d rounds, %v", calls, len(got), err)
	}
	// The first call warmed up: 2 to 6 are left.
	if m := median(column(got, 0)); m != 4 {
		t.Errorf("median %v of %v", m, got)
	}
	if m := median(column(got, 1)); m != -4 {
		t.Errorf("median %v of %v", m, got)
	}
	broken := errors.New("broken")
	if _, err := repeat(t.Context(), time.Second, func(context.Context, time.Duration) ([]float64, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, tt := range []struct {
		rounds [][]float64
		p      int
		want   float64
	}{
		{[][]float64{{7}}, 50, 7}, {[][]float64{{7}}, 99, 7}, {[][]float64{{3}, {1, 2}}, 50, 2}, {[][]float64{{4, 3}, {2, 1}}, 50, 2},
		{[][]float64{hundred}, 50, 50}, {[][]float64{hundred}, 99, 99}, {[][]float64{hundred}, 100, 100},
	} {
		if got := percentile(tt.rounds, tt.p); got != tt.want {
			t.Errorf("percentile %d of %v: %v, want %v", tt.p, tt.rounds, got, tt.want)
		}
	}
}

func TestErrorsEndMeasurements(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := saturate(t.Context(), 3, time.Hour, func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("saturate: %v", err)
	}
	if _, err := timed(t.Context(), time.Hour, 1, func(context.Context) (time.Duration, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("timed: %v", err)
	}
	short := scenario{[]metric{{name: "a"}, {name: "b"}}, func(context.Context, time.Duration) ([]float64, error) { return []float64{1}, nil }}
	if _, err := short.figures(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "1 values for 2 figures") {
		t.Errorf("figures: %v", err)
	}
}

// Every replay has exactly the same history.
func TestReplayChangesNothing(t *testing.T) {
	t.Parallel()
	c := newCutOff(7, calls)
	testenv.OK(t, c.begin(t.Context()))
	for range 3 {
		if took, err := c.replay(t.Context()); err != nil || took <= 0 {
			t.Fatalf("replay: %v, %v", took, err)
		}
	}
	c.calls = 6 // of code with one activity less
	if _, err := c.replay(t.Context()); err == nil {
		t.Error("a replay that differs from the history was measured")
	}
}

// Each shape does its units in the run, and only replays them after it.
func TestLinear(t *testing.T) {
	t.Parallel()
	for _, g := range growths() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			run, replay, err := linear(t.Context(), 7, 3, g.make)
			if err != nil || run < 0 || replay < 0 {
				t.Errorf("%v, %v, %v", run, replay, err)
			}
		})
	}
}

// The cost of an event that wakes an orchestration with a history is exact.
func TestParkedEvents(t *testing.T) {
	t.Parallel()
	s := parkedEvents()
	values, err := s.measure(t.Context(), 0)
	if err != nil || len(values) != len(s.metrics) {
		t.Fatalf("%d metrics: %v, %v", len(s.metrics), values, err)
	}
	measured := map[string]float64{}
	for i, m := range s.metrics {
		measured[strings.TrimPrefix(m.name, "events/parked/2000/")] = values[i]
	}
	if measured["ms"] <= 0 || measured["elsewhere_ms"] <= 0 {
		t.Errorf("no time was measured: %v", measured)
	}
	delete(measured, "ms")
	delete(measured, "elsewhere_ms")
	want := map[string]float64{
		"tx": 6, "tx/put": 1, "tx/get": 1, "tx/query": 2, "tx/commit": 1, "tx/delete": 1,
		"direct/tx": 5, "direct/tx/put": 1, "direct/tx/get": 0, "direct/tx/query": 2, "direct/tx/commit": 1, "direct/tx/delete": 1,
	}
	testenv.Equal(t, "transactions", want, measured)
}

// The raw transactions are those of an orchestration: one for its start and one for each activity, of two rows each.
func TestRecordedRounds(t *testing.T) {
	t.Parallel()
	recorded, err := recordRounds(t.Context())
	if err != nil || len(recorded) != 1+3 {
		t.Fatalf("%d transactions, %v", len(recorded), err)
	}
	for i, ops := range recorded {
		moved := into("elsewhere", ops)
		if len(moved) != 2 || moved[0].Entity.Partition != "elsewhere" || moved[0].Entity.Row == moved[1].Entity.Row ||
			ops[0].Entity.Partition == "elsewhere" || len(moved[0].Entity.Properties) == 0 {
			t.Errorf("transaction %d: %+v", i, moved)
		}
	}
	if slices.ContainsFunc(recorded[1:], func(ops []tables.Op) bool { return ops[0].Entity.Row == recorded[0][0].Entity.Row }) {
		t.Error("two rounds have one row")
	}
}

// Retained memory is measured: that of the heap and of goroutines. Not parallel with others, which use memory too.
func TestInUse(t *testing.T) {
	before := inUse()
	kept := make([]byte, 8<<20)
	stop := make(chan struct{})
	for range 1000 {
		go func() { <-stop }()
	}
	grown := inUse() - before
	close(stop)
	runtime.KeepAlive(kept)
	if least := int64(8<<20 + 1000*2048 - 256<<10); grown < least {
		t.Errorf("it sees %d bytes of %d", grown, least)
	}
}
