package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator"
)

// For any id that a tenant chooses, no other tenant, schedule or report can have the id of its run. The same choice
// yields the same id.
func TestTenantsCannotClaimOtherIDs(t *testing.T) {
	t.Parallel()
	sample.Rapid(t)
	w := newWorld(t)
	p := w.Restart(nil)
	rapid.Check(t, func(rt *rapid.T) {
		tenants := []string{"", "contoso", "fabrikam", "contoso:x", "a"}
		taken := map[string]string{engine.ScheduleCorrelationID("schedule", "hmac", "i1", "slot"): "a schedule", engine.DeriveCorrelationID("report", "i1", "e1"): "a report"}
		chosen := []string{"", "e1", "x", "contoso:", "contoso:e1", "fabrikam:contoso:e1", strings.Repeat("x", engine.MaxIDLength), "CONTOSO:e1"}
		for range rapid.IntRange(1, 40).Draw(rt, "starts") {
			tenant := rapid.SampledFrom(tenants).Draw(rt, "tenant")
			ids := append([]string{}, chosen...)
			for id := range taken {
				ids = append(ids, id, tenant+":"+id)
			}
			id := rapid.SampledFrom(ids).Draw(rt, "id")
			s := orchestrator.Start{Orchestrator: "turntable", TenantID: tenant, RequestID: "r"}
			switch rapid.IntRange(0, 2).Draw(rt, "where") {
			case 0:
				s.CorrelationID = id
			case 1:
				s.Input = json.RawMessage(fmt.Sprintf(`{"correlationId":%q}`, id))
			case 2:
				s.ID = "turntable-" + id
			}
			got, err := p.Admit(t.Context(), s)
			if errors.Is(err, engine.ErrRefused) {
				continue
			}
			if err != nil {
				rt.Fatal(err)
			}
			if tenant == "" {
				if by := taken[got.CorrelationID]; by == "a schedule" {
					rt.Fatalf("the platform used the id of a schedule, %s", got.CorrelationID)
				}
				continue // its operators may use existing ids
			}
			if by, there := taken[got.CorrelationID]; there && by != tenant {
				rt.Fatalf("%s used the id %q of %s by %q", tenant, got.CorrelationID, by, id)
			}
			taken[got.CorrelationID] = tenant
			again, err := p.Admit(t.Context(), orchestrator.Start{Orchestrator: "turntable", TenantID: tenant, CorrelationID: got.CorrelationID})
			if err != nil || again.CorrelationID != got.CorrelationID {
				rt.Fatalf("the id %q of an answer becomes %q: %v", got.CorrelationID, again.CorrelationID, err)
			}
		}
	})
}

// Ids of schedules are refused at the entry points for callers.
func TestIDsOfSchedulesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Restart(nil)
	id := engine.ScheduleCorrelationID("schedule", "turntable", "i1", "2026-11-28")
	if _, err := p.Admit(t.Context(), orchestrator.Start{Orchestrator: "turntable", CorrelationID: id}); !errors.Is(err, engine.ErrRefused) || !strings.Contains(err.Error(), "those of schedules") {
		t.Errorf("a start: %v", err)
	}
	if _, err := (engine.Definition{Name: "turntable"}).Accept([]byte(`{"correlationId":"` + id + `"}`)); err == nil || !strings.Contains(err.Error(), "those of schedules") {
		t.Errorf("an intake: %v", err)
	}
}
