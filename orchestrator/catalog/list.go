package catalog

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// maxPage bounds a page.
	maxPage = 1000
	// minRows is the minimum number of rows that a list reads in one query, however short its page is.
	minRows = 16
	// maxKey bounds a key, in bytes. maxEscapedID bounds escaped ids, which follow the prefix of their view.
	maxKey       = 512
	maxEscapedID = 510
	// parallel bounds how many status rows are read at the same time.
	parallel = 8
)

// placePattern matches places.
var placePattern = regexp.MustCompile(`^[0-9]{19}-[0-9a-f]{24}$`)

// found is a row of a view.
type found struct {
	place, id string
	row       tables.Entity
}

// List returns up to limit (1 to 1,000) orchestrations, newest first, or by their ids if the filter has a prefix. The
// continuation is for the next page, and is "" at the end. A page is empty only at the end. The errors are
// orchestrator.ErrContinuation and those of storage.
func (c *Catalog) List(ctx context.Context, f orchestrator.Filter, limit int, continuation string) ([]orchestrator.Summary, string, error) {
	if limit < 1 || limit > maxPage {
		return nil, "", fmt.Errorf("list of orchestrations: a page has 1 to %d, not %d", maxPage, limit)
	}
	if len(tables.EscapeKey(f.Prefix)) > maxEscapedID || !utf8.ValidString(f.Prefix) {
		return nil, "", nil // no id has this prefix
	}
	v := viewOf(f)
	if continuation != "" && !v.has(continuation) {
		return nil, "", fmt.Errorf("list of orchestrations: %w", orchestrator.ErrContinuation)
	}
	var shown []orchestrator.Summary
	var stale []tables.Op
	for after := continuation; ; {
		rows, more, err := c.readView(ctx, v, after, max(limit-len(shown), minRows))
		if err != nil {
			return nil, "", fmt.Errorf("list of orchestrations: %w", err)
		}
		summaries, err := c.read(ctx, rows)
		if err != nil {
			return nil, "", fmt.Errorf("list of orchestrations: %w", err)
		}
		for i, s := range summaries {
			if isStale(rows[i], s) {
				stale = append(stale, tables.Delete(rows[i].row.Key, rows[i].row.ETag)) // the ETag keeps a row that was written again meanwhile
			}
			// A just changed orchestration is in two views, at one place.
			if rows[i].place != after && s.ID != "" && f.Matches(s) {
				shown = append(shown, s)
			}
			after = rows[i].place
			if len(shown) == limit && (more || i < len(summaries)-1) {
				c.removeStale(ctx, stale)
				return shown, after, nil
			}
		}
		if !more {
			c.removeStale(ctx, stale)
			return shown, "", nil
		}
	}
}

// removeStale deletes stale rows of the index. A failure does not fail the list.
func (c *Catalog) removeStale(ctx context.Context, stale []tables.Op) {
	if len(stale) > 0 {
		if err := c.remove(ctx, stale[:min(len(stale), maxOps)]); err != nil {
			c.config.Log.WarnContext(ctx, "the list of orchestrations could not be tidied", "error", err.Error())
		}
	}
}

// view is the part of the index that a list reads: some ranges of rows, whose keys end with the same places.
type view struct {
	prefixes []string
	from, to string // bound the places; "" means unbounded
	ids      bool   // the places are ids
	prefix   string // prefix of the escaped ids
	scope    string // the scope of the rows in the view by id; "" does not filter
}

func viewOf(f orchestrator.Filter) view {
	if f.Prefix != "" {
		prefix := tables.EscapeKey(f.Prefix)
		return view{prefixes: []string{viewID}, ids: true, scope: scopeOf(f.TenantID), prefix: prefix, from: prefix, to: tables.PrefixEnd(prefix)}
	}
	v := view{prefixes: []string{viewAll}}
	switch {
	case f.Tag != "":
		v.prefixes = []string{tagView(f.Tag)}
	case len(f.Statuses) > 0:
		v.prefixes = statusViews(f)
	case len(namesOf(f)) > 0:
		v.prefixes = nil
		for _, name := range namesOf(f) {
			v.prefixes = append(v.prefixes, orchestratorView(name))
		}
	}
	for i := range v.prefixes {
		v.prefixes[i] = scopeOf(f.TenantID) + v.prefixes[i]
	}
	if f.CorrelationID != "" {
		v.prefixes = []string{correlationView(f.CorrelationID)}
	}
	// Later times come first. The digest behind the time is above "" and below "~".
	if !f.CreatedTo.IsZero() {
		v.from = newest(f.CreatedTo.Add(time.Microsecond-1)) + "~"
	}
	if !f.CreatedFrom.IsZero() {
		v.to = newest(f.CreatedFrom) + "~"
	}
	return v
}

