package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/tables"
)

// forgetInstance removes the index by instance from a row and its index rows, as a program without that index writes
// them.
func forgetInstance(t fataler, store tables.Store, table, engine, row string) {
	t.Helper()
	var ops []tables.Op
	for e, err := range tables.All(context.Background(), store, table, tables.Query{Partition: engine, From: indexMark}) {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		marked, _ := e.Properties[byInstanceColumn].(bool)
		switch {
		case e.String(targetColumn) != row:
		case strings.HasPrefix(e.Row, "~i-"):
			ops = append(ops, tables.Delete(e.Key, ""))
		case marked:
			delete(e.Properties, byInstanceColumn)
			ops = append(ops, tables.Replace(e))
		}
	}
	if len(ops) != 2 {
		t.Fatalf("%d rows of %s to forget, want that by status and that by instance", len(ops), row)
	}
	if err := store.Apply(context.Background(), table, ops...); err != nil {
		t.Fatalf("forget: %v", err)
	}
}

// A list by instance costs two queries for a table of any length, by any program, with any other filters, and one
// when the process knows that the index is complete.
func TestListByInstanceCostsTwoQueries(t *testing.T) {
	t.Parallel()
	for _, n := range []int{40, 400, 4_000} {
		if n > 1_000 && !sample.Keep(t, n) {
			continue
		}
		store, history, letters := newTables(t)
		engines := fillHistory(t, history, n)
		for i := range n / 20 {
			letter := pendingLetter()
			letter.MessageID, letter.InstanceID = fmt.Sprint(i), fmt.Sprintf("instance-%d", i)
			addLetter(t, letters, letter)
		}
		_, _, historyErr := history.Retention(t.Context(), Retention{Engines: engines}, noon(), 1)
		_, _, lettersErr := letters.Retention(t.Context(), Retention{Engines: engines}, noon(), 1)
		if err := errors.Join(historyErr, lettersErr); err != nil {
			t.Fatal(err)
		}
		for name, list := range map[string]func(h *History, d *DeadLetters) (int, error){
			"history": func(h *History, _ *DeadLetters) (int, error) {
				page, err := h.List(t.Context(), HistoryFilter{Engines: []string{"hmac"}, InstanceID: "instance-1"})
				return len(page.Entries), err
			},
			"history of a tenant": func(h *History, _ *DeadLetters) (int, error) {
				page, err := h.List(t.Context(), HistoryFilter{Engines: []string{"hmac"}, InstanceID: "instance-1", TenantID: "contoso", Status: StatusSucceeded})
				return len(page.Entries), err
			},
			"dead letters": func(_ *History, d *DeadLetters) (int, error) {
				page, err := d.List(t.Context(), DeadLetterFilter{Engines: []string{"hmac"}, InstanceID: "instance-1"})
				return len(page.DeadLetters), err
			},
			"pending": func(_ *History, d *DeadLetters) (int, error) {
				page, err := d.List(t.Context(), DeadLetterFilter{Engines: []string{"hmac"}, InstanceID: "instance-1", Status: StatusPending})
				return len(page.DeadLetters), err
			},
		} {
			t.Run(fmt.Sprintf("%d rows/%s", n, name), func(t *testing.T) {
				h, d := NewHistory(store, ""), NewDeadLetters(store, "")
				for _, want := range []int{2, 1} {
					store.reset()
					found, err := list(h, d)
					if err != nil || found != 1 || store.queries != want || store.entities > 6 {
						t.Errorf("found %d with %d queries of %d rows, %v, want one with %d", found, store.queries, store.entities, err, want)
					}
				}
			})
		}
	}
}

