package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// workshop is a house whose code changes: "turns" waits for another event when it is changed, "flaky" fails until it
// is fixed.
type workshop struct {
	*house
	changed, mended atomic.Bool
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	w := &workshop{house: newHouse(t)}
	turns := orchestrator.NewOrchestrator("turns", func(ctx *orchestrator.Context, _ int) (int, error) {
		if w.changed.Load() {
			return orchestrator.Event[int](ctx, "another").Await()
		}
		return orchestrator.Event[int](ctx, "open").Await()
	})
	flaky := orchestrator.NewOrchestrator("flaky", func(_ *orchestrator.Context, n int) (int, error) {
		if !w.mended.Load() {
			return 0, errors.New("no line")
		}
		return n, nil
	})
	var err error
	w.runtime, err = orchestrator.New(orchestrator.Config{Tables: w.store, Blobs: blobs.NewMemory(), Queues: w.queues, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		StatusChanged: func(n orchestrator.StatusChange) { w.Record(n) }, Orchestrators: []orchestrator.AnyOrchestrator{turns, flaky}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// attempt drives an orchestration whose caller retries it.
func (w *workshop) attempt(t *testing.T, id string) orchestrator.Outcome {
	t.Helper()
	out, err := w.runtime.Run(t.Context(), orchestrator.Start{ID: id, Orchestrator: "flaky", Input: []byte("1"), CorrelationID: "c", WillRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// signal raises an event for an orchestration that may be unable to handle it.
func (w *workshop) signal(t *testing.T, id string) {
	t.Helper()
	noError(t, w.runtime.Raise(t.Context(), id, "open", []byte("1"), ""))
	w.drive(t)
}

func (w *workshop) census(t *testing.T) string {
	t.Helper()
	noError(t, w.Flush(t.Context()))
	c, err := w.CountByStatus(t.Context(), orchestrator.Stalled, orchestrator.Retrying)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("stalled ", c[orchestrator.Stalled].ByOrchestrator, ", retrying ", c[orchestrator.Retrying].ByOrchestrator)
}

// A stalled or retried orchestration is in the views of these states for as long as it lasts, and is listed and
// counted there.
func TestStatesOfWhatGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorkshop(t)
		w.start(t, "a", "turns", "", 1)
		w.start(t, "b", "turns", "", 1)
		w.changed.Store(true)
		w.signal(t, "a")
		w.attempt(t, "c")
		wants := func(when, census string, stalled, retrying []string) {
			t.Helper()
			if got := w.census(t); got != census {
				t.Errorf("%s: %s, want %s", when, got, census)
			}
			for status, want := range map[orchestrator.Status][]string{orchestrator.Stalled: stalled, orchestrator.Retrying: retrying} {
				if diff := cmp.Diff(want, w.pages(t, orchestrator.Filter{Statuses: []orchestrator.Status{status}}, 10)); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", when, status, diff)
				}
			}
			if diff := cmp.Diff(w.right(t), w.rows(t)); diff != "" {
				t.Errorf("%s: rows (-want +got):\n%s", when, diff)
			}
		}
		wants("broken", "stalled map[turns:1], retrying map[flaky:1]", []string{"a"}, []string{"c"})
		w.changed.Store(false)
		w.mended.Store(true)
		w.signal(t, "a")
		if out := w.attempt(t, "c"); out.Status != orchestrator.Completed {
			t.Errorf("%+v", out)
		}
		wants("mended", "stalled map[], retrying map[]", []string{}, []string{})
	})
}

// The repair adds rows that a crash kept from the index: the row of a state as well as that of its end.
func TestRepairOfStates(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorkshop(t)
		w.start(t, "a", "turns", "", 1)
		repaired := func(want string) {
			t.Helper()
			w.begin(t) // a process without pending changes
			time.Sleep(2 * time.Hour)
			w.repair(t)
			if got := w.census(t); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if diff := cmp.Diff(w.right(t), w.rows(t)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		}
		w.changed.Store(true)
		w.signal(t, "a")
		w.attempt(t, "c")
		repaired("stalled map[turns:1], retrying map[flaky:1]")
		w.changed.Store(false)
		w.mended.Store(true)
		w.signal(t, "a")
		w.attempt(t, "c")
		repaired("stalled map[], retrying map[]")
	})
}

// The cost of the counts is bounded; a few rows are checked, and stale ones are deleted.
func TestCensusIsBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rows, counted  int
		more           bool
		queries, reads int
		left           int
	}{
		"none":        {0, 0, false, 1, 0, 0},
		"a few":       {16, 0, false, 1, 16, 0},
		"more":        {17, 17, false, 1, 0, 17},
		"a thousand":  {1000, 1000, false, 1, 0, 1000},
		"beyond that": {1001, 1000, true, 1, 0, 1001},
	} {
		h := newHouse(t)
		for i := range test.rows { // of orchestrations that do not exist
			e := entry{id: fmt.Sprint(i), orchestrator: "gone", status: orchestrator.Stalled, created: time.Unix(int64(i), 0)}
			noError(t, h.store.Apply(t.Context(), DefaultTable, tables.Insert(e.row(e.statusRows()[0]))))
		}
		reads := 0
		count := func(ctx context.Context) (StatusCounts, error) {
			h.meter.calls = map[string]int{}
			c, err := h.CountByStatus(ctx, orchestrator.Stalled)
			reads = h.meter.count("Apply")
			return c, err
		}
		c, err := count(t.Context())
		got := c[orchestrator.Stalled]
		if err != nil || got.Total() != test.counted || got.ByOrchestrator["gone"] != test.counted || got.More != test.more {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if q := h.meter.count("Query"); q != test.queries || reads != test.reads {
			t.Errorf("%s: %d queries and %d deletions", name, q, reads)
		}
		if left := len(h.rows(t)); left != test.left {
			t.Errorf("%s: %d rows are left", name, left)
		}
	}
	h := newHouse(t)
	h.meter.failing(errors.New("no line"))
	if _, err := h.CountByStatus(t.Context(), orchestrator.Stalled); err == nil {
		t.Error("a failure of storage is none of the census")
	}
}

