package handler

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/orchestrator"
)

// operationEnded records the changes of a bulk operation when it has ended: the entry of its start only has the
// intention. It ignores other orchestrations, and can be repeated.
func (p *parts) operationEnded(ctx context.Context, out orchestrator.Outcome) error {
	if !bulk.Is(out) || !out.Ended() {
		return nil
	}
	op, err := p.operations.Get(ctx, out.ID)
	if err != nil {
		return fmt.Errorf("record the end of the operation %s: %w", out.ID, err)
	}
	id, name, _ := strings.Cut(strings.TrimSuffix(op.Request.By, ")"), " (")
	e := audit.Entry{ID: uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "operation\n%s\n%d", out.ID, out.Execution)).String(), At: out.EndedAt,
		Principal: id, Name: name, Kind: "operation", Action: op.Request.Action + " ended", Target: "operations/" + op.ID, Door: "program",
		TenantID: op.Request.Tenant, CorrelationID: op.CorrelationID, Outcome: audit.Done,
		After: fmt.Sprintf("%s: %d changed, %d passed over", out.Status, op.Progress.Done, op.Progress.PassedOver)}
	if out.Status != orchestrator.Completed {
		e.Outcome = audit.Failed
	}
	return p.audit.Record(ctx, e)
}
