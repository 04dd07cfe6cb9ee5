package sqlsource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/durations"
	"github.com/vibedata/roundhouse/poller"
)

// Verdict is the state of a row, in one word.
type Verdict string

// The verdicts.
const (
	// RowAbsent: the row does not exist, or the query does not return it.
	RowAbsent Verdict = "absent"
	// RowFiltered: the row does not meet a condition.
	RowFiltered Verdict = "filtered"
	// RowWithoutCursor: its cursor is NULL.
	RowWithoutCursor Verdict = "no-cursor"
	// RowDelivered: the position is this very version of the row.
	RowDelivered Verdict = "delivered"
	// RowPassed: it is before the position.
	RowPassed Verdict = "passed"
	// RowHeldBack: it is after the position, and another row could still appear before it.
	RowHeldBack Verdict = "held-back"
	// RowDue: a fetch would return it, after the rows before it.
	RowDue Verdict = "due"
)

// Explanation is the reason why a row was or was not delivered.
type Explanation struct {
	Verdict Verdict
	// Why is a sentence for operators.
	Why string
	// Row has the key and the position of the row, without its data; it is empty without a row or a position.
	Row poller.Row
}

// Explain returns the state of the row of a key, relative to a position. The key is a JSON object of the key columns.
// It reads only that row, and waits for about the settle window where the bound has to be observed first.
func (s *Source) Explain(ctx context.Context, key json.RawMessage, after poller.Cursor) (Explanation, error) {
	e, err := s.explain(ctx, key, after)
	return e, s.fail("explain a row of", err)
}

func (s *Source) explain(ctx context.Context, key json.RawMessage, after poller.Cursor) (e Explanation, err error) {
	sh, err := s.describe(ctx)
	if err != nil {
		return e, err
	}
	is, err := s.hasKey(sh, key)
	if err != nil {
		return e, err
	}
	e, err = s.readable(ctx, sh, is)
	if err != nil || e.Verdict != "" {
		return e, err
	}
	row, _, err := s.read(ctx, sh, query{columns: s.expressions(sh), where: []func(*statement){is}, limit: 1}, upper{}, 1, 0)
	if err != nil || len(row.Rows) == 0 {
		return Explanation{Verdict: RowAbsent, Why: "it was deleted just now"}, err
	}
	e.Row = poller.Row{Key: row.Rows[0].Key, Cursor: row.Rows[0].Cursor}
	after = s.inColumn(after, sh.columns[sh.cursor])
	place, err := s.behind(sh, after)
	if err != nil {
		return e, err
	}
	if behind, err := s.any(ctx, is, place); err != nil || !behind {
		e.Verdict, e.Why = s.passed(e.Row.Cursor, after, sh.columns[sh.cursor].class)
		return e, err
	}
	up, err := s.watched(ctx, sh)
	if err != nil {
		return e, err
	}
	due := false
	if !up.nothing {
		if due, err = s.any(ctx, append([]func(*statement){is}, up.where...)...); err != nil {
			return e, err
		}
	}
	if due {
		e.Verdict, e.Why = RowDue, "it lies behind the place, and nothing holds it back: it comes after the rows in front of it"
		return e, nil
	}
	e.Verdict, e.Why = RowHeldBack, "it lies behind the place, and another row could still come in front of it: "+up.reason
	if s.config.Bound == BoundXID && s.dialect.holder != nil {
		holder, err := s.dialect.holder(ctx, s)
		if err != nil {
			return e, err
		}
		e.Why += ": " + holder
	}
	return e, nil
}

