package sqlsource

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/poller"
)

// duplicateSample is the number of last rows that are checked for duplicate keys.
const duplicateSample = 10_000

// Check returns the errors of the source, and advice: a missing index, or keys without a unique index.
func (s *Source) Check(ctx context.Context) ([]string, error) {
	advice, err := s.check(ctx)
	return advice, s.fail("check", err)
}

func (s *Source) check(ctx context.Context) (advice []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	sh, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	c := sh.columns[sh.cursor]
	if s.config.Bound == BoundSettle {
		s.settled.looked = time.Time{}
		if _, err := s.look(ctx); err != nil {
			return nil, err
		}
		if s.dialect.sequence != nil && c.class == classInteger && s.config.Table != "" {
			if err := s.dialect.sequence(ctx, s, c); err != nil {
				return nil, err
			}
		}
	}
	s.nullsAt = time.Time{}
	empty, err := s.nullRows(ctx, sh)
	if err != nil {
		return nil, err
	}
	if empty.key { // such a row stops the poller when it is reached
		return nil, fmt.Errorf("%w: %s", ErrNull, empty.reason)
	}
	if empty.reason != "" {
		advice = append(advice, empty.reason)
	}
	for _, find := range []func(context.Context, *shape) (string, error){s.adviseUnique, s.adviseIndex, s.adviseMarker, s.adviseMore} {
		text, err := find(ctx, sh)
		if err != nil {
			return nil, err
		}
		if text != "" {
			advice = append(advice, text)
		}
	}
	return advice, nil
}

// nulls are rows without a position in the order.
type nulls struct {
	reason string // "" without one
	key    bool   // a key is NULL, and not only the cursor
}

// nullRows occasionally searches rows without a position in the order: a comparison with NULL is never true. A row
// without a cursor is read once it has one.
func (s *Source) nullRows(ctx context.Context, sh *shape) (nulls, error) {
	if !s.nullsAt.IsZero() && time.Since(s.nullsAt) < nullEvery {
		return s.nulls, nil
	}
	var filled map[string]bool
	if s.dialect.notNull != nil && s.config.Table != "" {
		var err error
		if filled, err = s.dialect.notNull(ctx, s); err != nil {
			return nulls{}, err
		}
	}
	filters, err := s.filters(sh)
	if err != nil {
		return nulls{}, err
	}
	var empty []string
	found := nulls{}
	for _, i := range slices.Compact(slices.Sorted(slices.Values(append([]int{sh.cursor}, sh.keys...)))) {
		c := sh.columns[i]
		if !c.nullable || filled[c.name] {
			continue
		}
		isNull := func(st *statement) { st.add(s.quoted(c), " IS NULL") }
		text, args, err := s.build(query{columns: []string{"1"}, where: slices.Concat(filters, []func(*statement){isNull}), limit: 1})
		if err != nil {
			return nulls{}, err
		}
		_, there, err := first(ctx, s.db, text, args...)
		if err != nil {
			return nulls{}, err
		}
		if there {
			empty, found.key = append(empty, c.name), found.key || i != sh.cursor
		}
	}
	if len(empty) > 0 {
		found.reason = fmt.Sprintf("there are rows without %s, which are not read: give them a value and make the column NOT NULL", strings.Join(empty, " and "))
	}
	s.nullsAt, s.nulls = time.Now(), found
	return found, nil
}

// adviseUnique refuses duplicate keys in a sample.
func (s *Source) adviseUnique(ctx context.Context, sh *shape) (string, error) {
	if s.config.Table != "" {
		unique, err := s.dialect.unique(ctx, s)
		if err != nil || unique {
			return "", err
		}
	}
	filters, err := s.filters(sh)
	if err != nil {
		return "", err
	}
	// Rows without a cursor are not read, and some databases would sort them last.
	ordered, err := s.behind(sh, poller.Cursor{})
	if err != nil {
		return "", err
	}
	var columns, keys []string
	for _, i := range sh.keys {
		columns = append(columns, s.quoted(sh.columns[i]))
		keys = append(keys, sh.columns[i].name)
	}
	inner := query{columns: columns, where: append(filters, ordered), order: s.order(sh, " DESC"), limit: duplicateSample}
	text, args, err := s.build(inner)
	if err != nil {
		return "", err
	}
	var quoted []string
	for _, k := range keys {
		quoted = append(quoted, s.dialect.quote(k))
	}
	list := strings.Join(quoted, ", ")
	_, found, err := first(ctx, s.db, "SELECT "+list+" FROM ("+text+") d GROUP BY "+list+" HAVING COUNT(*) > 1", args...)
	if err != nil {
		return "", err
	}
	if found {
		return "", fmt.Errorf("%w: among the last %d rows some have the same %s: keys must name a row", ErrNotUnique, duplicateSample, strings.Join(keys, ", "))
	}
	return fmt.Sprintf("no unique index keeps %s unique: two rows with the same key and cursor stop the poller", strings.Join(keys, ", ")), nil
}

