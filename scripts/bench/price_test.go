package main

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// The requests of Durable Functions equal a manual sum from reading its code.
func TestDurableFunctions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		got           tally
		tables, total int
	}{
		"sequence of 3":    {durableSequence(3), 15, 36},
		"sequence of 5":    {durableSequence(5), 21, 54},
		"fan-out of 100":   {durableFanOut(100), 19, 526},
		"fan-out of 1,000": {durableFanOut(1000), 0, 5181},
		"timer":            {durableTimer(), 3, 6},
		"event":            {durableEvent(), 5, 8},
	}
	for name, tt := range tests {
		if tt.got.total() != tt.total || (tt.tables > 0 && tt.got.tables != tt.tables) {
			t.Errorf("%s: %v, want %d transactions, %d of them on tables", name, tt.got, tt.total, tt.tables)
		}
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	calls := []faults.Call{{Service: "tables", Operation: "Apply"}, {Service: "tables", Operation: "Query"}, {Service: "queues", Operation: "Get"},
		{Service: "blobs", Operation: "Get"}, {Service: "blobs", Operation: "Put"}, {Service: "blobs", Operation: "PutIf"}, {Service: "blobs", Operation: "List"}}
	got := tallied(calls)
	testenv.Equal(t, "tally", tally{2, 1, 1, 3}, got, cmp.AllowUnexported(tally{}))
	if twice := got.plus(got); twice.total() != 2*len(calls) || twice.minus(got) != got {
		t.Errorf("%v and %v", twice, twice.minus(got))
	}
	// A million times two table transactions, one of a queue, a read, two writes and a list of blobs.
	if want := 0.072 + 0.4 + 0.44 + 16.5; math.Abs(got.million()-want) > 1e-9 {
		t.Errorf("%v dollars, want %v", got.million(), want)
	}
}

// Every priced shape was counted, and costs no more than with Durable Functions.
func TestPrices(t *testing.T) {
	t.Parallel()
	for _, s := range prices() {
		figures := testenv.Must(s.figures(t.Context(), time.Millisecond))(t)
		for _, f := range figures {
			if f.Value <= 0 || f.note == "" {
				t.Errorf("%+v", f)
			}
		}
		if ratio := figures[2]; ratio.Value < 1 {
			t.Errorf("%+v", ratio)
		}
	}
}
