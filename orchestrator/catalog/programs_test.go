package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// Several processes change orchestrations and die, write their changes in any order, and rows are deleted or added: a
// pass later each filter agrees with a scan.
func TestAPassMendsWhatever(t *testing.T) {
	t.Parallel()
	sample.Rapid(t)
	rapid.Check(t, func(rt *rapid.T) {
		h := newHouse(t)
		processes := []*Catalog{h.process(t, same), h.process(t, same), h.process(t, same)}
		steps := rapid.IntRange(1, 40).Draw(rt, "steps")
		for range steps {
			at := rapid.IntRange(0, len(processes)-1).Draw(rt, "process")
			h.Catalog = processes[at]
			switch rapid.IntRange(0, 9).Draw(rt, "deed") {
			case 0:
				_ = h.Flush(t.Context())
			case 1:
				h.kill()
				plan := &faults.Plan{At: rapid.IntRange(0, 8).Draw(rt, "call"), Fault: rapid.SampledFrom([]faults.Fault{faults.CrashBefore, faults.CrashAfter,
					faults.Applied, faults.Unknown, faults.Conflict, faults.Precondition, faults.Throttled}).Draw(rt, "fault")}
				processes[at] = h.process(t, plan.Intercept)
			case 2:
				h.tamper(t, rt)
			case 3:
				_, _ = h.Repair(t.Context())
			default:
				_ = h.deed(rt)(t.Context()) // an impossible change changes nothing
				h.drive(t)
			}
		}
		for _, c := range processes {
			c.kill()
		}
		h.process(t, same)
		h.repair(t) // a running pass may have passed the error
		h.repair(t)
		h.agreesOn(t, someFilters(steps))
	})
}

// deed returns a change of an orchestration.
func (h *house) deed(rt *rapid.T) func(context.Context) error {
	id, r := rapid.SampledFrom([]string{"a", "a/b", "b"}).Draw(rt, "id"), h.runtime
	start := orchestrator.Start{ID: id, Orchestrator: rapid.SampledFrom([]string{"short", "bad", "gate"}).Draw(rt, "orchestrator"), Input: json.RawMessage("1"),
		CorrelationID: fmt.Sprint(rapid.IntRange(0, 9).Draw(rt, "run")), Reuse: orchestrator.ReuseEnded}
	if rapid.Bool().Draw(rt, "tagged") {
		start.Reference = &orchestrator.Reference{Key: "red"}
	}
	start.TenantID = rapid.SampledFrom([]string{"", "contoso", "CONTOSO", "fabrikam"}).Draw(rt, "tenant")
	return rapid.SampledFrom([]func(context.Context) error{
		func(ctx context.Context) error { return errorOf(r.Start(ctx, start)) },
		func(ctx context.Context) error { return errorOf(r.Start(ctx, start)) },
		func(ctx context.Context) error { return r.Raise(ctx, id, "open", 1, "") },
		func(ctx context.Context) error { return r.Suspend(ctx, id, "") },
		func(ctx context.Context) error { return r.Resume(ctx, id, "") },
		func(ctx context.Context) error { return r.Terminate(ctx, id, "") },
		func(ctx context.Context) error { return r.Purge(ctx, id) },
		func(ctx context.Context) error { return errorOf(r.Restart(ctx, id, "")) },
		func(ctx context.Context) error { return errorOf(r.Rewind(ctx, id, "")) },
	}).Draw(rt, "do")
}

// tamper deletes a row, or adds one of no orchestration.
func (h *house) tamper(t *testing.T, rt *rapid.T) {
	t.Helper()
	rows := h.rows(t)
	if len(rows) == 0 {
		return
	}
	name := rapid.SampledFrom(rows).Draw(rt, "row")
	op := tables.Delete(key(name), "")
	if rapid.Bool().Draw(rt, "adds") {
		op = tables.Upsert(tables.Entity{Key: key(name + "x"), Properties: map[string]any{columnID: "a"}})
	}
	noError(t, h.store.Apply(t.Context(), DefaultTable, op))
}
