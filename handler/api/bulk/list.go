package bulk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/orchestrator"
)

// maxExamined bounds roughly the operations that one List reads: each costs a transaction, or two.
const maxExamined = 500

// Filter selects operations; a zero field does not filter.
type Filter struct {
	// Statuses are those of the orchestrations.
	Statuses []orchestrator.Status
	// By is a part of the decider's name, compared without case.
	By string
	// Tenant limits the list to a tenant's operations. "" is the platform, which sees all.
	Tenant string
}

// Lister lists orchestrations; that of a catalog returns the newest first.
type Lister func(ctx context.Context, f orchestrator.Filter, limit int, continuation string) ([]orchestrator.Summary, string, error)

// List returns operations in the order of the lister, up to limit, and a continuation for the following ones; "" at
// the end. A page may be short, and even empty, if By or Tenant select few of the operations that were read. An
// operation with unreadable rounds is listed without its request. The errors are those of the lister and of the
// runtime.
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

// matches reports whether the filter selects an operation, beyond the lister's own filters.
func (f Filter) matches(op Operation) bool {
	return tenant.Sees(f.Tenant, op.Request.Tenant) && strings.Contains(strings.ToLower(op.Request.By), strings.ToLower(f.By))
}
