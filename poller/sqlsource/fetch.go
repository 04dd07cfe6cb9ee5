package sqlsource

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/poller"
)

// endPoll is the polling interval of an End that waits for its bound.
const endPoll = 200 * time.Millisecond

// Fetch returns at most limit rows after a position, and at most maxBytes of Data except for the first row. Rows are
// held back while another row could still appear before them.
func (s *Source) Fetch(ctx context.Context, after poller.Cursor, limit, maxBytes int) (poller.Batch, error) {
	b, err := s.fetch(ctx, after, limit, maxBytes)
	if err != nil {
		return poller.Batch{}, s.fail("fetch", err)
	}
	return b, nil
}

func (s *Source) fetch(ctx context.Context, after poller.Cursor, limit, maxBytes int) (poller.Batch, error) {
	if limit < 1 {
		return poller.Batch{}, fmt.Errorf("a limit of %d: want 1 or more", limit)
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	r, err := s.prepare(ctx, after)
	if err != nil {
		return poller.Batch{}, err
	}
	var b poller.Batch
	if !r.up.nothing {
		var tied bool
		if b, tied, err = s.read(ctx, r.sh, s.next(r, limit), r.up, limit, maxBytes); err != nil {
			return poller.Batch{}, err
		}
		if tied {
			if err := s.alone(ctx, r.sh, r.filters, b.Rows[len(b.Rows)-1].Cursor); err != nil {
				return poller.Batch{}, err
			}
		}
	}
	last := r.after
	if len(b.Rows) > 0 {
		last = b.Rows[len(b.Rows)-1].Cursor
		s.given = last
	}
	if b.More {
		return b, nil
	}
	if len(b.Rows) == 0 {
		if err := s.present(ctx, r.sh, r.after); err != nil {
			return poller.Batch{}, err
		}
	}
	b.HeldBack, err = s.caughtUp(ctx, r.sh, r.filters, last, r.up)
	return b, err
}

// reading describes the rows of a fetch after a position.
type reading struct {
	sh *shape
	// after is the position in the column's form, place the condition for rows after it.
	after   poller.Cursor
	place   func(*statement)
	filters []func(*statement)
	up      upper
}

// prepare determines the rows of a fetch after a position.
func (s *Source) prepare(ctx context.Context, after poller.Cursor) (r reading, err error) {
	if r.sh, err = s.describe(ctx); err != nil {
		return r, err
	}
	r.after = s.inColumn(after, r.sh.columns[r.sh.cursor])
	if r.place, err = s.behind(r.sh, r.after); err != nil {
		return r, err
	}
	if err := s.confirm(ctx, r.sh, r.after); err != nil {
		return r, err
	}
	if r.filters, err = s.filters(r.sh); err != nil {
		return r, err
	}
	r.up, err = s.upper(ctx, r.sh)
	return r, err
}

// next returns the query of a fetch, without the bound. One extra row shows whether more follow.
func (s *Source) next(r reading, limit int) query {
	return query{columns: s.expressions(r.sh), where: slices.Concat(r.filters, []func(*statement){r.place}), order: s.order(r.sh, ""), limit: limit + 1}
}

// caughtUp, after all allowed rows are returned, examines the held back ones.
func (s *Source) caughtUp(ctx context.Context, sh *shape, filters []func(*statement), last poller.Cursor, up upper) (string, error) {
	if err := s.wentBack(ctx, sh, last); err != nil {
		return "", err
	}
	empty, err := s.nullRows(ctx, sh)
	if err != nil || empty.reason != "" {
		return empty.reason, err
	}
	if up.all() {
		return "", nil
	}
	place, err := s.behind(sh, last)
	if err != nil {
		return "", err
	}
	where := slices.Concat(filters, []func(*statement){place})
	text, args, err := s.build(query{columns: []string{"1"}, where: where, limit: 1})
	if err != nil {
		return "", err
	}
	_, found, err := first(ctx, s.db, text, args...)
	if err != nil || !found {
		return "", err
	}
	return up.reason, nil
}

// wentBack compares a position with the highest possible current value of the cursor.
func (s *Source) wentBack(ctx context.Context, sh *shape, last poller.Cursor) error {
	if s.dialect.frontier == nil || last.Value == "" {
		return nil
	}
	c := sh.columns[sh.cursor]
	highest, err := s.dialect.frontier(ctx, s, c)
	if err != nil || highest == "" || !less(highest, last.Value, c.class) {
		return err
	}
	return fmt.Errorf("%w: the place is at %s, but %s cannot be beyond %s: the database was restored, or its clock or sequence was set back; run `roundhouse poller reset-to-beginning POLLER`, "+
		"or reset-to-cursor with a place that is there",
		ErrWentBack, last.Value, c.name, highest)
}

// alone refuses a position of two rows: a batch that ends between them would skip the second one. Their keys are
// different texts, but the database treats them as equal, for example ignoring case.
func (s *Source) alone(ctx context.Context, sh *shape, filters []func(*statement), at poller.Cursor) error {
	columns, texts, err := placeOf(sh, at)
	if err != nil {
		return err
	}
	here := func(st *statement) {
		for i, c := range columns {
			if i > 0 {
				st.add(" AND ")
			}
			st.add(s.quoted(c), " = ")
			st.compared(texts[i], c)
		}
	}
	text, args, err := s.build(query{columns: []string{"COUNT(*)"}, where: slices.Concat(filters, []func(*statement){here})})
	if err != nil {
		return err
	}
	v, _, err := first(ctx, s.db, text, args...)
	if err != nil || v[0].String == "0" || v[0].String == "1" {
		return err
	}
	return fmt.Errorf("%w: the database takes the keys of %s rows for the same at %s: keys must name a row, and a unique index of the column's own collation sees to it",
		ErrNotUnique, v[0].String, at)
}

// read runs a query and reads its rows up to a limit. tied means that the next row has the cursor of the last one.
func (s *Source) read(ctx context.Context, sh *shape, q query, up upper, limit, maxBytes int) (b poller.Batch, tied bool, err error) {
	text, args, err := s.build(q, up.where...)
	if err != nil {
		return poller.Batch{}, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return poller.Batch{}, false, err
	}
	// Close would read all remaining rows without the cancellation before it.
	defer func() { cancel(); rows.Close() }()
	r := newReader(s, sh, rows)
	size := 0
	for rows.Next() {
		row, err := r.row(len(b.Rows) == limit)
		if err != nil {
			return poller.Batch{}, false, err
		}
		size += len(row.Data)
		if len(b.Rows) == limit || len(b.Rows) > 0 && size > maxBytes {
			b.More, tied = true, same(row.Cursor.Value, b.Rows[len(b.Rows)-1].Cursor.Value, sh.columns[sh.cursor].class)
			if len(b.Rows) < limit {
				return b, tied, nil
			}
			break
		}
		b.Rows = append(b.Rows, row)
	}
	if err := rows.Err(); err != nil {
		return poller.Batch{}, false, err
	}
	return b, tied, rows.Close()
}

// reader makes rows of a driver's values.
type reader struct {
	s       *Source
	sh      *shape
	rows    *sql.Rows
	values  []any
	targets []any
	before  poller.Cursor
	size    int
	now     time.Time
}

func newReader(s *Source, sh *shape, rows *sql.Rows) *reader {
	r := &reader{s: s, sh: sh, rows: rows, now: time.Now(), values: make([]any, len(sh.columns)), targets: make([]any, len(sh.columns))}
	for i := range r.values {
		r.targets[i] = &r.values[i]
	}
	return r
}

// row reads the current row, with its data unless peek is set.
func (r *reader) row(peek bool) (poller.Row, error) {
	if err := r.rows.Scan(r.targets...); err != nil {
		return poller.Row{}, err
	}
	key := make([]byte, 0, 32)
	for _, i := range r.sh.keys {
		if r.values[i] == nil {
			return poller.Row{}, fmt.Errorf("%w: the key %s of a row with %s = %v; give it a value", ErrNull, r.sh.columns[i].name,
				r.s.config.Cursor, r.values[r.sh.cursor])
		}
		if text := canonical(r.values[i], r.sh.columns[i].class); !utf8.ValidString(text) {
			return poller.Row{}, fmt.Errorf("%w: the key %s of a row with %s = %v is %q, which is not UTF-8: no state can hold it; mend the row", ErrColumnType,
				r.sh.columns[i].name, r.s.config.Cursor, r.values[r.sh.cursor], text)
		}
		key = r.field(key, i)
	}
	key = append(key, '}')
	c := r.sh.columns[r.sh.cursor]
	row := poller.Row{Key: key, Cursor: poller.Cursor{Kind: r.sh.kind, Value: canonical(r.values[r.sh.cursor], c.class)}}
	if err := fits(row.Cursor.Value, c); err != nil {
		return poller.Row{}, fmt.Errorf("the row %s: %w", key, err)
	}
	if _, ok := row.Cursor.Time(); !ok && r.s.config.Dialect == SQLite && c.class == classText {
		return poller.Row{}, fmt.Errorf("%w: the row %s has %s = %q, which is no time, such as 2026-04-07T01:23:45.123Z: mend the row, or declare the column INTEGER if it has numbers",
			ErrColumnType, key, c.name, row.Cursor.Value)
	}
	if len(r.sh.ties) > 0 {
		row.Cursor.Tiebreaker = key
	}
	if r.before.Value == row.Cursor.Value && bytes.Equal(r.before.Tiebreaker, row.Cursor.Tiebreaker) {
		return poller.Row{}, fmt.Errorf("%w: there are two rows %s with %s = %s: keys must name a row, and a unique index sees to it",
			ErrNotUnique, key, c.name, row.Cursor.Value)
	}
	r.before = row.Cursor
	if peek {
		return row, nil
	}
	data := make([]byte, 0, r.size+16)
	for i := range r.sh.columns {
		data = r.field(data, i)
	}
	row.Data = append(data, '}')
	r.size = len(row.Data)
	row.Deleted = r.sh.deleted >= 0 && marked(r.values[r.sh.deleted], r.sh.columns[r.sh.deleted], r.now)
	return row, nil
}

func (r *reader) field(to []byte, i int) []byte {
	if len(to) == 0 {
		to = append(to, '{')
	} else {
		to = append(to, ',')
	}
	return appendJSON(append(to, r.sh.names[i]...), r.values[i], r.sh.columns[i].class)
}

// End returns the position of the last row that Fetch would return now; the zero position without one. Where the bound
// has to be observed first, it waits for that.
func (s *Source) End(ctx context.Context) (poller.Cursor, error) {
	ticker := time.NewTicker(endPoll)
	defer ticker.Stop()
	for {
		end, reason, err := s.end(ctx)
		if err != nil || reason == "" {
			return end, s.fail("find the end of", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return poller.Cursor{}, s.fail("find the end of", fmt.Errorf("%s: %w", reason, ctx.Err()))
		}
	}
}

func (s *Source) end(ctx context.Context) (end poller.Cursor, reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	sh, err := s.describe(ctx)
	if err != nil {
		return poller.Cursor{}, "", err
	}
	filters, err := s.filters(sh)
	if err != nil {
		return poller.Cursor{}, "", err
	}
	up, err := s.upper(ctx, sh)
	if err != nil || up.empty {
		return poller.Cursor{}, "", err
	}
	if up.nothing {
		return poller.Cursor{}, up.reason, nil
	}
	place, err := s.behind(sh, poller.Cursor{})
	if err != nil {
		return poller.Cursor{}, "", err
	}
	q := query{columns: s.expressions(sh), where: slices.Concat(filters, []func(*statement){place}), order: s.order(sh, " DESC"), limit: 1}
	b, _, err := s.read(ctx, sh, q, up, 1, 0)
	if err != nil || len(b.Rows) == 0 {
		return poller.Cursor{}, "", err
	}
	return b.Rows[0].Cursor, "", nil
}
