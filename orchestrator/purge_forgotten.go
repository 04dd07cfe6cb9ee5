package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/vibedata/roundhouse/tables"
)

// purgeForgottenChild purges a sub-orchestration that has ended and that no caller can call again, and returns how
// many it purged: 1 or 0. The others are purged with their callers. A damaged one is left, without blocking the
// others.
func (r *Runtime) purgeForgottenChild(ctx context.Context, s Summary) (int, error) {
	if !s.Ended() {
		return 0, nil
	}
	forgotten, err := r.forgottenByCaller(ctx, s)
	if err != nil || !forgotten {
		return 0, err
	}
	switch err := r.purge(ctx, s.ID, purgeScope{top: s.Parent, seen: map[string]bool{s.Parent: true}}); { // the caller is not notified
	case err == nil:
		return 1, nil
	case errors.Is(err, ErrCorrupt):
		r.config.Log.WarnContext(ctx, "a sub-orchestration that nobody needs stays: it is damaged", "orchestrationId", s.ID, "error", err.Error())
		return 0, nil
	case errors.Is(err, ErrActive), errors.Is(err, ErrNotFound):
		return 0, nil
	default:
		return 0, err
	}
}

// forgottenByCaller reports whether the caller is gone, or the rounds of the caller's execution from which the id was
// derived. A sub-orchestration with an id of its own (WithID) remains as long as its caller, because any execution may
// call it again.
func (r *Runtime) forgottenByCaller(ctx context.Context, s Summary) (bool, error) {
	q := tables.Query{Partition: tables.EscapeKey(s.Parent), Limit: 1, Select: []string{columnEncoding}}
	if execution, ok := callerOf(s); ok {
		q.From = fmt.Sprintf("%s%08d-", roundPrefix, execution)
		q.To = tables.PrefixEnd(q.From)
	}
	for _, err := range tables.All(ctx, r.config.Tables, r.config.Table, q) {
		if err != nil {
			return false, fmt.Errorf("caller of orchestration %s: %w", s.ID, err)
		}
		return false, nil
	}
	return true, nil
}

// callerOf returns the caller's execution from which the id of a sub-orchestration was derived; ok is false for an id
// of its own.
func callerOf(s Summary) (int, bool) {
	name, ok := strings.CutPrefix(s.ID, s.Parent+":")
	number, rest, named := strings.Cut(name, "-"+s.Orchestrator+"-")
	execution, err := strconv.Atoi(number)
	return execution, ok && named && rest != "" && err == nil && execution > 0
}
