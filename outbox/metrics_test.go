package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	integration(t, "Metrics_Computation_Accurate", func(t *testing.T, w *world) {
		empty, err := w.process(t, nil).monitor.Snapshot(t.Context())
		if diff := cmp.Diff(Snapshot{}, empty); err != nil || diff != "" {
			t.Errorf("%v: %s", err, diff)
		}
		p := w.statuses(t) // 8 of 24 failed, 8 died, 8 were processed at 12:12; it is 12:16
		ordered := message1(31)
		ordered.OrderKey = "k"
		p.add(t, ordered)
		ordered.Key = key(32)
		p.add(t, ordered)
		got, err := p.monitor.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := Snapshot{BacklogSize: 18, FailedPending: 8, OldestAgeSeconds: 16 * 60, OverdueSeconds: 4 * 60, Throughput: 8.0 / 240, FailureRatio: 16.0 / 24, Dead: 8, Died: 8}
		testenv.Equal(t, "", want, got)
		w.pass(time.Minute + time.Second)
		if got, err = p.monitor.Snapshot(t.Context()); err != nil || got.Throughput != 0 || got.FailureRatio != 0 || got.Died != 0 || got.Dead != 8 || got.OldestAgeSeconds != 17*60+1 || got.OverdueSeconds != 5*60+1 {
			t.Errorf("after the window: %+v, %v", got, err)
		}
	})
	t.Run("the names are the document's", func(t *testing.T) {
		t.Parallel()
		text, err := json.Marshal(Snapshot{})
		want := `{"backlogSize":0,"failedPending":0,"oldestAgeSeconds":0,"throughput":0,"failureRatio":0,"dead":0,"died":0,"misconfigured":0,"reported":0}`
		if err != nil || string(text) != want {
			t.Errorf("%s, %v", text, err)
		}
	})
}

// A message is overdue from its due time until its claim: neither while it waits for its next attempt nor while it is
// claimed.
func TestOverdue(t *testing.T) {
	w, p := start(t)
	w.deliver = func(context.Context, Event) error {
		return &DeliveryError{RetryAfter: time.Hour, Err: errors.New("later")}
	}
	overdue := func(when string, want float64) {
		t.Helper()
		if got, err := p.monitor.Snapshot(t.Context()); err != nil || got.OverdueSeconds != want || got.BacklogSize != 1 {
			t.Errorf("%s: %+v, %v; want %v", when, got, err, want)
		}
	}
	p.add(t, message1(1))
	w.pass(time.Minute)
	overdue("before anybody looks", 60)
	p.sweep(t)
	w.pass(30 * time.Minute)
	overdue("while it waits", 0)
	w.pass(31 * time.Minute)
	overdue("when nobody has come back to it", 60)
}

func TestObserver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliver = func(_ context.Context, e Event) error {
		if e.Attempt == 1 {
			return errors.New("no line")
		}
		return nil
	}
	p := w.process(t, nil)
	var got []any
	p.o.observe = Observer{
		Added:     func() { got = append(got, "added") },
		Claimed:   func(n int) { got = append(got, n) },
		Attempted: func(_ context.Context, _ string, o Outcome, _ time.Duration) { got = append(got, o) },
		Settled:   func(s Status, since time.Duration) { got = append(got, s, since) },
	}.complete()
	p.add(t, message1(1))
	p.sweep(t)
	w.pass(time.Minute)
	p.sweep(t)
	testenv.Equal(t, "", []any{"added", 1, Failed, 1, Succeeded, StatusProcessed, time.Minute}, got)
}

// FailedPending and a list of StatusFailed include the same messages, also those that wait for configuration.
func TestFailedPendingIsTheList(t *testing.T) {
	t.Parallel()
	for name, deliver := range map[string]func(context.Context, Event) error{
		"failed":        func(context.Context, Event) error { return errors.New("no line") },
		"misconfigured": func(context.Context, Event) error { return fmt.Errorf("%w: no key", ErrMisconfigured) },
		"both in turn": func(_ context.Context, e Event) error {
			if e.Attempt > 1 {
				return fmt.Errorf("%w: no key", ErrMisconfigured)
			}
			return errors.New("no line")
		},
		"delivered": func(context.Context, Event) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			w, p := start(t)
			w.deliver = deliver
			p.add(t, message1(1))
			for range 3 {
				p.sweep(t)
				list := len(p.all(t, Filter{Status: StatusFailed}))
				if got, err := p.monitor.Snapshot(t.Context()); err != nil || got.FailedPending != list {
					t.Errorf("the list has %d, the metric %d: %v", list, got.FailedPending, err)
				}
				w.pass(time.Hour)
			}
			testenv.OK(t, p.admin.Act(t.Context(), ActionReplay, "acme", key(1).String(), Decision{}))
			list := p.all(t, Filter{Status: StatusFailed})
			if got, err := p.monitor.Snapshot(t.Context()); err != nil || got.FailedPending != len(list) {
				t.Errorf("after a replay the list has %d, the metric %d: %v", len(list), got.FailedPending, err)
			}
			if r := p.get(t, "acme", key(1).String()); (r.Error != "") != (len(list) > 0) {
				t.Errorf("replayed: %d failures, error %q, listed as failed %v", r.RetryCount, r.Error, len(list) > 0)
			}
		})
	}
}
