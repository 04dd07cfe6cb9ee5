package sqlsource

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/poller"
)

// local is a time without a zone, as in positions.
const local = "2006-01-02T15:04:05.999999999"

// inColumn returns a position with its time in the column's form: in UTC, or in the column's zone without naming it.
// Operators write offsets, which databases silently cut off. SQLite stores times as given, and so is left alone.
func (s *Source) inColumn(after poller.Cursor, c column) poller.Cursor {
	t, err := time.Parse(time.RFC3339Nano, canonicalText(after.Value, c.class)) // without an offset, it is UTC
	switch {
	case c.class == classTime && err == nil:
		after.Value = t.UTC().Format(time.RFC3339Nano)
	case c.class == classLocal && err == nil:
		after.Value = t.In(s.zone).Format(local)
	}
	return after
}

// inCondition returns the value of a condition in the column's form, where databases would cut an offset off.
func (s *Source) inCondition(text string, c column) (string, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	_, offset := t.Zone()
	switch {
	case err != nil || offset == 0:
	case c.class == classTime:
		return t.UTC().Format(time.RFC3339Nano), nil
	case c.class == classLocal:
		return "", fmt.Errorf("%w: %s has an offset, and %s no zone: write the time as the column has it", ErrColumnType, text, c.typ)
	}
	return text, nil
}

// CheckPlace returns an ErrColumnType when a position cannot belong to the current table: its value or a key has
// another type than the column.
func (s *Source) CheckPlace(ctx context.Context, at poller.Cursor) error {
	return s.fail("check a place of", s.checkPlace(ctx, at))
}

func (s *Source) checkPlace(ctx context.Context, at poller.Cursor) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	sh, err := s.describe(ctx)
	if err != nil {
		return err
	}
	var keys map[string]json.RawMessage
	if len(at.Tiebreaker) > 0 && len(sh.ties) > 0 {
		if err := json.Unmarshal(at.Tiebreaker, &keys); err != nil {
			return fmt.Errorf("%w: the keys %s are no JSON object", ErrColumnType, at.Tiebreaker)
		}
	}
	for _, i := range sh.ties {
		c := sh.columns[i]
		value, given := keys[c.name]
		if number := c.class == classInteger || c.class == classDecimal; given && number == (value[0] == '"') {
			return fmt.Errorf("%w: the key %s is %s, but %s is %s", ErrColumnType, c.name, value, c.name, c.typ)
		}
	}
	at = s.inColumn(at, sh.columns[sh.cursor])
	place, err := s.behind(sh, at)
	if err != nil {
		return err
	}
	if err := s.confirm(ctx, sh, at); err != nil {
		return err
	}
	text, args, err := s.build(query{columns: []string{"1"}, where: []func(*statement){place}, limit: 1})
	if err != nil {
		return err
	}
	if _, _, err = first(ctx, s.db, text, args...); err == nil || ctx.Err() != nil || unreachable(err) {
		return err
	}
	if _, kind := s.dialect.explain(err); kind != nil {
		return err
	}
	return fmt.Errorf("%w: the database cannot read the place %s: %w", ErrColumnType, at, err)
}

// confirm makes the database read a position that it did not produce, and refuses one that it reads differently, such
// as with too many digits. Rows between the two would be lost or repeated.
func (s *Source) confirm(ctx context.Context, sh *shape, after poller.Cursor) error {
	c := sh.columns[sh.cursor]
	if after.Value == "" || after.Equal(s.given) || c.class != classTime && c.class != classLocal && c.class != classDecimal {
		return nil
	}
	if err := fits(after.Value, c); err != nil {
		return err
	}
	st := &statement{dialect: s.dialect}
	st.compared(after.Value, c)
	text, _, err := first(ctx, s.db, "SELECT "+s.dialect.expression(st.text.String(), c), st.args...)
	if err != nil {
		return err
	}
	if read := canonicalText(text[0].String, c.class); !same(read, after.Value, c.class) {
		return fmt.Errorf("%w: the database reads the place %s as %q: reset the poller to a place as %s, which is %s, has it",
			ErrColumnType, after.Value, read, c.name, c.typ)
	}
	s.given = after
	return nil
}

// placeOf returns the columns of a position, and their values. A position without keys is after all rows of its value.
func placeOf(sh *shape, at poller.Cursor) (columns []column, texts []string, err error) {
	columns, texts = []column{sh.columns[sh.cursor]}, []string{at.Value}
	if err := fits(at.Value, columns[0]); err != nil {
		return nil, nil, err
	}
	if len(at.Tiebreaker) == 0 || len(sh.ties) == 0 {
		return columns, texts, nil
	}
	var ties []column
	for _, i := range sh.ties {
		ties = append(ties, sh.columns[i])
	}
	more, err := keyTexts(at.Tiebreaker, ties)
	for i := range more {
		if err == nil {
			err = fits(more[i], ties[i])
		}
	}
	return append(columns, ties...), append(texts, more...), err
}

// same reports whether two texts are one value.
func same(a, b string, c class) bool {
	if a == b {
		return true
	}
	if c == classDecimal {
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		return okX && okY && x.Cmp(y) == 0
	}
	form := local
	if c == classTime {
		form = time.RFC3339Nano
	}
	x, errX := time.Parse(form, strings.Replace(a, " ", "T", 1))
	y, errY := time.Parse(form, strings.Replace(b, " ", "T", 1))
	return errX == nil && errY == nil && x.Equal(y)
}