// hasKey returns the condition for the row of a key.
func (s *Source) hasKey(sh *shape, key json.RawMessage) (func(*statement), error) {
	columns := make([]column, len(sh.keys))
	for n, i := range sh.keys {
		columns[n] = sh.columns[i]
	}
	texts, err := keyTexts(key, columns)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrColumnType, errors.New(strings.ReplaceAll(err.Error(), "the place's tiebreaker", "the key")))
	}
	for n, c := range columns {
		if fits(texts[n], c) != nil {
			return nil, fmt.Errorf("%w: the key's %s %.64q is not one of %s", ErrColumnType, c.name, texts[n], c.typ)
		}
	}
	return func(st *statement) {
		for n, c := range columns {
			if n > 0 {
				st.add(" AND ")
			}
			st.add(s.quoted(c), " = ")
			st.compared(texts[n], c)
		}
	}, nil
}

// any reports whether a row meets conditions.
func (s *Source) any(ctx context.Context, where ...func(*statement)) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	text, args, err := s.build(query{columns: []string{"1"}, where: where, limit: 1})
	if err != nil {
		return false, err
	}
	_, found, err := first(ctx, s.db, text, args...)
	return found, err
}

// readable returns the reason why the source cannot read the row of a key: no verdict when it can.
func (s *Source) readable(ctx context.Context, sh *shape, is func(*statement)) (e Explanation, err error) {
	filters, err := s.filters(sh)
	if err != nil {
		return e, err
	}
	there, err := s.any(ctx, is)
	if err != nil || !there {
		return Explanation{Verdict: RowAbsent, Why: "there is no row with this key: it was never committed, or it was deleted, which no poller sees"}, err
	}
	var failed []string
	for n, filter := range filters {
		meets, err := s.any(ctx, is, filter)
		if err != nil {
			return e, err
		}
		if w := s.config.Where[n]; !meets {
			failed = append(failed, w.Column+" "+strings.ToLower(w.Op))
		}
	}
	if len(failed) > 0 {
		return Explanation{Verdict: RowFiltered, Why: "it does not meet where: " + strings.Join(failed, ", ")}, nil
	}
	c := sh.columns[sh.cursor]
	empty, err := s.any(ctx, is, func(st *statement) { st.add(s.quoted(c), " IS NULL") })
	if err != nil || !empty {
		return Explanation{}, err
	}
	return Explanation{Verdict: RowWithoutCursor, Why: c.name + ", its cursor, is NULL: it is read when it gets one"}, nil
}

// passed returns the verdict on a row that is not after the position.
func (s *Source) passed(row, place poller.Cursor, c class) (Verdict, string) {
	value := place.Value
	if same(row.Value, value, c) { // trailing zeros may be missing
		value = row.Value
	}
	if row.Equal(poller.Cursor{Kind: row.Kind, Value: value, Tiebreaker: place.Tiebreaker}) {
		return RowDelivered, "the place is this row: it was the last one that was delivered, or went to the dead letters"
	}
	written := "was written in front of the place after the poller was there, by a clock or a number that the database did not give in the transaction"
	if s.config.Bound == BoundXID || s.config.Bound == BoundRowVersion {
		written = "got a cursor that is not the one of its transaction"
	}
	return RowPassed, "it lies in front of the place: it was delivered, or a reset has passed over it, or it met no condition of where at its time, or it " + written +
		". The table cannot tell these apart"
}

// watched returns the bound; it waits where that has to be observed first, for about a settle window.
func (s *Source) watched(ctx context.Context, sh *shape) (upper, error) {
	ctx, cancel := context.WithTimeout(ctx, durations.Sum(s.config.Settle, s.config.Settle, 2*time.Second, s.config.Timeout))
	defer cancel()
	patience := time.NewTimer(durations.Sum(s.config.Settle, s.config.Settle, 2*time.Second))
	defer patience.Stop()
	ticker := time.NewTicker(endPoll)
	defer ticker.Stop()
	for {
		up, err := s.upper(ctx, sh)
		if err != nil || !up.nothing || up.empty {
			return up, err
		}
		select {
		case <-ticker.C:
		case <-patience.C:
			return up, nil
		case <-ctx.Done():
			return up, ctx.Err()
		}
	}
}