// A run is idle if it was created long ago, has not ended, has not continued since, and waits for nothing that ends
// by itself. A passed timer that was not delivered counts as idle.
func TestCountIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		timer := orchestrator.NewOrchestrator("timer", func(ctx *orchestrator.Context, days int) (int, error) {
			return days, ctx.Sleep(time.Duration(days) * 24 * time.Hour)
		})
		gate := orchestrator.NewOrchestrator("gate", func(ctx *orchestrator.Context, n int) (int, error) {
			for _, name := range []string{"open", "again"} {
				if _, err := orchestrator.Event[int](ctx, name).Await(); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		var err error
		h.runtime, err = orchestrator.New(orchestrator.Config{Tables: h.store, Blobs: blobs.NewMemory(), Queues: h.queues, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			StatusChanged: func(n orchestrator.StatusChange) { h.Record(n) }, Orchestrators: []orchestrator.AnyOrchestrator{timer, gate}})
		noError(t, err)
		h.start(t, "waits", "gate", "", 1)
		h.start(t, "continues", "gate", "", 1)
		h.start(t, "late timer", "timer", "", 1)
		h.start(t, "long timer", "timer", "", 365)
		time.Sleep(50 * 24 * time.Hour)
		noError(t, h.runtime.Raise(t.Context(), "continues", "open", 1, ""))
		h.drive(t)
		for i := range 150 {
			h.start(t, fmt.Sprintf("new-%03d", i), "gate", "", 1)
		}
		noError(t, h.Flush(t.Context()))
		for _, tt := range []struct {
			days int
			want map[string]int
		}{{days: 40, want: map[string]int{"gate": 1, "timer": 1}}, {days: 60, want: map[string]int{}}} {
			before := time.Now().Add(-time.Duration(tt.days) * 24 * time.Hour)
			got, err := h.CountIdle(t.Context(), before, time.Now())
			if diff := cmp.Diff(StatusCount{ByOrchestrator: tt.want}, got); err != nil || diff != "" {
				t.Errorf("%d days: %v: %s", tt.days, err, diff)
			}
		}
		time.Sleep(200 * 24 * time.Hour)
		got, err := h.CountIdle(t.Context(), time.Now().Add(-time.Hour), time.Now())
		if err != nil || got.ByOrchestrator["gate"] != 152 || got.ByOrchestrator["timer"] != 1 {
			t.Errorf("after half a year: %+v, %v", got, err)
		}
		h.Close()
	})
}