// adviseIndex checks the plan of a fetch in the middle.
func (s *Source) adviseIndex(ctx context.Context, sh *shape) (string, error) {
	place, err := s.behind(sh, poller.Cursor{})
	if err != nil {
		return "", err
	}
	b, _, err := s.read(ctx, sh, query{columns: s.expressions(sh), where: []func(*statement){place}, limit: 1}, upper{}, 1, 0)
	if err != nil || len(b.Rows) == 0 {
		return "", err
	}
	if place, err = s.behind(sh, b.Rows[0].Cursor); err != nil {
		return "", err
	}
	text, args, err := s.build(query{columns: s.expressions(sh), where: []func(*statement){place}, order: s.order(sh, ""), limit: 100})
	if err != nil {
		return "", err
	}
	scans, err := s.dialect.scans(ctx, s, text, args)
	if err != nil || !scans {
		return "", err
	}
	var columns []string
	for _, i := range append([]int{sh.cursor}, sh.ties...) {
		columns = append(columns, s.dialect.quote(sh.columns[i].name))
	}
	if s.config.Table == "" {
		return fmt.Sprintf("each fetch reads or sorts the whole result of the query: the tables behind it need an index that gives the order %s", strings.Join(columns, ", ")), nil
	}
	return fmt.Sprintf("each fetch reads or sorts the whole table: CREATE INDEX ON %s (%s)", s.regclass(), strings.Join(columns, ", ")), nil
}

func (s *Source) adviseMore(ctx context.Context, sh *shape) (string, error) {
	if s.dialect.advise == nil {
		return "", nil
	}
	return s.dialect.advise(ctx, s, sh.columns[sh.cursor])
}

// adviseNumbers warns of numbers without a default of the database.
func adviseNumbers(handedOut func(ctx context.Context, s *Source, c column) (bool, error)) func(context.Context, *Source, column) (string, error) {
	return func(ctx context.Context, s *Source, c column) (string, error) {
		if s.config.Bound != BoundSettle || c.class != classInteger || s.config.Table == "" {
			return "", nil
		}
		out, err := handedOut(ctx, s, c)
		if err != nil || !out {
			return "", err
		}
		return fmt.Sprintf("the database does not give %s its numbers: nothing is lost only if each is taken in the transaction that writes it, one by one. Numbers of a block that an application has taken ahead (hi/lo) are passed over", c.name), nil
	}
}

// nameSet returns the first column of a statement's rows.
func nameSet(ctx context.Context, s *Source, statement string, args ...any) (map[string]bool, error) {
	set := map[string]bool{}
	_, err := anyRow(ctx, s, statement, args, func(row []string) bool { set[row[0]] = true; return false })
	return set, err
}

// uniqueAmong reads unique indexes as rows of index and column, and reports whether one has only key columns.
func uniqueAmong(ctx context.Context, s *Source, statement string, args ...any) (bool, error) {
	foreign := map[string]bool{}
	_, err := anyRow(ctx, s, statement, args, func(row []string) bool {
		isKey := slices.ContainsFunc(s.config.Keys, func(k string) bool { return strings.EqualFold(k, row[1]) })
		foreign[row[0]] = foreign[row[0]] || !isKey
		return false
	})
	for _, has := range foreign {
		if !has {
			return true, err
		}
	}
	return false, err
}

// anyRow reports whether one of a statement's rows is accepted.
func anyRow(ctx context.Context, s *Source, statement string, args []any, is func(row []string) bool) (found bool, err error) {
	err = eachRow(ctx, s.db, statement, args, func(row []string) error {
		found = found || is(row)
		return nil
	})
	return found, err
}

// eachRow passes a statement's rows as text, NULL as the empty one. A row must not be kept.
func eachRow(ctx context.Context, q querier, statement string, args []any, do func(row []string) error) error {
	rows, err := q.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	row, targets := make([]string, len(names)), make([]any, len(names))
	for i := range row {
		targets[i] = &text{&row[i]}
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// text scans any value as text, NULL as the empty one.
type text struct{ to *string }

// Scan takes a driver's value.
func (t *text) Scan(v any) error { *t.to = canonical(v, classOther); return nil }
