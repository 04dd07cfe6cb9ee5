package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// A page of retention removes all rows of entries with tenants, in any number.
func TestRetentionRemovesTheRowsOfTenants(t *testing.T) {
	t.Parallel()
	store, history, _ := newTables(t)
	for i := range 2 * removedAtOnce {
		e := rotateEntry()
		e.CorrelationID, e.TenantID = fmt.Sprint(i), tenants()[i%len(tenants())]
		recordEntries(t, history, e)
	}
	n, more, err := history.Retention(t.Context(), Retention{Engines: []string{"hmac"}}, noon().Add(2*DefaultKeep), 1000)
	if left := allRows(t, store, DefaultHistoryTable, "hmac"); err != nil || more || n != 2*removedAtOnce || len(left) > 0 {
		t.Errorf("%d removed, %v, %d rows left, %v", n, more, len(left), err)
	}
}

// A program without the index by tenant changes a dead letter: a program with that index can still decide on it and
// remove it.
func TestDeadLettersThatAnOlderProgramChanged(t *testing.T) {
	t.Parallel()
	store, _, letters := newTables(t)
	letter := pendingLetter()
	letter.TenantID = "Contoso"
	addLetter(t, letters, letter)
	older := func() {
		for _, row := range allRows(t, store, DefaultDeadLetterTable, "hmac") {
			if tenantRow := tenantPrefix("contoso", "P")[:len(indexMark+"t-")]; len(row.Row) > 3 && row.Row[:3] == tenantRow {
				if err := store.Apply(t.Context(), DefaultDeadLetterTable, tables.Delete(row.Key, "")); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	older()
	if _, err := letters.Decide(t.Context(), "hmac", pendingRow, Decision{Status: StatusExpired, At: noon()}); err != nil {
		t.Fatal(err)
	}
	checkRows(t, store, letters, "hmac")
	older()
	n, _, err := letters.Retention(t.Context(), Retention{Engines: []string{"hmac"}}, noon().Add(DefaultKeep+time.Hour), 10)
	if page, listErr := letters.List(t.Context(), DeadLetterFilter{Engines: []string{"hmac"}}); n != 1 || err != nil || listErr != nil || len(page.DeadLetters) != 0 {
		t.Errorf("%d removed, %v; %+v, %v", n, err, page, listErr)
	}
}
