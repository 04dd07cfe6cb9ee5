package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// MaxLimit bounds a page of a list.
const MaxLimit = 100

// Filter selects entries. The zero value selects all.
type Filter struct {
	// Target and Principal are compared without case; at most one of them is set.
	Target, Principal string
	// From and To bound the time: From <= At < To. Zero means no bound; without From, a list ends two years before To. A
	// list starts at most twenty years back and ends at most an hour ahead, because a month without entries costs a query.
	From, To time.Time
}

// Page is one page of a list, newest first.
type Page struct {
	Entries []Entry
	// Next continues the list, "" at its end.
	Next string
}

// longest bounds a list without From, and furthest a list with From.
const (
	longest  = 2 * 365 * 24 * time.Hour
	furthest = 20 * 365 * 24 * time.Hour
)

// List reads a page of 1 to MaxLimit entries. The error is ErrToken for a continuation of another list.
func (l *Log) List(ctx context.Context, f Filter, limit int, continuation string) (Page, error) {
	if limit < 1 || limit > MaxLimit || f.Target != "" && f.Principal != "" {
		return Page{}, fmt.Errorf("list the audit log: a page has 1 to %d entries, of a target or of a principal: %w", MaxLimit, tables.ErrInvalid)
	}
	if ahead := l.now().Add(time.Hour); f.To.IsZero() || f.To.After(ahead) { // clocks differ
		f.To = ahead
	}
	if f.From.IsZero() {
		f.From = f.To.Add(-longest)
	}
	if past := l.now().Add(-furthest); f.From.Before(past) {
		f.From = past
	}
	view := viewAll
	switch {
	case f.Target != "":
		view = viewOf(viewTarget, clean(f.Target))
	case f.Principal != "":
		view = viewOf(viewPrincipal, f.Principal)
	}
	at, after := firstOf(f.To.Add(-time.Microsecond)), view+placeOf(f.To.Add(-time.Microsecond))
	if continuation != "" {
		partition, row, _ := strings.Cut(continuation, "/")
		begun, err := time.Parse(monthLayout, partition)
		if err != nil || begun.After(firstOf(f.To)) || !strings.HasPrefix(row, view) {
			return Page{}, fmt.Errorf("list the audit log: %w", ErrToken)
		}
		at, after = begun, row
	}
	var page Page
	for ; !at.Before(firstOf(f.From)); at, after = at.AddDate(0, -1, 0), view {
		found, err := l.inMonth(ctx, tables.Query{Partition: month(at), From: after, To: view + placeOf(f.From) + "~~"}, limit-len(page.Entries))
		if continuation != "" && errors.Is(err, tables.ErrInvalid) {
			err = ErrToken
		}
		if err != nil {
			return Page{}, fmt.Errorf("list the audit log of %s: %w", month(at), err)
		}
		page.Entries = append(page.Entries, found...)
		if len(page.Entries) == limit {
			last := page.Entries[limit-1]
			page.Next = month(last.At) + "/" + view + placeOf(last.At) + "-" + last.ID + "~~"
			return page, nil
		}
	}
	return page, nil
}

// firstOf returns the start of a month.
func firstOf(at time.Time) time.Time {
	at = at.UTC()
	return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// inMonth reads up to limit entries of one month, each with its end.
func (l *Log) inMonth(ctx context.Context, q tables.Query, limit int) ([]Entry, error) {
	q.Limit = 2*limit + 1 // this many entries, with all their ends
	var found []Entry
	for row, err := range tables.All(ctx, l.Tables, l.table(), q) {
		if err != nil {
			return nil, err
		}
		switch {
		case !strings.HasSuffix(row.Row, endMark):
			if len(found) == limit {
				return found, nil
			}
			found = append(found, entryOf(row))
		case len(found) > 0 && strings.HasSuffix(row.Row, found[len(found)-1].ID+endMark):
			found[len(found)-1].end(row)
		}
	}
	return found, nil
}
