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

// slow starts an operation that changes ten rows in a slice of ten seconds.
func (p *process) slow(t *testing.T) Operation {
	t.Helper()
	op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionExpire, Engine: "hmac", RatePerSecond: 1}, "", "corr")
	testenv.OK(t, err)
	return op
}

// get returns the state of an operation.
func (p *process) get(t *testing.T, id string) Operation {
	t.Helper()
	op, err := p.operations.Get(t.Context(), id)
	testenv.OK(t, err)
	return op
}

// pauseInFirst pauses an operation in the middle of its first slice, and lets its process work until it is idle.
func (p *process) pauseInFirst(t *testing.T, w *world, id string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.work(t, w)
	}()
	<-time.After(4500 * time.Millisecond)
	if _, err := p.operations.Pause(t.Context(), id, "why"); err != nil {
		t.Error(err)
	}
	p.work(t, w) // another invocation handles it
	<-done
}

// A paused operation finishes its slice and begins no other. It stays paused for days and in other processes, makes
// no storage request meanwhile, and continues from the same place.
func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const letters = 25
		w := newWorld(t, 0)
		w.bury(t, letters, nil)
		first := w.process(t, nil)
		op := first.slow(t)
		first.pauseInFirst(t, w, op.ID)
		if got := first.get(t, op.ID); got.Status != orchestrator.Suspended || got.Progress.Done != 0 {
			t.Fatalf("%+v", got) // its slice is counted when it continues
		}
		w.sweepFor(t, first, 24*time.Hour) // the rest of its slice is finished
		second := w.process(t, nil)
		w.sweepFor(t, second, 7*24*time.Hour)
		idle := newWorld(t, 0)
		nothing := idle.process(t, nil)
		idle.sweepFor(t, nothing, 7*24*time.Hour)
		if with, without := len(second.plan.Calls()), len(nothing.plan.Calls()); with != without {
			t.Errorf("%d calls of storage while it is paused, %d without it", with, without)
		}
		if expired := w.counts(t).Expired; expired != 10 || second.get(t, op.ID).Status != orchestrator.Suspended {
			t.Errorf("%d are expired while it is paused", expired)
		}
		testenv.Must(second.operations.Resume(t.Context(), op.ID, ""))(t)
		second.work(t, w)
		if got := second.get(t, op.ID); got.Status != orchestrator.Completed || got.Progress.Done != letters || w.counts(t).Expired != letters {
			t.Errorf("%+v, and %+v", got, w.counts(t))
		}
		for name, command := range map[string]func() error{
			"pause":  func() error { _, err := second.operations.Pause(t.Context(), op.ID, ""); return err },
			"resume": func() error { _, err := second.operations.Resume(t.Context(), op.ID, ""); return err },
		} {
			if err := command(); !errors.Is(err, ErrEnded) {
				t.Errorf("%s at the end: %v", name, err)
			}
		}
	})
}

// sweepFor advances the time, with a sweep every hour, and handles signals.
func (w *world) sweepFor(t *testing.T, p *process, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		testenv.Must(p.runtime.Sweep(t.Context(), 100))(t)
		p.work(t, w)
		<-time.After(time.Hour)
	}
}

// A paused operation that is canceled ends, and does not change the rest.
func TestCancelWhilePaused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.bury(t, 25, nil)
		p := w.process(t, nil)
		op := p.slow(t)
		p.pauseInFirst(t, w, op.ID)
		testenv.Must(p.operations.Cancel(t.Context(), op.ID, "enough"))(t)
		p.work(t, w)
		if got := p.get(t, op.ID); got.Status != orchestrator.Canceled || got.Progress.Done != 10 || w.counts(t).Expired != 10 {
			t.Errorf("%+v, and %+v", got, w.counts(t))
		}
	})
}

// A canary that fails while the operation is paused ends the operation after it was resumed.
func TestPauseInTheCanary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.bury(t, 5, nil)
		p := w.process(t, nil)
		op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionRetry, Engine: "hmac", Canary: 2, CanarySeconds: 300}, "", "corr")
		testenv.OK(t, err)
		p.work(t, w)
		testenv.Must(p.operations.Pause(t.Context(), op.ID, ""))(t)
		for range 30 {
			p.work(t, w)
		}
		if got := p.get(t, op.ID); got.Status != orchestrator.Suspended || got.Progress.Done != 2 || w.counts(t).Pending != 3 {
			t.Errorf("%+v, and %+v", got, w.counts(t))
		}
		testenv.Must(p.operations.Resume(t.Context(), op.ID, ""))(t)
		p.work(t, w)
		if got := p.get(t, op.ID); got.Status != orchestrator.Completed || got.Progress.Done != 5 {
			t.Errorf("%+v", got)
		}
	})
}

// lister returns a filled catalog of a process's runtime.
func (w *world) lister(t *testing.T, p *process) Lister {
	t.Helper()
	c, err := catalog.New(catalog.Config{Tables: w.tables, Runtime: func() *orchestrator.Runtime { return p.runtime }})
	testenv.OK(t, err)
	t.Cleanup(c.Close)
	testenv.OK(t, c.Prepare(t.Context()))
	all, _, err := p.runtime.List(t.Context(), orchestrator.Filter{}, 1000, "")
	for _, s := range all {
		c.Record(orchestrator.StatusChange{ID: s.ID, Orchestrator: s.Orchestrator, CorrelationID: s.CorrelationID, CreatedAt: s.CreatedAt, Status: s.Status})
	}
	testenv.OK(t, err)
	testenv.OK(t, c.Flush(t.Context()))
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

// A list has the selected operations of all kinds, the newest first, for pages of any length; and nothing that only
// resembles one.
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
			testenv.OK(t, err)
			<-time.After(time.Second)
			newest = append([]Operation{op}, newest...)
			if n == 5 { // the previous ones have ended
				p.work(t, w)
			}
		}
		for id, name := range map[string]string{DeadLetterKind + "-mine": DeadLetterKind, OutboxKind + "-" + uuid.NewString(): "short"} {
			testenv.Must(p.runtime.Start(t.Context(), orchestrator.Start{ID: id, Orchestrator: name, Input: []byte("{}")}))(t)
		}
		damaged := OutboxKind + "-" + uuid.NewString()
		testenv.Must(p.runtime.Start(t.Context(), orchestrator.Start{ID: damaged, Orchestrator: OutboxKind, Input: []byte("7")}))(t)
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
				testenv.Equal(t, fmt.Sprintf("%s, %d a page", name, limit), want, p.pages(t, list, test.filter, limit))
			}
		}
	})
}

// One list reads a bounded number, however few match; and it reports read errors.
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
