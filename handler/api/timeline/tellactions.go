package timeline

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/audit"
)

// beforeRun is how long before a run it can have been requested: its message may have waited.
const beforeRun = 24 * time.Hour

// tellActions adds the callers' actions on a run.
func (g *gathering) tellActions(ctx context.Context, t *teller) error {
	if g.Audit == nil || !g.mayRead() {
		return nil
	}
	target := "orchestrations/" + t.run.id
	page, err := g.Audit.List(ctx, audit.Filter{Target: target, From: t.run.state.CreatedAt.Add(-beforeRun)}, audit.MaxLimit, "")
	if err != nil {
		return err
	}
	if page.Next != "" {
		g.truncated.Store(true)
	}
	for _, e := range page.Entries {
		if e.Outcome == audit.Refused || !g.sees(e.TenantID) {
			continue
		}
		a := &Action{OrchestrationID: t.run.id, What: e.Action, By: e.Principal, ByName: e.Name, ByKind: e.Kind, Door: e.Door, Reason: e.Reason, Outcome: e.Outcome}
		if e.Outcome == audit.Failed {
			a.Error = e.After
		}
		t.items = append(t.items, Item{ID: "action/" + t.run.id + "/" + e.ID, At: e.At, EndedAt: e.EndedAt, Kind: KindAction, Engine: t.run.engine, Action: a})
	}
	return nil
}
