package poller_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/pollertest"
)

// bubble runs a test in a bubble of virtual time.
func bubble(t *testing.T, run func(*testing.T, *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { run(t, newWorld(t)) })
}

func numbers(from, to int) (out []int) {
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

func TestDrainsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(1050)
		r := w.process(nil, nil)
		result := w.tick(r)
		testenv.Equal(t, "delivered", numbers(1, 1050), w.delivered)
		if want := (poller.Result{Rows: 1050, Batches: 4, Drained: true}); result != want {
			t.Errorf("got %+v, want %+v", result, want)
		}
		d := w.document()
		if !d.Cursor().Equal(poller.Cursor{Kind: "integer", Value: "1050"}) || d.Lease.Owner != "" || d.Lease.Token != 1 || d.Checkpoint.Metadata.RowCount != 350 || d.Checkpoint.Metadata.RowsTotal != 1050 {
			t.Errorf("the state is %+v, checkpoint %+v", d, d.Checkpoint)
		}
		// Acquire, a commit per batch, release.
		if n := w.state.count(); n != 6 {
			t.Errorf("%d writes of the state", n)
		}
		if c := r.Counters(); c.Rows != 1050 || c.Batches != 4 || c.BatchSize != 800 || c.LastSuccess.IsZero() || c.Lag != 0 {
			t.Errorf("counted %+v", c)
		}
	})
}

func TestIdleTicksWriteWhenDueOnly(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		plan := &faults.Plan{}
		r := w.process(plan, nil)
		for range 60 {
			if result := w.tick(r); !result.Drained || result.Rows != 0 {
				t.Fatalf("%+v", result)
			}
			wait(time.Minute)
		}
		if n := w.state.count(); n != 4 { // immediately, and every 15 minutes
			t.Errorf("%d writes in an idle hour", n)
		}
		reads := len(slices.DeleteFunc(plan.Calls(), func(c faults.Call) bool { return c.Operation != "Get" }))
		if reads != 60 {
			t.Errorf("%d reads in 60 ticks", reads)
		}
		if d := w.document(); d.Lease.Token != 0 || d.PolledAt.IsZero() {
			t.Errorf("%+v", d)
		}
	})
}

func TestBudgetEndsATickBetweenBatches(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(10)
		w.deliver = func(context.Context, poller.Delivery) error { wait(20 * time.Second); return nil }
		r := w.process(nil, func(c *poller.RunnerConfig) {
			c.Options = poller.Options{Budget: time.Minute, BatchSize: 1, MaxBatch: 1}
		})
		if result := w.tick(r); result.Rows != 3 || result.Drained {
			t.Errorf("%+v", result)
		}
		if result := w.tick(r); result.Rows != 3 || w.document().Lease.Token != 2 {
			t.Errorf("%+v", result)
		}
	})
}

func TestBatchSizeFollowsTheHandler(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(20_000)
		var sizes []int
		w.deliver = func(_ context.Context, d poller.Delivery) error {
			sizes = append(sizes, len(d.Rows))
			wait(time.Duration(len(d.Rows)) * 100 * time.Millisecond)
			return nil
		}
		r := w.process(nil, func(c *poller.RunnerConfig) { c.Options.Budget = 10 * time.Minute })
		w.tick(r)
		// A third of two minutes is 400 rows.
		want := []int{100, 200, 400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 400}
		testenv.Equal(t, "", want, sizes[:len(want)])
		w.deliver = func(_ context.Context, d poller.Delivery) error {
			sizes = append(sizes, len(d.Rows))
			wait(50 * time.Second) // slower than allowed
			return nil
		}
		sizes = nil
		w.tick(r)
		testenv.Equal(t, "", []int{400, 200, 100, 50}, sizes[:4])
	})
}

func TestHeartbeatsKeepALease(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(1)
		w.deliver = func(ctx context.Context, d poller.Delivery) error {
			for range 60 {
				wait(time.Minute)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				other := w.tick(w.process(nil, nil))
				if !errors.Is(other.Skipped, poller.ErrHeld) || d.Token != 1 {
					t.Errorf("token %d, the other: %+v", d.Token, other)
				}
			}
			return nil
		}
		if result := w.tick(w.process(nil, nil)); result.Rows != 1 {
			t.Errorf("%+v", result)
		}
	})
}

