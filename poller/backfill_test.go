package poller_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/poller"
)

// A backfill whose setting is taken away goes on as a poller without an end, wherever it was.
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
				if diff := cmp.Diff(numbers(1, 10), w.delivered); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
				v, err := w.operator().Show(t.Context(), name)
				if err != nil || v.Document.Backfill != nil || v.Condition(nil) != poller.Idle {
					t.Errorf("%s, %v", v.Text, err)
				}
				// A tick without rows costs what it costs any poller.
				writes := w.state.count()
				if result := w.tick(r); !result.Drained || w.state.count() != writes {
					t.Errorf("%+v, %d writes", result, w.state.count()-writes)
				}
			})
		})
	}
}

// One that has come to its end, and then finds nothing, says that it is a poller without an end with its next word.
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
