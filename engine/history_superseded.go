package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// supersededColumn names the entry of the later success of a failed entry's run.
	supersededColumn = "SupersededBy"
	// supersededList is the list of such entries, next to the lists by status: its initial differs from those of the
	// statuses.
	supersededList = "Overcome"
	// maxSupersedeOps bounds the changed rows of an entry: its own, and three index rows that move.
	maxSupersedeOps = 7
)

// list returns the list of the entry: that of its status, or that of superseded failures.
func (e Entry) list() string {
	if e.SupersededBy != "" {
		return supersededList
	}
	return string(e.Status)
}

// supersededLists returns the lists that the filter selects in addition to those of its status.
func (f HistoryFilter) supersededLists() []string {
	if !f.Open && f.Status != StatusSucceeded {
		return []string{supersededList}
	}
	return nil
}

// hides reports whether the filter leaves out a row because it was superseded.
func (f HistoryFilter) hides(e tables.Entity) bool {
	return f.Open && e.String(supersededColumn) != ""
}

// successOf returns the row key of the entry with which a run succeeded, "" for none.
func successOf(entries []Entry) string {
	for _, e := range entries {
		if e.RunStatus == StatusSucceeded {
			return rowKey(e.CorrelationID, truncateMicros(e.CreatedAtUtc))
		}
	}
	return ""
}

// supersededBy marks failed new entries as superseded; "" marks none.
func supersededBy(by string, entries []Entry) []Entry {
	for i := range entries {
		if entries[i].Status == StatusFailed {
			entries[i].SupersededBy = by
		}
	}
	return entries
}

// recordSuccess is Record for the entries of a run that has succeeded with the entry of the row key by. It also marks
// recorded failures of the run as superseded by that entry. As many as fit share one transaction with the entries.
// Repeating it changes nothing, and it reads nothing if nothing has failed.
func (h *History) recordSuccess(ctx context.Context, by string, entries, recorded []Entry) error {
	marks, err := h.marks(ctx, by, recorded)
	if err != nil {
		return err
	}
	if len(marks) == 0 {
		return h.Record(ctx, entries...)
	}
	all, err := h.prepared(tables.Upsert, entries)
	if err != nil {
		return err
	}
	for _, mark := range marks {
		if last := len(all) - 1; last >= 0 && len(all[last])+len(mark) <= maxOps {
			all[last] = append(all[last], mark...)
			continue
		}
		all = append(all, mark)
	}
	for _, ops := range all {
		if err := h.applyMarked(ctx, ops); err != nil {
			return fmt.Errorf("record history, what it supersedes included: %w", err)
		}
	}
	return nil
}

// recordFailed is Record for entries of a run that has not succeeded, given its recorded entries. If an entry was
// written or changed concurrently, it changes nothing and returns tables.ErrExists, ErrPrecondition or ErrNotFound.
func (h *History) recordFailed(ctx context.Context, entries, recorded []Entry) error {
	return h.write(ctx, func(e tables.Entity) tables.Op {
		if strings.HasPrefix(e.Row, indexMark) {
			return tables.Upsert(e)
		}
		for _, k := range recorded {
			if k.RowKey == e.Row && k.ETag != "" {
				e.ETag = k.ETag
				return tables.Replace(e)
			}
		}
		return tables.Insert(e)
	}, entries)
}

// marks returns the operations that mark entries as superseded, grouped by entry.
func (h *History) marks(ctx context.Context, by string, recorded []Entry) (all [][]tables.Op, err error) {
	for _, f := range recorded {
		if f.Status != StatusFailed || f.SupersededBy != "" {
			continue
		}
		key := tables.Key{Partition: tables.EscapeKey(f.Engine), Row: rowKey(f.CorrelationID, f.CreatedAtUtc)}
		e, err := h.store.Get(ctx, h.table, key)
		if errors.Is(err, tables.ErrNotFound) {
			continue // its retention is over
		}
		if err != nil {
			return nil, fmt.Errorf("supersede history entry %s: %w", key, err)
		}
		all = append(all, markOps(e, by))
	}
	return all, nil
}

// markOps returns the operations that mark one entry, given its row, whose other columns stay as they are.
func markOps(e tables.Entity, by string) []tables.Op {
	before := entryOf(e)
	main := tables.Entity{Key: e.Key, ETag: e.ETag, Properties: maps.Clone(e.Properties)}
	main.Properties[supersededColumn] = by
	ops := make([]tables.Op, 0, maxSupersedeOps)
	ops = append(ops, tables.Replace(main))
	for _, row := range before.indexRows(main) {
		ops = append(ops, tables.Delete(row.Key, ""))
	}
	after := before
	after.SupersededBy = by
	for _, row := range after.indexRows(main) {
		ops = append(ops, tables.Upsert(row))
	}
	return ops
}

// applyMarked applies a transaction; an index row that is already deleted is skipped.
func (h *History) applyMarked(ctx context.Context, ops []tables.Op) error {
	for {
		err := h.store.Apply(ctx, h.table, ops...)
		rest, missing := withoutMissing(ops, err)
		if !missing {
			return err
		}
		ops = rest
	}
}
