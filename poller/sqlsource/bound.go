package sqlsource

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// upper is the bound below which rows are returned.
type upper struct {
	where []func(*statement)
	// nothing means that no row may be returned yet, empty that none existed; reason is the reason for held back rows.
	nothing, empty bool
	reason         string
}

// all reports whether nothing is held back.
func (u upper) all() bool { return len(u.where) == 0 && !u.nothing }

// settled is a source's knowledge about the settle bound. It stays true: no new row can appear before settled rows.
type settled struct {
	// looked is the time of the last look at transactions, last its result, both by this process's clock and the
	// database's.
	looked time.Time
	last   sighting
	// time is the upper bound of cursors that are times.
	time time.Time
	// samples are highest values with their times; highest is a value before which no running transaction can insert,
	// known means that it is set.
	samples []sample
	highest string
	known   bool
	// mysql is the result of MySQL's previous look.
	mysql *mysqlLook
}

type sample struct {
	at    time.Time
	value string
}

const (
	maxSamples = 64
	// looks and samples are their numbers in a settle window. Few spare the database, and let InnoDB renew its list of
	// transactions, which it does only when no client has read it for 100 ms.
	looks, samples = 10, 8
)

// upper returns the current bound.
func (s *Source) upper(ctx context.Context, sh *shape) (upper, error) {
	c := sh.columns[sh.cursor]
	switch s.config.Bound {
	case BoundSingleWriter:
		return upper{}, nil
	case BoundXID, BoundRowVersion:
		return s.ceiling(ctx, c)
	}
	seen, err := s.look(ctx)
	if err != nil {
		return upper{}, err
	}
	reason := s.reason(seen)
	if c.class == classTime || c.class == classLocal {
		// SQLite stores times as given, in any form.
		if s.config.Dialect != SQLite {
			return s.timeBound(c, reason), nil
		}
	}
	return s.sampleBound(ctx, c, seen, reason)
}

// ceiling is read in a statement before that of the rows: transactions below it have ended when the rows are read.
func (s *Source) ceiling(ctx context.Context, c column) (upper, error) {
	values, _, err := first(ctx, s.db, "SELECT "+s.dialect.ceiling)
	if err != nil {
		return upper{}, err
	}
	if !values[0].Valid {
		return upper{}, errReadOnly
	}
	return upper{reason: "an older transaction is open", where: []func(*statement){func(st *statement) {
		st.add(s.quoted(c), " < ")
		st.compared(values[0].String, c)
	}}}, nil
}

// look reads the transactions, and moves the bounds that depend on them alone.
func (s *Source) look(ctx context.Context) (sighting, error) {
	k := &s.settled
	if !k.looked.IsZero() && time.Since(k.looked) < s.config.Settle/looks {
		return k.last, nil
	}
	started := time.Now()
	seen, err := s.dialect.look(ctx, s)
	if err != nil {
		return sighting{}, err
	}
	k.looked, k.last = started, seen
	if seen.unknown {
		return seen, nil
	}
	if safe := seen.safe(s.config.Settle); safe.After(k.time) {
		k.time = safe
	}
	return seen, nil
}

// safe returns the time before which everything has been committed: a future transaction has started at most a window
// before.
func (g sighting) safe(settle time.Duration) time.Time {
	if !g.oldest.IsZero() && g.oldest.Before(g.now) {
		return g.oldest.Add(-settle)
	}
	return g.now.Add(-settle)
}

func (s *Source) reason(seen sighting) string {
	switch {
	case seen.unknown:
		return seen.holder
	case !seen.oldest.IsZero() && seen.now.Sub(seen.oldest) > s.config.Settle:
		return fmt.Sprintf("a transaction is open since %v: %s", seen.now.Sub(seen.oldest).Round(time.Second), seen.holder)
	}
	return fmt.Sprintf("rows settle for %v", s.config.Settle)
}

func (s *Source) timeBound(c column, reason string) upper {
	if s.settled.time.IsZero() {
		return upper{nothing: true, reason: reason}
	}
	// A future time may be rounded down.
	text := s.settled.time.UTC().Add(-c.step).Format("2006-01-02T15:04:05.000000Z")
	if c.class == classLocal {
		text = wallBound(s.settled.time, s.zone).Add(-c.step).Format("2006-01-02T15:04:05.000000")
	}
	if c.typ == "DATE" {
		text = text[:len(time.DateOnly)]
	}
	return upper{reason: reason, where: []func(*statement){func(st *statement) {
		st.add(s.quoted(c), " < ")
		st.compared(text, c)
	}}}
}

// wallBound returns the time that the clocks of a zone have passed for good: no later reading is below it. Before
// clocks are set back, it is the time that they will be set back to, so that the rows of a repeated hour are returned
// after the second one.
func wallBound(at time.Time, zone *time.Location) time.Time {
	wall := func(t time.Time) time.Time {
		_, offset := t.In(zone).Zone()
		return t.UTC().Add(time.Duration(offset) * time.Second)
	}
	bound := wall(at)
	if _, change := at.In(zone).ZoneBounds(); !change.IsZero() && wall(change).Before(bound) {
		return wall(change)
	}
	return bound
}

// sampleBound serves cursors that are not times. A value that was the highest at some time is safe when all
// transactions of that time have ended: a later transaction gets a higher one.
func (s *Source) sampleBound(ctx context.Context, c column, seen sighting, reason string) (upper, error) {
	k := &s.settled
	if err := s.takeSample(ctx, c, seen); err != nil {
		return upper{}, err
	}
	safe := k.time
	for len(k.samples) > 0 && !k.samples[0].at.After(safe) {
		k.highest, k.known = k.samples[0].value, true
		k.samples = k.samples[1:]
	}
	if !k.known || k.highest == "" {
		return upper{nothing: true, empty: k.known, reason: reason}, nil
	}
	return upper{reason: reason, where: []func(*statement){func(st *statement) {
		st.add(s.quoted(c), " <= ")
		st.compared(k.highest, c)
	}}}, nil
}

func (s *Source) takeSample(ctx context.Context, c column, seen sighting) error {
	k := &s.settled
	now := seen.now.Add(time.Since(k.looked))
	if n := len(k.samples); n > 0 && now.Sub(k.samples[n-1].at) < s.config.Settle/samples {
		return nil
	}
	plain := *s
	plain.config.Where = nil
	text, args, err := plain.build(query{columns: []string{s.dialect.expression("MAX("+s.quoted(c)+")", c)}})
	if err != nil {
		return err
	}
	values, _, err := first(ctx, s.db, text, args...)
	if err != nil {
		return err
	}
	// The time is that after the reading: a transaction that started meanwhile may have a lower value.
	got := sample{at: seen.now.Add(time.Since(k.looked)), value: values[0].String}
	if len(k.samples) == maxSamples {
		k.samples[maxSamples-1] = got
		return nil
	}
	k.samples = append(k.samples, got)
	return nil
}

// less compares canonical texts.
func less(a, b string, c class) bool {
	switch c {
	case classInteger, classDecimal, classXID:
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		return okX && okY && x.Cmp(y) < 0
	case classTime:
		x, errX := time.Parse(time.RFC3339Nano, a)
		y, errY := time.Parse(time.RFC3339Nano, b)
		return errX == nil && errY == nil && x.Before(y)
	}
	return strings.ToLower(a) < strings.ToLower(b)
}
