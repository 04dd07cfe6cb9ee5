package bulk

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Rows that are named are what is meant, and nothing else: those of another tenant, that are not pending any more, or not there, are
// passed over, whichever call of whichever process fails. Some go first, and the rest when none of them has come back.
func TestNamedRowsAtEveryCall(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, plan *faults.Plan) {
		w := newWorld(t, 0)
		letters := w.bury(t, 8, func(i int, l *engine.DeadLetter) {
			if i == 5 {
				l.TenantID = "other"
			} else {
				l.TenantID = "contoso"
			}
		})
		page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}})
		if err != nil || len(page.DeadLetters) != 8 {
			t.Fatalf("%d, %v", len(page.DeadLetters), err)
		}
		slices.SortFunc(page.DeadLetters, func(a, b engine.DeadLetter) int { return a.LastFailureAtUtc.Compare(b.LastFailureAtUtc) })
		named := func(numbers ...int) (rows []Row) {
			for _, n := range numbers {
				rows = append(rows, Row{"hmac", page.DeadLetters[n].RowKey})
			}
			return rows
		}
		testenv.Done(t)(letters.Decide(t.Context(), "hmac", page.DeadLetters[4].RowKey, engine.Decision{Status: engine.StatusExpired, At: time.Now()}))
		p := w.process(t, plan)
		req := Request{Action: ActionRetry, Tenant: "Contoso", Rows: append(named(0, 2, 4, 5), Row{"hmac", "nothing"}, Row{"hmac", "../x"}), RatePerSecond: 100, Canary: 1, CanarySeconds: 30, By: "me"}
		op, err := w.process(t, nil).operations.Start(t.Context(), DeadLetterKind, req, "key", "corr")
		if err != nil || op.Request.Selected != 6 || op.Request.Rows != nil || op.Request.Selection == "" {
			t.Fatalf("%+v, %v", op, err)
		}
		p.work(t, w)
		if plan.Crashed() {
			w.process(t, nil).work(t, w)
		}
		op, err = w.process(t, nil).operations.Get(t.Context(), op.ID)
		if err != nil || op.Status != orchestrator.Completed || op.Progress.Done > 2 || op.Progress.Done+op.Progress.PassedOver != 6 || plan.At == 0 && op.Progress.Done != 2 {
			t.Errorf("%+v, %v", op, err)
		}
		for id, ids := range w.retries(t) {
			if len(ids) != 1 || id != "message-0" && id != "message-2" {
				t.Errorf("%s was sent as %v", id, ids)
			}
		}
		if c := w.counts(t); c.Pending != 5 || c.Resolved != 2 || c.Expired != 1 {
			t.Errorf("%+v", c)
		}
		again := req
		again.Rows = named(0, 2, 4)
		if _, err := p.operations.Start(t.Context(), DeadLetterKind, again, "key", "corr"); !plan.Crashed() && !errors.Is(err, ErrKeyReused) {
			t.Errorf("other rows under the key: %v", err)
		}
		if same, err := w.process(t, nil).operations.Start(t.Context(), DeadLetterKind, req, "key", "corr"); err != nil || same.ID != op.ID {
			t.Errorf("the same rows under the key: %+v, %v", same, err)
		}
	}
	count := &faults.Plan{}
	synctest.Test(t, func(t *testing.T) { run(t, count) })
	for at := range count.Calls() {
		t.Run(fmt.Sprint(at+1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, &faults.Plan{At: at + 1, Fault: faults.CrashAfter}) })
		})
	}
}
