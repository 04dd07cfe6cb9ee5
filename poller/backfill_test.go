package poller_test

import (
	"context"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/pollertest"
)

// A backfill whose setting is removed continues as a poller without an end, from its position.
func TestBackfillBecomesAPoller(t *testing.T) {
	backfill := func(c *poller.RunnerConfig) { c.Options.Backfill = true }
	for what, before := range map[string]func(*poller.RunnerConfig){
		"at its end": backfill,
		"on its way": func(c *poller.RunnerConfig) {
			c.Options = poller.Options{Backfill: true, BatchSize: 2, MaxBatch: 2, RowsPerSecond: 2, Budget: 1}
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.source.Append(5)
				w.tick(w.process(nil, before))
				w.source.Append(5)
				r := w.process(nil, nil)
				if result := w.tick(r); result.Done || !result.Drained {
					t.Errorf("%+v", result)
				}
				testenv.Equal(t, "", numbers(1, 10), w.delivered)
				v, err := w.operator().Show(t.Context(), name)
				if err != nil || v.Document.Backfill != nil || v.Condition(nil) != poller.Idle {
					t.Errorf("%s, %v", v.Text, err)
				}
				// A tick without rows costs the same as for any poller.
				writes := w.state.count()
				if result := w.tick(r); !result.Drained || w.state.count() != writes {
					t.Errorf("%+v, %d writes", result, w.state.count()-writes)
				}
			})
		})
	}
}

// A completed backfill without new rows records with its next write that it is a poller without an end.
func TestBackfillBecomesAQuietPoller(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(5)
		w.tick(w.process(nil, func(c *poller.RunnerConfig) { c.Options.Backfill = true }))
		r := w.process(nil, nil)
		w.tick(r)
		if d := w.document(); d.Backfill != nil {
			t.Errorf("%+v", d.Backfill)
		}
		writes := w.state.count()
		if w.tick(r); w.state.count() != writes {
			t.Errorf("%d writes of a quiet poller", w.state.count()-writes)
		}
	})
}

// A reset reopens a completed backfill: at the beginning with a new end, at another position with its old end.
func TestBackfillBeginsAgain(t *testing.T) {
	for what, one := range map[string]struct {
		reset func(context.Context, poller.Operator) (poller.Change, error)
		want  []int
	}{
		"beginning": {func(ctx context.Context, o poller.Operator) (poller.Change, error) {
			return o.ResetToBeginning(ctx, name, poller.ChangeOptions{})
		}, numbers(1, 10)},
		"cursor": {func(ctx context.Context, o poller.Operator) (poller.Change, error) {
			return o.ResetToCursor(ctx, name, place(2), poller.ChangeOptions{})
		}, numbers(3, 5)},
		"checkpoint": {func(ctx context.Context, o poller.Operator) (poller.Change, error) {
			return o.ResetToCheckpoint(ctx, name, []byte(`{"cursor":{"kind":"integer","value":"3"}}`), poller.ChangeOptions{})
		}, numbers(4, 5)},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.state.rewinds = true
				w.source.Append(5)
				r := w.process(nil, func(c *poller.RunnerConfig) { c.Options.Backfill = true })
				w.tick(r)
				w.source.Append(5)
				w.delivered = nil
				testenv.Must(one.reset(t.Context(), w.operator()))(t)
				if result := w.tick(r); !result.Done {
					t.Errorf("%+v", result)
				}
				testenv.Equal(t, "", one.want, w.delivered)
			})
		})
	}
}

// A poller that continues a completed backfill is not a backfill.
func TestCloneOfABackfill(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(5)
		w.tick(w.process(nil, func(c *poller.RunnerConfig) { c.Options.Backfill = true }))
		testenv.Must(w.operator().Clone(t.Context(), name, "copy", poller.ChangeOptions{}))(t)
		v, err := w.operator().Show(t.Context(), "copy")
		if err != nil || v.Document.Backfill != nil || v.Document.Cursor().Value != "5" {
			t.Errorf("%s, %v", v.Text, err)
		}
		w.source.Append(2)
		w.delivered = nil
		var got []int
		copied := w.process(nil, func(c *poller.RunnerConfig) {
			c.Name = "copy"
			c.Handler = poller.HandlerFunc(func(_ context.Context, d poller.Delivery) error {
				for _, row := range d.Rows {
					got = append(got, pollertest.Number(row.Cursor))
				}
				return nil
			})
		})
		w.tick(copied)
		testenv.Equal(t, "", numbers(6, 7), got)
	})
}
