package poller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/pollertest"
)

// The delay after a failure doubles up to its maximum, and no try is made before its end.
func TestRetryDelays(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(1)
		tries := 0
		w.deliver = func(context.Context, poller.Delivery) error { tries++; return errors.New("down") }
		r := w.process(nil, func(c *poller.RunnerConfig) { c.Quarantine = nil })
		var got []time.Duration
		for i := range 8 {
			if _, err := r.Tick(t.Context()); !errors.Is(err, poller.ErrBatch) || tries != i+1 {
				t.Fatal(tries, err)
			}
			f := w.document().Failure
			got = append(got, f.NextAt.Sub(f.LastAt))
			wait(time.Until(f.NextAt) - time.Second)
			if result := w.tick(r); !errors.Is(result.Skipped, poller.ErrWaiting) || tries != i+1 {
				t.Errorf("a second before it is due: %+v", result)
			}
			wait(time.Second)
		}
		s := time.Second
		testenv.Equal(t, "", []time.Duration{30 * s, 60 * s, 120 * s, 240 * s, 480 * s, 900 * s, 900 * s, 900 * s}, got)
	})
}

// Besides the free rows, a share of the last rows may go to quarantine, and older rows count half when the window is
// full.
func TestShareOfTheQuarantine(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		refuse := poisoned(numbers(91, 99)...)
		w.deliver = func(ctx context.Context, d poller.Delivery) error { return poller.Permanent(refuse(ctx, d)) }
		r := w.process(nil, func(c *poller.RunnerConfig) {
			c.Options = poller.Options{BatchSize: 10, MaxBatch: 10, QuarantineFree: 1, QuarantineShare: 0.1, QuarantineWindow: 100}
		})
		w.source.Append(99)
		if result := w.tick(r); result.Quarantined != 9 { // a tenth of ninety
			t.Errorf("%+v", result)
		}
		if q := w.document().Quarantine; q.Rows != 99 || q.Quarantined != 9 {
			t.Errorf("%+v", q)
		}
		w.source.Append(1)
		w.tick(r)
		if q := w.document().Quarantine; q.Rows != 50 || q.Quarantined != 4 {
			t.Errorf("with a full window: %+v", q)
		}
		refuse = poisoned(numbers(101, 110)...)
		w.source.Append(10)
		if _, err := r.Tick(t.Context()); !errors.Is(err, poller.ErrBreaker) || len(w.quarantined) != 10 { // a tenth of fifty
			t.Errorf("%d rows in quarantine, %v", len(w.quarantined), err)
		}
		wait(time.Hour)
		// The next process, such as after a restart, continues the counts.
		again := w.process(nil, func(c *poller.RunnerConfig) {
			c.Options = poller.Options{BatchSize: 10, MaxBatch: 10, QuarantineFree: 1, QuarantineShare: 0.1, QuarantineWindow: 100}
		})
		if _, err := again.Tick(t.Context()); !errors.Is(err, poller.ErrBreaker) || len(w.quarantined) != 10 {
			t.Errorf("after a restart: %d rows in quarantine, %v", len(w.quarantined), err)
		}
	})
}

// asked is a source with more rows than any request, which records the requests.
type asked struct {
	*pollertest.Source
	at            time.Time
	limits, bytes []int
}

func (a *asked) Fetch(_ context.Context, _ poller.Cursor, limit, maxBytes int) (poller.Batch, error) {
	a.limits, a.bytes = append(a.limits, limit), append(a.bytes, maxBytes)
	value := a.at.Add(time.Duration(len(a.limits)) * time.Second).Format(time.RFC3339Nano)
	return poller.Batch{Rows: []poller.Row{{Key: []byte(`{"id":1}`), Cursor: poller.Cursor{Kind: "timestamp", Value: value}}}, More: true}, nil
}

// A batch respects the limits for rows and bytes, and the counters have the lag of its last row.
func TestBoundsAndLagOfABatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.state.rewinds = true
		for bytes, options := range map[int]poller.Options{4 << 20: {}, 1000: {MaxBytes: 1000}} {
			source := &asked{Source: w.source, at: time.Now().Add(-time.Minute)}
			options.Budget, options.BatchSize = 1, 7
			r := w.process(nil, func(c *poller.RunnerConfig) {
				c.Name, c.Source, c.Options = "other", source, options
				c.Handler = poller.HandlerFunc(func(context.Context, poller.Delivery) error { wait(10 * time.Second); return nil })
			})
			result, err := r.Tick(t.Context())
			if err != nil || result.Rows != 1 || result.Drained {
				t.Errorf("%+v, %v", result, err)
			}
			testenv.Equal(t, "", [][]int{{7}, {bytes}}, [][]int{source.limits, source.bytes})
			if c := r.Counters(); c.Lag != 69*time.Second {
				t.Errorf("a lag of %v", c.Lag)
			}
		}
	})
}
