package timeline

import (
	"slices"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// OfHistory tells of an orchestration what its exported history knows, oldest first. Nothing is read besides: people, deliveries,
// actions and other orchestrations are told as far as the rounds know them.
func OfHistory(h orchestrator.History, now func() time.Time) []Item {
	g := newGathering(Config{Now: now}, Query{CorrelationID: h.CorrelationID})
	s := h.Summary()
	t := &teller{g: g, run: run{id: h.ID, engine: h.Outcome.Orchestrator, state: &s}}
	for _, r := range h.Rounds {
		t.tell(r)
	}
	t.finish()
	slices.SortFunc(t.items, func(a, b Item) int { return a.compare(b.At, b.ID) })
	return t.items
}
