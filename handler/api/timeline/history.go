package timeline

import (
	"slices"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// OfHistory returns the items of an orchestration's exported history, oldest first. It reads nothing else: users,
// deliveries, actions and other orchestrations appear as far as the rounds know them.
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
