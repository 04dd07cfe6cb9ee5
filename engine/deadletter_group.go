package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// MaxGrouped bounds how many dead letters Groups looks at: the newest ones, in pages of about a thousand.
const MaxGrouped = 5_000

// DeadLetterGroup summarises the dead letters of one error signature.
type DeadLetterGroup struct {
	ErrorSignature string
	Count          int
	// Engines are the engines of these dead letters, in alphabetical order.
	Engines []string
	// FirstFailureAtUtc is the earliest first failure, LastFailureAtUtc the latest failure.
	FirstFailureAtUtc, LastFailureAtUtc time.Time
	// Sample is the newest dead letter of the group, as a list shows it.
	Sample DeadLetter
}

// DeadLetterGroups is the result of Groups.
type DeadLetterGroups struct {
	// Groups are sorted by size, the largest first.
	Groups []DeadLetterGroup
	// Examined is how many dead letters were looked at. Complete says that these are all that the filter selects.
	Examined int
	Complete bool
}

// Groups groups the dead letters that a filter selects by their error signatures. Limit and Token are ignored. It looks
// at no more than the newest MaxGrouped, with one query for each thousand and one more for each engine and status; when
// there are more, Complete is false. The errors are ErrFilter and those of the store.
func (d *DeadLetters) Groups(ctx context.Context, f DeadLetterFilter) (DeadLetterGroups, error) {
	f.Limit, f.Token = 0, ""
	q, err := d.query(f).normalised()
	if err != nil {
		return DeadLetterGroups{}, fmt.Errorf("group dead letters: %w", err)
	}
	const page = 1000
	l, err := q.listing(ctx, d.store, d.table)
	if err != nil {
		return DeadLetterGroups{}, fmt.Errorf("group dead letters: %w", err)
	}
	l.limit = page - 1 // a stream asks for one more
	rows, err := merge(ctx, q.streams(l, func(l listing, engine string) *rowStream {
		return l.indexStream(engine, correlationPrefix(f.CorrelationID))
	}), MaxGrouped+1)
	if err != nil {
		return DeadLetterGroups{}, fmt.Errorf("group dead letters: %w", err)
	}
	out := DeadLetterGroups{Examined: min(len(rows), MaxGrouped), Complete: len(rows) <= MaxGrouped}
	groups := map[string]*DeadLetterGroup{}
	for _, row := range rows[:out.Examined] {
		letter, err := deadLetterOf(row.entity)
		if err != nil {
			return DeadLetterGroups{}, fmt.Errorf("group dead letters: %w", err)
		}
		g := groups[letter.ErrorSignature]
		if g == nil {
			g = &DeadLetterGroup{ErrorSignature: letter.ErrorSignature, Sample: letter, FirstFailureAtUtc: letter.FirstFailureAtUtc,
				LastFailureAtUtc: letter.LastFailureAtUtc}
			groups[letter.ErrorSignature] = g
		}
		g.Count++
		if letter.FirstFailureAtUtc.Before(g.FirstFailureAtUtc) {
			g.FirstFailureAtUtc = letter.FirstFailureAtUtc
		}
		if at, found := slices.BinarySearch(g.Engines, letter.Engine); !found {
			g.Engines = slices.Insert(g.Engines, at, letter.Engine)
		}
	}
	for _, signature := range slices.Sorted(maps.Keys(groups)) {
		out.Groups = append(out.Groups, *groups[signature])
	}
	slices.SortStableFunc(out.Groups, func(a, b DeadLetterGroup) int { return cmp.Compare(b.Count, a.Count) })
	return out, nil
}
