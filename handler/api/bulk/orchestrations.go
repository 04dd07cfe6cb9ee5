package bulk

import (
	"context"
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator"
)

// OrchestrationKind is the kind of operations on orchestrations.
const OrchestrationKind = "orchestration-bulk"

// ActionPurge deletes orchestrations that have ended.
const ActionPurge = "purge"

// Purger purges a slice of orchestrations; *orchestrator.Runtime is one.
type Purger interface {
	PurgeAll(ctx context.Context, f orchestrator.Filter, limit int, continuation string) (orchestrator.Purged, error)
}

// Orchestrations is the kind OrchestrationKind. From and To of its requests bound the creation, OlderThanDays says how long
// ago the orchestrations have ended at least. The purger is asked for at work: it is the runtime that the kind belongs to.
func Orchestrations(purger func() Purger) Kind {
	return Kind{Name: OrchestrationKind, Work: func(ctx context.Context, s Slice) (Result, error) {
		if s.Action != ActionPurge {
			return Result{}, fmt.Errorf("%w: there is no action %q on orchestrations", ErrRefused, s.Action)
		}
		f := orchestrator.Filter{Prefix: s.IDPrefix, TenantID: s.Tenant, Orchestrator: s.Orchestrator, CreatedFrom: s.From, CreatedTo: s.CreatedTo, EndedBefore: s.To.AddDate(0, 0, -s.OlderThanDays)}
		if s.Status != "" {
			f.Statuses = []orchestrator.Status{orchestrator.Status(s.Status)}
		}
		p, err := purger().PurgeAll(ctx, f, s.Limit, s.Continuation)
		return Result{Done: p.Orchestrations, PassedOver: p.Active + p.Damaged, Continuation: p.Continuation}, err
	}}
}