func TestTicksDoNotOverlap(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(1)
		var r *poller.Runner
		w.deliver = func(context.Context, poller.Delivery) error {
			if inner := w.tick(r); !errors.Is(inner.Skipped, poller.ErrHeld) {
				t.Errorf("%+v", inner)
			}
			return nil
		}
		r = w.process(nil, nil)
		w.tick(r)
		if w.document().Lease.Token != 1 {
			t.Error("the inner tick took the lease")
		}
	})
}

func TestTheSameOwnerGetsANewToken(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(1)
		same := func(c *poller.RunnerConfig) { c.Owner = "node" }
		plan := &faults.Plan{At: 4, Fault: faults.CrashAfter} // read, fetch, acquire, deliver
		if _, err := w.process(plan, same).Tick(t.Context()); !errors.Is(err, faults.ErrCrashed) {
			t.Fatal(err)
		}
		if result := w.tick(w.process(nil, same)); result.Rows != 1 {
			t.Errorf("%+v", result)
		}
		testenv.Equal(t, "tokens", []int64{1, 2}, w.tokens)
	})
}

// A lease with an invalid end is taken when it was not renewed for its duration, by the observer's own clock.
func TestTheObserverCountsItsOwnTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(1)
		w.tick(w.process(nil, nil))
		state := testenv.Must(w.store().Load(t.Context(), name))(t)
		d := w.document()
		d.Lease.Owner, d.Lease.Nonce = "other", "n"
		d.Lease.Heartbeat = time.Now().UTC().Add(24 * time.Hour)
		d.Lease.Expires = d.Lease.Heartbeat.Add(2 * time.Minute)
		text := testenv.Must(d.Encode())(t)
		testenv.Must(w.store().Swap(t.Context(), name, text, state.ETag))(t)
		w.source.Append(1)
		r := w.process(nil, nil)
		for i := range 3 {
			if result := w.tick(r); !errors.Is(result.Skipped, poller.ErrHeld) {
				t.Errorf("tick %d: %+v", i, result)
			}
			wait(time.Minute)
		}
		if result := w.tick(r); result.Rows != 1 {
			t.Errorf("%+v", result)
		}
	})
}

func TestChangedDefinitionIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		w.tick(w.process(nil, nil))
		changed := func(c *poller.RunnerConfig) { c.Source = redefined{w.source} }
		_, err := w.process(nil, changed).Tick(t.Context())
		if !errors.Is(err, poller.ErrFingerprint) || !strings.Contains(err.Error(), `cursor: was "id", is "updated_at"`) || !strings.Contains(err.Error(), "poller orders") {
			t.Errorf("got %v", err)
		}
		testenv.Must(w.operator().AcceptFingerprint(t.Context(), name, redefined{w.source}.Definition(), poller.ChangeOptions{}))(t)
		w.source.Append(1)
		if result := w.tick(w.process(nil, changed)); result.Rows != 1 {
			t.Errorf("%+v", result)
		}
	})
}

type redefined struct{ *pollertest.Source }

func (r redefined) Definition() poller.Definition {
	d := r.Source.Definition()
	d.Cursor = "updated_at"
	return d
}

// disordered returns rows in the given order.
type disordered struct {
	*pollertest.Source
	rows []poller.Row
}

func (d disordered) Fetch(context.Context, poller.Cursor, int, int) (poller.Batch, error) {
	return poller.Batch{Rows: d.rows}, nil
}

func TestRowsOutOfOrderAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for what, rows := range map[string][]poller.Row{
			"back":   {pollertest.Row(2), pollertest.Row(1)},
			"same":   {pollertest.Row(1), pollertest.Row(1)},
			"behind": {pollertest.Row(0)},
		} {
			if what == "behind" {
				w.source.Append(1)
				w.tick(w.process(nil, nil))
			}
			_, err := w.process(nil, func(c *poller.RunnerConfig) { c.Source = disordered{w.source, rows} }).Tick(t.Context())
			if !errors.Is(err, poller.ErrOrder) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestSourceFailures(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		broken := errors.New("no such table")
		w.source.Fail(broken)
		r := w.process(nil, nil)
		if _, err := r.Tick(t.Context()); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "poller orders: ") {
			t.Errorf("got %v", err)
		}
		if d := w.document(); w.state.count() != 1 || d.Lease.Token != 0 || d.Checkpoint != nil {
			t.Errorf("more than the failure was written: %+v", d)
		}
		w.source.Fail(nil)
		w.source.Append(1)
		if result := w.tick(r); result.Rows != 1 || r.Counters().Failures != 1 {
			t.Errorf("%+v", result)
		}
	})
}

