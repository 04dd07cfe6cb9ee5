package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Filter selects tasks; a zero field does not filter.
type Filter struct {
	// Status is one status, or "" for open tasks.
	Status   Status
	Assignee string
	Role     string
	// Orchestrator is the engine.
	Orchestrator string
	TenantID     string
	// DueBefore leaves out tasks that are due later or have no due time.
	DueBefore time.Time
}

// Page is one page of a list; Continuation continues it, and is "" on the last page.
type Page struct {
	Tasks        []Task
	Continuation string
}

// MaxPage bounds a page.
const MaxPage = 100

// maxRowsRead bounds the rows of the index that one call of List reads.
const maxRowsRead = 10_000

// List returns tasks: open ones by due time, ended ones newest first. The cost of a page of the tasks of an assignee,
// of a role, of an orchestrator or of a tenant depends on that page only. With several of these, List filters the
// rows of the first one, in this order. A page may be short when many rows do not match, and is empty only at the
// end.
func (s *Service) List(ctx context.Context, f Filter, limit int, continuation string) (Page, error) {
	if limit < 1 || limit > MaxPage {
		return Page{}, fmt.Errorf("%w: a page has 1 to %d tasks, not %d", ErrInvalid, MaxPage, limit)
	}
	q := f.query()
	q.Continuation = continuation
	var page Page
	for seen := 0; ; {
		q.Limit = limit - len(page.Tasks)
		found, err := s.config.Tables.Query(ctx, s.config.Index, q)
		if err != nil {
			return Page{}, fmt.Errorf("list of tasks: %w", err)
		}
		for _, e := range found.Entities {
			if t := taskOfIndexRow(e); f.matches(t) {
				page.Tasks = append(page.Tasks, t)
			}
		}
		seen += len(found.Entities)
		q.Continuation, page.Continuation = found.Next, found.Next
		if found.Next == "" || len(page.Tasks) == limit || seen >= maxRowsRead && len(page.Tasks) > 0 {
			return page, nil
		}
	}
}

// ended reports whether the filter selects ended tasks.
func (f Filter) ended() bool { return f.Status == Completed || f.Status == Canceled }

// query returns the smallest range of the index that holds all selected tasks.
func (f Filter) query() tables.Query {
	prefix := viewOpen
	switch {
	case f.ended():
		prefix = viewEnded
	case f.Assignee != "":
		prefix = viewPrefix(viewAssignee, f.Assignee)
	case f.Role != "":
		prefix = viewPrefix(viewRole, f.Role)
	case f.Orchestrator != "":
		prefix = viewPrefix(viewOrchestrator, f.Orchestrator)
	case f.TenantID != "":
		prefix = viewPrefix(viewTenant, f.TenantID)
	}
	q := tables.Query{Partition: indexPartition, From: prefix, To: tables.PrefixEnd(prefix), Where: map[string]any{}}
	if !f.ended() && !f.DueBefore.IsZero() {
		q.To = prefix + micros(f.DueBefore)
	}
	if f.Status != "" {
		q.Where["Status"] = string(f.Status)
	}
	if f.Orchestrator != "" {
		q.Where["Orchestrator"] = f.Orchestrator
	}
	return q
}

func (f Filter) matches(t Task) bool {
	has := func(role string) bool { return strings.EqualFold(role, f.Role) }
	switch {
	case f.Status == "" && t.End != nil, f.Status != "" && t.Status != f.Status:
		return false
	case f.Assignee != "" && !strings.EqualFold(f.Assignee, t.Assignee), f.Role != "" && !slices.ContainsFunc(t.Roles, has):
		return false
	case f.TenantID != "" && !strings.EqualFold(f.TenantID, t.TenantID), f.Orchestrator != "" && f.Orchestrator != t.Orchestrator:
		return false
	default:
		return f.DueBefore.IsZero() || !t.DueAt.IsZero() && t.DueAt.Before(f.DueBefore)
	}
}

// Retention deletes tasks that ended before a time, with their events, at most limit of them; more reports whether
// others are left. Open tasks are never deleted.
func (s *Service) Retention(ctx context.Context, before time.Time, limit int) (deleted int, more bool, err error) {
	from := viewEnded + fmt.Sprintf("%019d", maxMicros-before.UnixMicro())
	page, err := s.config.Tables.Query(ctx, s.config.Index, tables.Query{Partition: indexPartition, From: from, To: tables.PrefixEnd(viewEnded), Limit: limit})
	if err != nil {
		return 0, false, fmt.Errorf("retention of tasks: %w", err)
	}
	for _, e := range page.Entities {
		t := taskOfIndexRow(e)
		if err := s.delete(ctx, t.Ref); err != nil {
			return deleted, true, fmt.Errorf("retention of tasks: %w", err)
		}
		deleted++
	}
	return deleted, page.Next != "", nil
}

// delete deletes a task's rows and its index entries. The row of its end stays until the orchestration is purged,
// because the orchestration may not have read it.
func (s *Service) delete(ctx context.Context, r Ref) error {
	from := r.key("").Row
	q := tables.Query{Partition: r.key("").Partition, From: from, To: tables.PrefixEnd(from + "-"), Select: []string{"Kind"}}
	var ops []tables.Op
	for e, err := range tables.All(ctx, s.config.Tables, s.config.Table, q) {
		if err != nil {
			return err
		}
		if !EndsTask(e.Key) {
			ops = append(ops, tables.Delete(e.Key, ""))
		}
	}
	for slice := range slices.Chunk(ops, 100) {
		if err := s.config.Tables.Apply(ctx, s.config.Table, slice...); err != nil {
			return err
		}
	}
	return s.Forget(ctx, r)
}