// namesOf returns the orchestrators that a filter selects, each once; none for all.
func namesOf(f orchestrator.Filter) []string {
	if f.Orchestrator != "" {
		return []string{f.Orchestrator}
	}
	return slices.Compact(slices.Sorted(slices.Values(f.Orchestrators)))
}

// statusViews returns the views of the statuses of a filter, for each of its orchestrators if it names some.
func statusViews(f orchestrator.Filter) (prefixes []string) {
	names := namesOf(f)
	for _, s := range slices.Compact(slices.Sorted(slices.Values(f.Statuses))) {
		if len(names) == 0 {
			prefixes = append(prefixes, statusView(s))
		}
		for _, name := range names {
			prefixes = append(prefixes, bothView(name, s))
		}
	}
	return prefixes
}

// has reports whether a continuation can belong to this view.
func (v view) has(continuation string) bool {
	if !v.ids {
		return placePattern.MatchString(continuation)
	}
	id, err := tables.UnescapeKey(continuation)
	return err == nil && len(continuation) <= maxEscapedID && tables.EscapeKey(id) == continuation && strings.HasPrefix(continuation, v.prefix)
}

// isStale reports whether the row does not belong to the orchestration in its current state.
func isStale(r found, s orchestrator.Summary) bool {
	return s.ID == "" || !slices.Contains(entryFor(s).all(), r.row.Row)
}

// entryFor returns the indexed fields of an orchestration.
func entryFor(s orchestrator.Summary) entry {
	return entry{s.ID, s.Orchestrator, s.Tag, s.TenantID, s.CorrelationID, s.Status, s.CreatedAt}
}

// readView reads up to limit rows behind a place, in the order of the places. more reports whether others follow.
func (c *Catalog) readView(ctx context.Context, v view, after string, limit int) (rows []found, more bool, err error) {
	from := v.from
	if after != "" {
		from = after + " " // the first possible successor: keys have no control characters
	}
	for _, prefix := range v.prefixes {
		q := tables.Query{Partition: listPartition, From: prefix + from, To: tables.PrefixEnd(prefix), Limit: limit}
		if len(q.From) > maxKey {
			q.From = prefix + after // List leaves out the row itself
		}
		if v.scope != "" {
			q.Where = map[string]any{columnScope: v.scope}
		}
		if v.to != "" {
			q.To = prefix + v.to
		}
		if tables.CompareKeys(q.From, q.To) >= 0 {
			continue
		}
		part, rest, err := c.queryRows(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for _, row := range part {
			rows = append(rows, found{strings.TrimPrefix(row.Row, prefix), row.String(columnID), row})
		}
		more = more || rest
	}
	slices.SortStableFunc(rows, func(a, b found) int { return tables.CompareKeys(a.place, b.place) })
	if len(rows) > limit {
		rows, more = rows[:limit], true
	}
	return rows, more, nil
}

// queryRows reads q.Limit rows, or all there are.
func (c *Catalog) queryRows(ctx context.Context, q tables.Query) (rows []tables.Entity, more bool, err error) {
	limit := q.Limit
	for {
		q.Limit = limit - len(rows)
		page, err := c.config.Tables.Query(ctx, c.config.Table, q)
		if err != nil {
			return nil, false, err
		}
		rows = append(rows, page.Entities...)
		if q.Continuation = page.Next; page.Next == "" || len(rows) >= limit {
			return rows, page.Next != "", nil
		}
	}
}

// read reads the status rows. The Summary of a purged orchestration is zero.
func (c *Catalog) read(ctx context.Context, rows []found) ([]orchestrator.Summary, error) {
	summaries := make([]orchestrator.Summary, len(rows))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, row := range rows {
		group.Go(func() error {
			s, err := c.config.Runtime().Status(ctx, row.id)
			if errors.Is(err, orchestrator.ErrNotFound) {
				return nil
			}
			summaries[i] = s
			return err
		})
	}
	return summaries, group.Wait()
}
