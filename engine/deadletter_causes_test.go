package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/tables"
)

// groupModel is the expected group, except for the earliest failure, which may be that of an earlier dead letter.
type groupModel struct {
	count  int
	last   time.Time
	sample string
}

// checkGroups compares the groups of an engine, for all callers and statuses, with a plain count of its dead letters.
// Among several last failures, any is the sample.
func checkGroups(t interface {
	fataler
	Context() context.Context
	Errorf(string, ...any)
}, letters *DeadLetters, engine string, all []DeadLetter,
) {
	t.Helper()
	for _, caller := range []string{"", "Contoso"} {
		for _, status := range append([]string{""}, deadLetterStatuses()...) {
			want, first := map[string]groupModel{}, map[string]time.Time{}
			for _, l := range all {
				if caller != "" && !strings.EqualFold(caller, l.TenantID) || status != "" && status != string(l.Status) {
					continue
				}
				g, at := want[l.ErrorSignature], place(l.LastFailureAtUtc, l.RowKey)
				if g.count++; g.sample == "" || at < place(g.last, g.sample) {
					g.last, g.sample = l.LastFailureAtUtc, l.RowKey
				}
				want[l.ErrorSignature] = g
				if f, ok := first[l.ErrorSignature]; !ok || l.FirstFailureAtUtc.Before(f) {
					first[l.ErrorSignature] = l.FirstFailureAtUtc
				}
			}
			found, err := letters.Groups(t.Context(), DeadLetterFilter{Engines: []string{engine}, TenantID: caller, Status: DeadLetterStatus(status)})
			if err != nil || !found.Complete {
				t.Fatalf("groups: complete %v, %v", found.Complete, err)
			}
			got := map[string]groupModel{}
			for _, g := range found.Groups {
				got[g.ErrorSignature] = groupModel{g.Count, g.LastFailureAtUtc, g.Sample.RowKey}
				if g.FirstFailureAtUtc.After(first[g.ErrorSignature]) {
					t.Errorf("the group %s first failed at %v, there is one of %v", g.ErrorSignature, g.FirstFailureAtUtc, first[g.ErrorSignature])
				}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(groupModel{})); diff != "" {
				t.Errorf("groups for %q, %q (-want +got):\n%s", caller, status, diff)
			}
		}
	}
}

// Groups cost two queries for any number of dead letters, and more only for a cause that is older than all others.
func TestGroupsCostTwoQueries(t *testing.T) {
	t.Parallel()
	for _, n := range []int{60, 600, 2_500, MaxGrouped + 500} {
		if n > 1_000 && !sample.Keep(t, n) {
			continue
		}
		store, _, letters := newTables(t)
		for i := range n {
			letter := pendingLetter()
			letter.MessageID, letter.ErrorMessage = fmt.Sprint(i), []string{"no vault", "no key", "no answer"}[i%3]
			letter.LastFailureAtUtc = noon().Add(time.Duration(i) * time.Second)
			addLetter(t, letters, letter)
		}
		look := func(want, queries int) {
			t.Helper()
			store.reset()
			got, err := letters.Groups(t.Context(), DeadLetterFilter{Engines: []string{"hmac"}, Status: StatusPending})
			if err != nil || len(got.Groups) != want || got.Examined != n || store.queries > queries {
				t.Errorf("%d of %d: %d groups with %d queries, %v, want %d with %d", got.Examined, n, len(got.Groups), store.queries, err, want, queries)
			}
		}
		look(3, 2)
		n++
		rare := pendingLetter()
		rare.MessageID, rare.ErrorMessage, rare.LastFailureAtUtc = "rare", "no time", noon().Add(-time.Hour)
		addLetter(t, letters, rare)
		look(4, 4+n/groupPage)
	}
}

// Counts of a program without causes are grouped from the dead letters, until the retention has counted the causes;
// changes by such a program next to this one are detected.
func TestCausesOfAnOlderProgram(t *testing.T) {
	t.Parallel()
	store, _, letters := newTables(t)
	var all []DeadLetter
	add := func(id, text string) {
		letter := pendingLetter()
		letter.MessageID, letter.ErrorMessage, letter.TenantID = id, text, "Contoso"
		addLetter(t, letters, letter)
		got, err := letters.Get(t.Context(), "hmac", rowKey(id, letter.InsertedAtUtc))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got)
	}
	for i := range 40 {
		add(fmt.Sprint(i), []string{"no vault", "no key"}[i%2])
	}
	rows, err := letters.countRows(t.Context(), "hmac")
	if err != nil || len(rows) < 2 {
		t.Fatalf("%d count rows, %v", len(rows), err)
	}
	for _, e := range rows {
		delete(e.Properties, causesColumn)
		if err := store.Store.Apply(t.Context(), DefaultDeadLetterTable, tables.Replace(e)); err != nil {
			t.Fatal(err)
		}
	}
	add("later", "no key")
	checkGroups(t, letters, "hmac", all)
	if _, _, err := letters.Retention(t.Context(), Retention{Engines: []string{"hmac"}}, noon(), 1); err != nil {
		t.Fatal(err)
	}
	checkGroups(t, letters, "hmac", all)
	if rows, err = letters.countRows(t.Context(), "hmac"); err != nil {
		t.Fatal(err)
	}
	for _, e := range rows {
		if _, ok := causesOf(e); !ok || e.String(causesColumn) == "" {
			t.Errorf("%s does not count its causes: %v", e.Key, e.Properties)
		}
	}
}
