package orchestrator_test

import (
	"encoding/json"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// A start reads the rows of its id twice: to find the orchestration that has the id, and for the returned outcome. The
// check for the remains of a purge costs no further query.
func TestStartReadsTwice(t *testing.T) {
	t.Parallel()
	plan := &faults.Plan{}
	wait := orchestrator.NewOrchestrator("wait", func(ctx *orchestrator.Context, _ int) (int, error) {
		return orchestrator.Event[int](ctx, "go").Await()
	})
	r, err := orchestrator.New(orchestrator.Config{Orchestrators: []orchestrator.AnyOrchestrator{wait}, Tables: faults.Tables(tables.NewMemory(), plan.Intercept),
		Queues: queues.NewMemory(), Blobs: blobs.NewMemory()})
	if err == nil {
		err = r.Prepare(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	before := len(plan.Calls())
	if _, err := r.Start(t.Context(), orchestrator.Start{ID: "a", Orchestrator: "wait", Input: json.RawMessage("1"), CorrelationID: "a"}); err != nil {
		t.Fatal(err)
	}
	queries := 0
	for _, c := range plan.Calls()[before:] {
		if c.Operation == "Query" {
			queries++
		}
	}
	if queries != 2 {
		t.Errorf("%d queries, want 2", queries)
	}
}
