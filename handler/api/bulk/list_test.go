package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
)

// lister is a catalog of what a process's runtime has, which is filled.
func (w *world) lister(t *testing.T, p *process) Lister {
	t.Helper()
	c, err := catalog.New(catalog.Config{Tables: w.tables, Runtime: func() *orchestrator.Runtime { return p.runtime }})
	testenv.Check(t, err)
	t.Cleanup(c.Close)
	testenv.Check(t, c.Prepare(t.Context()))
	all, _, err := p.runtime.List(t.Context(), orchestrator.Filter{}, 1000, "")
	for _, s := range all {
		c.Record(orchestrator.StatusChange{ID: s.ID, Orchestrator: s.Orchestrator, CorrelationID: s.CorrelationID, CreatedAt: s.CreatedAt, Status: s.Status})
	}
	testenv.Check(t, err)
	testenv.Check(t, c.Flush(t.Context()))
	return c.List
}

// pages reads a list page by page.
func (p *process) pages(t *testing.T, list Lister, f Filter, limit int) (ids []string) {
	t.Helper()
	for token := ""; ; {
		found, next, err := p.operations.List(t.Context(), list, f, limit, token)
		if err != nil || len(found) > limit {
			t.Fatalf("%d of %d, %v", len(found), limit, err)
		}
		for _, op := range found {
			ids = append(ids, op.ID)
		}
		if token = next; next == "" {
			return ids
		}
	}
}

// A list has the operations of all kinds, the newest first, as its filter selects them, however long its pages are; and nothing that only
// looks like one.
func TestList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.bury(t, 0, nil)
		p := w.process(t, nil)
		var newest []Operation
		for n := range 12 {
			r := Request{Action: ActionExpire, By: fmt.Sprintf("home/%d (Ann %d)", n%2, n), Tenant: []string{"", "contoso", "fabrikam"}[n%3]}
			op, err := p.operations.Start(t.Context(), []string{DeadLetterKind, OutboxKind}[n%2], r, "", "corr")
			testenv.Check(t, err)
			<-time.After(time.Second)
			newest = append([]Operation{op}, newest...)
			if n == 5 { // those before have ended
				p.work(t, w)
			}
		}
		for id, name := range map[string]string{DeadLetterKind + "-mine": DeadLetterKind, OutboxKind + "-" + uuid.NewString(): "short"} {
			testenv.Done(t)(p.runtime.Start(t.Context(), orchestrator.Start{ID: id, Orchestrator: name, Input: []byte("{}")}))
		}
		damaged := OutboxKind + "-" + uuid.NewString()
		testenv.Done(t)(p.runtime.Start(t.Context(), orchestrator.Start{ID: damaged, Orchestrator: OutboxKind, Input: []byte("7")}))
		list := w.lister(t, p)
		open := []orchestrator.Status{orchestrator.Pending, orchestrator.Running, orchestrator.Suspended}
		for name, test := range map[string]struct {
			filter Filter
			wants  func(n int, op Operation) bool
			broken bool
		}{
			"all":    {Filter{}, func(int, Operation) bool { return true }, true},
			"open":   {Filter{Statuses: open}, func(n int, _ Operation) bool { return n < 6 }, true},
			"ended":  {Filter{Statuses: []orchestrator.Status{orchestrator.Completed, orchestrator.Failed}}, func(n int, _ Operation) bool { return n >= 6 }, false},
			"who":    {Filter{By: "HOME/1"}, func(_ int, op Operation) bool { return op.Kind == OutboxKind }, false},
			"tenant": {Filter{Tenant: "CONTOSO"}, func(_ int, op Operation) bool { return op.Request.Tenant == "contoso" }, false},
			"both":   {Filter{By: "ann 4", Tenant: "contoso"}, func(n int, _ Operation) bool { return n == 7 }, false},
			"nobody": {Filter{By: "nobody"}, func(int, Operation) bool { return false }, false},
		} {
			var want []string
			if test.broken {
				want = []string{damaged}
			}
			for n, op := range newest {
				if test.wants(n, op) {
					want = append(want, op.ID)
				}
			}
			for _, limit := range []int{1, 5, 100} {
				testenv.Diff(t, want, p.pages(t, list, test.filter, limit), "%s, %d a page", name, limit)
			}
		}
	})
}

// One list looks at so many at most, however few it finds; and it says when it could not look.
func TestListIsBounded(t *testing.T) {
	t.Parallel()
	p := newWorld(t, 0).process(t, nil)
	looked := 0
	endless := func(_ context.Context, f orchestrator.Filter, limit int, after string) ([]orchestrator.Summary, string, error) {
		if looked += limit; len(f.Orchestrators) != 3 {
			t.Errorf("it looks at %q", f.Orchestrators)
		}
		return slices.Repeat([]orchestrator.Summary{{ID: OutboxKind + "-" + uuid.NewString(), Orchestrator: OutboxKind, CustomStatus: `{"request":{"by":"ann"}}`}}, limit), after + "x", nil
	}
	if found, next, err := p.operations.List(t.Context(), endless, Filter{By: "bo"}, 50, ""); err != nil || len(found) != 0 || next == "" || looked != maxExamined {
		t.Errorf("%d found, %d looked at, on at %q, %v", len(found), looked, next, err)
	}
	lost := errors.New("no line")
	if _, _, err := p.operations.List(t.Context(), func(context.Context, orchestrator.Filter, int, string) ([]orchestrator.Summary, string, error) {
		return nil, "", lost
	}, Filter{}, 5, ""); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
	broken := newWorld(t, 0)
	q := broken.process(t, &faults.Plan{Refuse: func(c faults.Call) bool { return c.Service == "tables" }})
	started := func(context.Context, orchestrator.Filter, int, string) ([]orchestrator.Summary, string, error) {
		return []orchestrator.Summary{{ID: OutboxKind + "-" + uuid.NewString(), Orchestrator: OutboxKind}}, "", nil
	}
	if found, _, err := q.operations.List(t.Context(), started, Filter{}, 5, ""); err == nil {
		t.Errorf("%+v", found)
	}
}
