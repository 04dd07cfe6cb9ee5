package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// MaxGrouped bounds the dead letters that Groups reads where causes are not counted: the newest ones, in pages of
// about a thousand.
const MaxGrouped = 5_000

// groupPage is the page size of Groups.
const groupPage = 1000

// DeadLetterGroup summarises the dead letters of one error signature.
type DeadLetterGroup struct {
	ErrorSignature string
	Count          int
	// Engines are the engines of these dead letters, in alphabetical order.
	Engines []string
	// FirstFailureAtUtc is the earliest first failure, which may be that of a former dead letter of the group.
	// LastFailureAtUtc is the latest failure.
	FirstFailureAtUtc, LastFailureAtUtc time.Time
	// Sample is the newest dead letter of the group, with the fields of a list.
	Sample DeadLetter
}

// DeadLetterGroups is the result of Groups.
type DeadLetterGroups struct {
	// Groups are sorted by size, the largest first.
	Groups []DeadLetterGroup
	// Examined is the number of dead letters that were read or counted. Complete means that the filter selects no
	// others.
	Examined int
	Complete bool
}

// Groups groups the dead letters that a filter selects by their error signatures. Limit and Token are ignored. With
// filters by engine, status and tenant alone, it reads the counts, a query for each engine, and the newest dead
// letters for the samples, a query for each engine and status, for any number of dead letters; causes without a
// sample among those cost more. With other filters, it reads at most the newest MaxGrouped, with one query for each
// thousand and one more for each engine and status; if more exist, Complete is false. The same holds where causes are
// not counted: for dead letters of an older program, until Retention has counted them, and for engines with thousands
// of causes. The errors are ErrFilter and those of the store.
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