// A page of an instance with most of the rows costs one query for each list, and one that finds out that more exist.
func TestListOfABusyInstanceCostsItsPage(t *testing.T) {
	t.Parallel()
	const limit = 20
	store, history, _ := newTables(t)
	var entries []Entry
	for i := range 2_000 {
		e := rotateEntry()
		e.RunStatus, e.CreatedAtUtc = "", noon().Add(time.Duration(i)*time.Microsecond)
		if i < 5 {
			e.Status = StatusFailed
		}
		entries = append(entries, e)
	}
	if err := errors.Join(history.Register(t.Context(), nil, []string{"hmac"}), history.Record(t.Context(), entries...)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		filter       HistoryFilter
		found, first int
	}{
		"all":    {HistoryFilter{}, limit, 4},
		"status": {HistoryFilter{Status: StatusFailed}, 5, 3},
		"open":   {HistoryFilter{Status: StatusFailed, Open: true}, 5, 1},
	} {
		f := test.filter
		f.Engines, f.InstanceID, f.Limit = []string{"hmac"}, PublisherInstance, limit
		for page, want := range []int{test.first, 3} {
			store.reset()
			got, err := history.List(t.Context(), f)
			if err != nil || len(got.Entries) != test.found || store.queries > want || store.entities > want*(limit+1) {
				t.Errorf("%s, page %d: %d entries with %d queries of %d rows, %v, want %d queries", name, page+1, len(got.Entries), store.queries, store.entities, err, want)
			}
			for i, e := range got.Entries {
				if at := noon().Add(time.Duration(1_999-page*limit-i) * time.Microsecond); name == "all" && !e.CreatedAtUtc.Equal(at) {
					t.Errorf("page %d: entry %d is of %v, want %v", page+1, i, e.CreatedAtUtc, at)
				}
			}
			if f.Token = got.Token; f.Token == "" {
				break
			}
		}
	}
}

// The index of a new app is complete from the beginning, and that of an app with rows only after an update.
func TestRegisterTrustsNewTablesOnly(t *testing.T) {
	t.Parallel()
	store, history, letters := newTables(t)
	recordEntries(t, history, rotateEntry())
	addLetter(t, letters, pendingLetter())
	if err := errors.Join(history.Register(t.Context(), nil, []string{"hmac", "tls"}), letters.Register(t.Context(), []string{"hmac", "tls"})); err != nil {
		t.Fatal(err)
	}
	for table, i := range map[string]*instances{
		"history": newInstances(store, DefaultHistoryTable), "dead letters": newInstances(store, DefaultDeadLetterTable),
	} {
		known, err := i.complete(t.Context(), []string{"hmac", "tls"})
		if err != nil || known["hmac"] || !known["tls"] {
			t.Errorf("%s: complete %v, %v, want tls alone", table, known, err)
		}
	}
}

// The next update indexes rows of a program without the index, and reads only new rows; a row that changes during the
// update keeps the change.
func TestIndexByInstanceCatchesUp(t *testing.T) {
	t.Parallel()
	store, _, letters := newTables(t)
	add := func(id string, at time.Time) string {
		letter := pendingLetter()
		letter.MessageID, letter.LastFailureAtUtc = id, at
		addLetter(t, letters, letter)
		row := rowKey(id, letter.InsertedAtUtc)
		forgetInstance(t, store, DefaultDeadLetterTable, "hmac", row)
		return row
	}
	clean := func(now time.Time) {
		if _, _, err := letters.Retention(t.Context(), Retention{Engines: []string{"hmac"}}, now, 1); err != nil {
			t.Fatal(err)
		}
	}
	row := add("early", noon())
	add("other", noon())
	store.refuse = func([]tables.Op) error {
		store.refuse = nil
		_, err := letters.Decide(t.Context(), "hmac", row, Decision{Status: StatusResolved, At: noon()})
		return err
	}
	clean(noon().Add(time.Hour))
	checkRows(t, store, letters, "hmac")
	add("late", noon().Add(time.Minute))
	store.reset()
	clean(noon().Add(24 * time.Hour))
	checkRows(t, store, letters, "hmac")
	clean(noon().Add(25 * time.Hour))
	store.reset()
	if err := letters.instances.update(t.Context(), "hmac", deadLetterStatuses(), noon().Add(48*time.Hour)); err != nil || store.entities != 0 {
		t.Errorf("%d rows were read to find nothing new, %v", store.entities, err)
	}
}
