package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// MaxGrouped bounds how many dead letters Groups looks at where they are not counted by their causes: the newest ones, in pages of
// about a thousand.
const MaxGrouped = 5_000

// groupPage is how many dead letters Groups reads at once.
const groupPage = 1000

// DeadLetterGroup summarises the dead letters of one error signature.
type DeadLetterGroup struct {
	ErrorSignature string
	Count          int
	// Engines are the engines of these dead letters, in alphabetical order.
	Engines []string
	// FirstFailureAtUtc is the earliest first failure, which may be that of a dead letter that was one of the group before.
	// LastFailureAtUtc is the latest failure.
	FirstFailureAtUtc, LastFailureAtUtc time.Time
	// Sample is the newest dead letter of the group, as a list shows it.
	Sample DeadLetter
}

// DeadLetterGroups is the result of Groups.
type DeadLetterGroups struct {
	// Groups are sorted by size, the largest first.
	Groups []DeadLetterGroup
	// Examined is how many dead letters were looked at, or counted. Complete says that these are all that the filter selects.
	Examined int
	Complete bool
}

// Groups groups the dead letters that a filter selects by their error signatures. Limit and Token are ignored. With filters by
// engine, status and tenant alone, it reads the counts, a query for each engine, and the newest dead letters for the samples, a query
// for each engine and status, however many there are; causes of which there is none among those cost more. With other filters, it
// looks at no more than the newest MaxGrouped, with one query for each thousand and one more for each engine and status; when there
// are more, Complete is false. So it does where some are not counted by their causes: those of a program that did not do so, until
// Retention has counted them, and of engines with thousands of causes. The errors are ErrFilter and those of the store.
func (d *DeadLetters) Groups(ctx context.Context, f DeadLetterFilter) (DeadLetterGroups, error) {
	f.Limit, f.Token = 0, ""
	q, err := d.query(f).normalised()
	if err != nil {
		return DeadLetterGroups{}, fmt.Errorf("group dead letters: %w", err)
	}
	l, err := q.listing(ctx, d.store, d.table)
	if err != nil {
		return DeadLetterGroups{}, fmt.Errorf("group dead letters: %w", err)
	}
	if out, ok, err := d.countedGroups(ctx, f, q, l); err != nil || ok {
		if err != nil {
			err = fmt.Errorf("group dead letters: %w", err)
		}
		return out, err
	}
	l.limit = groupPage - 1 // a stream asks for one more
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
	out.Groups = bySize(groups)
	return out, nil
}

// bySize returns the groups, the largest first.
func bySize(groups map[string]*DeadLetterGroup) (sorted []DeadLetterGroup) {
	for _, signature := range slices.Sorted(maps.Keys(groups)) {
		sorted = append(sorted, *groups[signature])
	}
	slices.SortStableFunc(sorted, func(a, b DeadLetterGroup) int { return cmp.Compare(b.Count, a.Count) })
	return sorted
}
