package bulk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/orchestrator"
)

// maxExamined is at how many operations one List looks, about: each costs a transaction, or two.
const maxExamined = 500

// Filter selects operations; a zero field does not filter.
type Filter struct {
	// Statuses are those of the orchestrations.
	Statuses []orchestrator.Status
	// By is a part of who decided on it, compared without case.
	By string
	// Tenant is the tenant whose rows it is on. "" is the platform, which sees all.
	Tenant string
}

// Lister lists orchestrations; that of a catalog gives the newest first.
type Lister func(ctx context.Context, f orchestrator.Filter, limit int, continuation string) ([]orchestrator.Summary, string, error)

// List returns operations in the order of the lister, up to limit, and a continuation for the following ones; "" at the end. A page
// is short of its limit, and can be empty, where By or Tenant select few of the many that were looked at. An operation whose
// rounds cannot be read is listed without what it was asked for. The errors are those of the lister and of the runtime.
func (o *Operations) List(ctx context.Context, list Lister, f Filter, limit int, continuation string) ([]Operation, string, error) {
	var found []Operation
	for examined := 0; ; {
		some, next, err := list(ctx, orchestrator.Filter{Orchestrators: kinds(), Statuses: f.Statuses}, limit-len(found), continuation)
		if err != nil {
			return nil, "", fmt.Errorf("list operations: %w", err)
		}
		for _, s := range some {
			kind, ok := kindOf(s.ID)
			if !ok || kind != s.Orchestrator {
				continue
			}
			op, err := o.read(ctx, kind, s)
			switch {
			case errors.Is(err, orchestrator.ErrNotFound): // it was purged meanwhile
				continue
			case err != nil && !errors.Is(err, orchestrator.ErrCorrupt) && !errors.Is(err, orchestrator.ErrNewerSchema):
				return nil, "", fmt.Errorf("list operations: %s: %w", s.ID, err)
			}
			if f.matches(op) {
				found = append(found, op)
			}
		}
		examined += len(some)
		if continuation = next; next == "" || len(found) >= limit || examined >= maxExamined {
			return found, next, nil
		}
	}
}

// matches says whether the filter selects an operation, as far as the lister has not seen to that.
func (f Filter) matches(op Operation) bool {
	return tenant.Sees(f.Tenant, op.Request.Tenant) && strings.Contains(strings.ToLower(op.Request.By), strings.ToLower(f.By))
}
