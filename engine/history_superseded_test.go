package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/tables"
)

// Failures before a run's success are marked, in any number and with a crash at any point: a repeat continues, no row
// is in two lists, and the retention finds all of them.
func TestSupersede(t *testing.T) {
	t.Parallel()
	const failures = 60 // more than a transaction holds
	failed := func() (all []Entry) {
		for i := range failures {
			e := rotateEntry()
			e.Status, e.RunStatus, e.TenantID, e.Error = StatusFailed, StatusFailed, "Contoso", "no"
			e.CreatedAtUtc = noon().Add(time.Duration(i) * time.Second)
			all = append(all, e)
		}
		return all
	}
	success := rotateEntry()
	success.TenantID, success.CreatedAtUtc, success.RunStatus = "Contoso", noon().Add(time.Hour), StatusSucceeded
	by := rowKey(success.CorrelationID, success.CreatedAtUtc)
	run := func(t *testing.T, plan *faults.Plan) {
		memory := tables.NewMemory()
		history := NewHistory(memory, "")
		if err := history.CreateTable(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, e := range failed() {
			recordEntries(t, history, e)
		}
		dying := NewHistory(faults.Tables(memory, plan.Intercept), "")
		if known, err := dying.Run(t.Context(), success.Engine, success.CorrelationID); err == nil {
			_ = dying.recordSuccess(t.Context(), by, []Entry{success}, known)
		}
		known, err := history.Run(t.Context(), success.Engine, success.CorrelationID)
		if err == nil {
			err = history.recordSuccess(t.Context(), by, []Entry{success}, known)
		}
		if err != nil {
			t.Fatal(err)
		}
		lists := map[string]int{}
		for _, row := range allRows(t, memory, DefaultHistoryTable, tables.EscapeKey(success.Engine)) {
			list, _, _ := strings.Cut(strings.TrimPrefix(row.Row, indexMark), "-")
			if list == "t" {
				list = row.Row[len("~t-")+digestSize+1:][:1] + " of the tenant"
			}
			if !strings.HasPrefix(row.Row, indexMark) {
				list = "entries"
			}
			lists[list]++
			if row.String("Status") == string(StatusFailed) && row.String(supersededColumn) != by {
				t.Errorf("%s is not superseded", row.Row)
			}
		}
		if got := fmt.Sprint(lists); got != fmt.Sprint(map[string]int{"entries": failures + 1, "i": failures + 1, "O": failures, "S": 1, "O of the tenant": failures, "S of the tenant": 1}) {
			t.Errorf("rows by list: %v", got)
		}
		for more := true; more; {
			if _, more, err = history.Retention(t.Context(), Retention{Engines: []string{success.Engine}, Keep: time.Hour}, noon().Add(1000*time.Hour), 100); err != nil {
				t.Fatal(err)
			}
		}
		if left := allRows(t, memory, DefaultHistoryTable, tables.EscapeKey(success.Engine)); len(left) != 0 {
			t.Errorf("%d rows are left", len(left))
		}
	}
	count := &faults.Plan{}
	run(t, count)
	for at := range count.Calls() {
		for _, fault := range []faults.Fault{faults.CrashBefore, faults.CrashAfter, faults.Applied, faults.Conflict, faults.Precondition} {
			if !sample.Keep(t, at, fault) {
				continue
			}
			t.Run(fmt.Sprintf("%s-%d", fault, at+1), func(t *testing.T) { run(t, &faults.Plan{At: at + 1, Fault: fault}) })
		}
	}
}