func TestHeldBackRowsAreReported(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(5)
		w.source.Hold(3)
		r := w.process(nil, nil)
		if result := w.tick(r); result.Rows != 2 || result.HeldBack == "" || r.Counters().HeldBack == "" {
			t.Errorf("%+v", result)
		}
	})
}

func TestBackfillEndsWhereItsSourceEndedWhenItBegan(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		backfill := func(c *poller.RunnerConfig) {
			c.Options = poller.Options{Backfill: true, RowsPerSecond: 10, Budget: 30 * time.Second, MinBatch: 1}
		}
		w.source.Append(500)
		began := time.Now()
		r := w.process(nil, backfill)
		w.tick(r)
		w.source.Append(500)
		for !w.tick(r).Done {
		}
		testenv.Equal(t, "", numbers(1, 500), w.delivered)
		if took := time.Since(began); took < 49*time.Second || took > time.Minute {
			t.Errorf("500 rows at 10 a second took %v", took)
		}
		before := w.state.count()
		if result := w.tick(w.process(nil, backfill)); !result.Done || w.state.count() != before {
			t.Errorf("%+v", result)
		}
	})
}

func TestBackfillOfNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.process(nil, func(c *poller.RunnerConfig) { c.Options.Backfill = true })
		if result := w.tick(r); !result.Done {
			t.Errorf("%+v", result)
		}
		w.source.Append(1)
		if result := w.tick(r); !result.Done || len(w.delivered) > 0 {
			t.Errorf("%+v", result)
		}
	})
}

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	handler := poller.HandlerFunc(func(context.Context, poller.Delivery) error { return nil })
	for want, c := range map[string]poller.RunnerConfig{
		"no name of a poller": {Name: "Orders", Source: &pollertest.Source{}, Store: poller.BlobStore{}, Handler: handler},
		"are required":        {Name: "orders", Source: &pollertest.Source{}, Store: poller.BlobStore{}},
		"the lease lasts 1s":  {Name: "orders", Source: &pollertest.Source{}, Store: poller.BlobStore{}, Handler: handler, Options: poller.Options{LeaseTTL: time.Second}},
	} {
		if _, err := poller.NewRunner(c); !errors.Is(err, poller.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// Values are compared by their type; where the key columns decide, the source's order counts.
func TestOrderOfCursors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind, first, second string
		ordered             bool
	}{
		{"integer", "9", "10", true},
		{"integer", "10", "9", false},
		{"integer", "010", "9", false}, // not octal
		{"rowversion", "0x00000000000007D1", "0x00000000000007D2", true},
		{"rowversion", "0x00000000000007E0", "0x00000000000007D9", false},
		{"timestamp+pk", "2026-04-07T01:23:45.123456Z", "2026-04-07T01:23:45.1234567Z", true},
		{"timestamp+pk", "2026-04-07T01:23:45.9Z", "2026-04-07T01:23:45.123Z", false},
		{"timestamp+pk", "2026-04-07T01:23:45Z", "2026-04-07T01:23:45Z", true}, // by key
		{"opaque", "b", "a", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			rows := []poller.Row{
				{Key: []byte(`{"id":1}`), Cursor: poller.Cursor{Kind: test.kind, Value: test.first, Tiebreaker: []byte(`{"id":1}`)}},
				{Key: []byte(`{"id":2}`), Cursor: poller.Cursor{Kind: test.kind, Value: test.second, Tiebreaker: []byte(`{"id":2}`)}},
			}
			r := w.process(nil, func(c *poller.RunnerConfig) { c.Source = disordered{w.source, rows} })
			w.state.rewinds = true
			if _, err := r.Tick(t.Context()); (err == nil) != test.ordered {
				t.Errorf("%+v: %v", test, err)
			}
		})
	}
}
