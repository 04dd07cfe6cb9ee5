package bulk

import (
	"context"
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator"
)

// OrchestrationKind is the kind of operations on orchestrations.
const OrchestrationKind = "orchestration-bulk"

// ActionPurge deletes ended orchestrations.
const ActionPurge = "purge"

// Purger purges a slice of orchestrations; *orchestrator.Runtime is one.
type Purger interface {
	PurgeAll(ctx context.Context, f orchestrator.Filter, limit int, continuation string) (orchestrator.Purged, error)
}

// Orchestrations returns the kind OrchestrationKind. From and To of its requests bound the creation, OlderThanDays
// the age of the end. purger is called during the work: it returns the runtime that the kind belongs to.
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
