package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// DefaultLimit is the length of a page when a filter has no limit (standard, sections 3 and 5).
	DefaultLimit = 50
	// MaxLimit is the longest page (standard, sections 3 and 5).
	MaxLimit = 100
)

// listQuery is the common form of the filters of both tables.
type listQuery struct {
	engines []string
	// status is one of statuses, or "" for all of them.
	status   string
	statuses []string
	// more are additional lists of index rows, and hidden reports whether a row of a list by correlation id is left
	// out; nil hides none.
	more   []string
	hidden func(e tables.Entity) bool
	// also identifies hidden in tokens.
	also string
	// tenant limits the rows; "" is the platform, which sees all.
	tenant string
	// equal holds the required values by column; "" does not filter.
	equal    map[string]string
	from, to time.Time
	limit    int
	token    string
	// complete returns those engines for which the index by instance has all rows.
	complete func(ctx context.Context, engines []string) (map[string]bool, error)
}

// read returns one page of a table, newest row first, and the token of the next page, "" on the last page. When the
// query names a correlation id, byCorrelation makes the stream of an engine's rows. When it names an instance, an
// engine whose index by instance is complete has one stream of index rows. Otherwise there is one stream for every
// status. The errors are ErrFilter, ErrToken and those of the store.
func (q listQuery) read(ctx context.Context, store tables.Store, table string, byCorrelation func(l listing, engine string) *rowStream) (rows []listedRow, token string, err error) {
	q, err = q.normalised()
	if err != nil {
		return nil, "", err
	}
	mark := q.fingerprint(table)
	after, err := decodeToken(q.token, mark, q.engines)
	if err != nil {
		return nil, "", err
	}
	l, err := q.listing(ctx, store, table)
	if err != nil {
		return nil, "", err
	}
	l.after = after
	// One row more than a page shows whether another page follows, so that a token never leads to an empty one.
	rows, err = merge(ctx, q.streams(l, byCorrelation), q.limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(rows) > q.limit {
		rows = rows[:q.limit]
		token = encodeToken(mark, rows[q.limit-1].at)
	}
	return rows, token, nil
}

// fingerprint identifies the query in its tokens.
func (q listQuery) fingerprint(table string) string {
	parts := []any{table, q.engines, q.status, q.equal, q.from, q.to}
	if q.tenant != "" {
		parts = append(parts, tenant.Fold(q.tenant))
	}
	if q.status != "" && len(q.more) > 0 {
		parts = append(parts, q.more)
	}
	if q.also != "" {
		parts = append(parts, q.also)
	}
	return fingerprint(parts...)
}

// listing returns the query in the form that streams need.
func (q listQuery) listing(ctx context.Context, store tables.Store, table string) (l listing, err error) {
	l = listing{store: store, table: table, from: q.from, to: q.to, where: map[string]any{}, tenant: cleanText(q.tenant), hidden: q.hidden, limit: q.limit}
	for column, value := range q.equal {
		if value != "" {
			l.where[column] = cleanText(value)
		}
	}
	if q.equal["InstanceId"] != "" && q.equal["CorrelationId"] == "" {
		l.indexed, err = q.complete(ctx, q.engines)
	}
	return l, err
}

func (q listQuery) streams(l listing, byCorrelation func(l listing, engine string) *rowStream) []*rowStream {
	var lanes []*rowStream
	for _, engine := range q.engines {
		if q.equal["CorrelationId"] != "" {
			lanes = append(lanes, byCorrelation(l.withStatus(q.status), engine))
			continue
		}
		if l.indexed[engine] {
			lanes = append(lanes, q.instanceStreams(l, engine)...)
			continue
		}
		for _, list := range q.lists() {
			lanes = append(lanes, l.indexStream(engine, listPrefix(list, l.tenant)))
		}
	}
	return lanes
}

// lists returns the lists of index rows that the query selects.
func (q listQuery) lists() []string {
	if q.status != "" {
		return append([]string{q.status}, q.more...)
	}
	return append(slices.Clone(q.statuses), q.more...)
}

// normalised validates the query and brings it into the canonical form on which tokens and streams depend.
func (q listQuery) normalised() (listQuery, error) {
	q.engines = slices.Compact(slices.Sorted(slices.Values(q.engines)))
	q.from, q.to = q.from.UTC(), q.to.UTC()
	q.limit = cmp.Or(q.limit, DefaultLimit)
	if len(q.engines) == 0 {
		return q, fmt.Errorf("%w: name at least one engine", ErrFilter)
	}
	for _, engine := range q.engines {
		if err := checkID("engine", engine); err != nil {
			return q, fmt.Errorf("%w: %w", ErrFilter, err)
		}
	}
	if q.status != "" && !slices.Contains(q.statuses, q.status) {
		return q, fmt.Errorf("%w: status %q: use one of %v", ErrFilter, clip(q.status, 32), q.statuses)
	}
	for _, t := range []time.Time{q.from, q.to} {
		if t.IsZero() {
			continue
		}
		if err := checkTime("bound", t); err != nil {
			return q, fmt.Errorf("%w: %w", ErrFilter, err)
		}
	}
	if q.limit < 1 || q.limit > MaxLimit {
		return q, fmt.Errorf("%w: limit %d: use 1 to %d", ErrFilter, q.limit, MaxLimit)
	}
	for column, value := range q.equal {
		if len(value) > MaxInstanceIDLength || !utf8.ValidString(value) {
			return q, fmt.Errorf("%w: %s: use at most %d bytes of UTF-8", ErrFilter, column, MaxInstanceIDLength)
		}
	}
	if len(q.tenant) > MaxInstanceIDLength || !utf8.ValidString(q.tenant) {
		return q, fmt.Errorf("%w: %s: use at most %d bytes of UTF-8", ErrFilter, tenantColumn, MaxInstanceIDLength)
	}
	return q, nil
}

// listing is the data that the streams of one page share.
type listing struct {
	store    tables.Store
	table    string
	from, to time.Time
	where    map[string]any
	tenant   string
	hidden   func(e tables.Entity) bool
	limit    int
	after    *position
	// indexed are the engines whose index by instance is read; nil for none.
	indexed map[string]bool
}

// withStatus returns the listing of rows with the status, "" for any.
func (l listing) withStatus(status string) listing {
	if status != "" {
		l.where = maps.Clone(l.where)
		l.where["Status"] = status
	}
	return l
}

// sees reports whether the row is visible to the tenant and not hidden.
func (l listing) sees(e tables.Entity) bool {
	return tenant.Sees(l.tenant, e.String(tenantColumn)) && (l.hidden == nil || !l.hidden(e))
}

// bounds returns the key range of the index rows with one prefix.
func (l listing) bounds(engine, prefix string) (from, to string) {
	from, to = indexRange(prefix, l.from, l.to)
	if l.after != nil {
		from = max(from, prefix+l.after.bound(engine))
	}
	return from, to
}

// indexStream reads the index rows with one prefix.
func (l listing) indexStream(engine, prefix string) *rowStream {
	from, to := l.bounds(engine, prefix)
	q := tables.Query{
		Partition: tables.EscapeKey(engine),
		From:      from,
		To:        to,
		Where:     l.where,
		Limit:     l.limit + 1,
	}
	return &rowStream{
		done: from >= to,
		fetch: func(ctx context.Context) (listed []listedRow, more bool, err error) {
			page, err := l.store.Query(ctx, l.table, q)
			if err != nil {
				return nil, false, err
			}
			for _, e := range page.Entities {
				if l.sees(e) {
					listed = append(listed, listedRow{position{e.Row[len(prefix):], engine}, e})
				}
			}
			q.Continuation = page.Next
			return listed, page.Next != "", nil
		},
	}
}

// runStream reads all main rows of one correlation id at once: they ascend in time, and a run has few.
func (l listing) runStream(engine, correlationID string) *rowStream {
	q := runQuery(engine, correlationID)
	prefix := q.From
	if !l.from.IsZero() {
		q.From = prefix + ceil(l.from).Format(timestampLayout)
	}
	if !l.to.IsZero() {
		q.To = prefix + ceil(l.to).Format(timestampLayout)
	}
	q.Select = historyListColumns()
	q.Where = l.where // these include the correlation id
	return &rowStream{
		done: q.From >= q.To,
		fetch: func(ctx context.Context) (listed []listedRow, more bool, err error) {
			for e, err := range tables.All(ctx, l.store, l.table, q) {
				if err != nil {
					return nil, false, err
				}
				at := position{place(e.Time("CreatedAtUtc"), e.Row), engine}
				if l.sees(e) && (l.after == nil || at.compare(*l.after) > 0) {
					listed = append(listed, listedRow{at, e})
				}
			}
			slices.SortFunc(listed, func(a, b listedRow) int { return cmp.Compare(a.at.place, b.at.place) })
			return listed, false, nil
		},
	}
}
