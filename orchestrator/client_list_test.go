package orchestrator

// The client's List, Status, Wait and PurgeAll. The peers' checks of management, bulk_deletion and prune, by their
// names. Not here: queue depths and metrics belong to the host and Counts.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// crowd makes orchestrations that differ in everything that a filter checks, a minute apart: of every ten, some have
// completed, failed, wait or are pending.
func crowd(t *testing.T, n int) (*office, *Runtime) {
	t.Helper()
	o := parentOffice(t)
	bad := NewOrchestrator("bad", func(*Context, int) (int, error) { return 0, Permanent(errors.New("no")) })
	o.orchestrators = append(o.orchestrators, other(), bad)
	rt := o.open(t, nil)
	for i := range n {
		s := startOf(fmt.Sprintf("/subscriptions/%02d/x", i), i)
		s.CorrelationID = fmt.Sprint("corr", i%3)
		s.Orchestrator = []string{"other", "bad", "test", "test", "other"}[i%5]
		noError(t, errorOf(rt.Start(t.Context(), s)))
		if i%5 != 3 { // stays pending
			for o.deliver(t.Context(), t, rt) {
			}
		} else if _, m, ok := o.receive(t, time.Minute); ok {
			noError(t, o.queues.Delete(t.Context(), signalQueue, m.ID, m.PopReceipt))
		}
		time.Sleep(time.Minute)
	}
	return o, rt
}

// pages lists everything, page by page, and checks the pages' shape.
func pages(t *testing.T, rt *Runtime, f Filter, limit int) []Summary {
	t.Helper()
	var all []Summary
	for next, first := "", true; first || next != ""; first = false {
		page, then, err := rt.List(t.Context(), f, limit, next)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > limit || len(page) == 0 && then != "" {
			t.Errorf("a page of %d, limit %d, goes on: %v", len(page), limit, then != "")
		}
		all, next = append(all, page...), then
	}
	return all
}

func TestList(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 30
		begin := time.Now()
		_, rt := crowd(t, n)
		everything := pages(t, rt, Filter{}, 1000)
		if want := n + n/5; len(everything) != want { // and the children of the waiting ones
			t.Fatalf("%d of %d", len(everything), want)
		}
		if !slices.IsSortedFunc(everything, func(a, b Summary) int { return strings.Compare(tables.EscapeKey(a.ID), tables.EscapeKey(b.ID)) }) {
			t.Error("they are not in order")
		}
		for name, tt := range map[string]struct {
			filter Filter
			fits   func(Summary) bool
			want   int
		}{
			"all":            {Filter{}, func(Summary) bool { return true }, 36},
			"a prefix":       {Filter{Prefix: "/subscriptions/1"}, func(s Summary) bool { return strings.HasPrefix(s.ID, "/subscriptions/1") }, 12},
			"another prefix": {Filter{Prefix: "subscriptions"}, nil, 0},
			"orchestrator":   {Filter{Orchestrator: "bad"}, func(s Summary) bool { return s.Orchestrator == "bad" }, 6},
			"correlation":    {Filter{CorrelationID: "corr1"}, func(s Summary) bool { return s.CorrelationID == "corr1" }, 12},
			"by_status":      {Filter{Statuses: []Status{Failed}}, func(s Summary) bool { return s.Status == Failed && s.ErrorCode != "" }, 6},
			"by two states":  {Filter{Statuses: []Status{Failed, Pending}}, func(s Summary) bool { return s.Status == Failed || s.Status == Pending }, 12},
			"on top":         {Filter{TopLevel: true}, func(s Summary) bool { return s.Parent == "" }, 30},
			"created":        {Filter{CreatedFrom: begin.Add(10 * time.Minute), CreatedTo: begin.Add(20 * time.Minute)}, nil, 12},
			"ended before":   {Filter{EndedBefore: begin.Add(15 * time.Minute)}, func(s Summary) bool { return s.Ended() && s.EndedAt.Before(begin.Add(15*time.Minute)) }, 9},
			"several":        {Filter{Prefix: "/subscriptions/2", Orchestrator: "other", CorrelationID: "corr0", Statuses: []Status{Completed}}, nil, 1},
		} {
			for _, limit := range []int{1, 3, 1000} {
				got := pages(t, rt, tt.filter, limit)
				var want []Summary
				for _, s := range everything {
					if tt.fits != nil && tt.fits(s) {
						want = append(want, s)
					}
				}
				if diff := cmp.Diff(want, got); len(got) != tt.want || tt.fits != nil && diff != "" {
					t.Errorf("%s, pages of %d: %d, not %d (-want +got):\n%s", name, limit, len(got), tt.want, diff)
				}
			}
		}
		for _, limit := range []int{0, -1, maxList + 1} {
			if _, _, err := rt.List(t.Context(), Filter{}, limit, ""); err == nil {
				t.Errorf("a page of %d is given", limit)
			}
		}
		if _, _, err := rt.List(t.Context(), Filter{}, 1, "nonsense"); err == nil {
			t.Error("any continuation is taken")
		}
	})
}

// Ids with characters that keys cannot hold are listed unchanged, and found by their prefixes.
func TestListOfAwkwardIDs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := eventOffice(t)
		rt := o.open(t, nil)
		ids := []string{"a", "a/b", "a/b/c", "a\\b", "a#b", "a?b", "a%2Fb", "a=2Fb", "a~b", "~a", "zürich/日本", "a'b"}
		for _, id := range ids {
			o.start(t, rt, startOf(id, 1))
		}
		for _, prefix := range []string{"", "a", "a/", "a/b", "a%", "zürich/", "z", "~", "a'"} {
			var want, got []string
			for _, id := range ids {
				if strings.HasPrefix(id, prefix) {
					want = append(want, id)
				}
			}
			for _, s := range pages(t, rt, Filter{Prefix: prefix}, 2) {
				got = append(got, s.ID)
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("prefix %q (-want +got):\n%s", prefix, diff)
			}
		}
	})
}

func TestStatus(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := newOffice(t)
		o.orchestrators = []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			if err := ctx.SetStatus(n); err != nil {
				return 0, err
			}
			if Any(ctx, Event[int](ctx, "number"), Timer(ctx, time.Hour)) == 1 {
				return 0, errors.New("too late")
			}
			return n, nil
		}, WithVersion("v2"))}
		plan := &faults.Plan{}
		rt := o.open(t, plan)
		_, err := rt.Status(t.Context(), "a")
		isError(t, "of nobody", err, ErrNotFound)
		begin := time.Now()
		o.start(t, rt, startOf("a", 7))
		before := len(plan.Calls())
		got, err := rt.Status(t.Context(), "a")
		isError(t, "status", err, nil)
		wants(t, "transactions", len(plan.Calls())-before, 1)
		want := Summary{ID: "a", Orchestrator: "test", Version: "v2", CorrelationID: "corr", TenantID: "contoso", Status: Running, Execution: 1, StateVersion: 2,
			CustomStatus: "7", WaitingKind: "Event", WaitingToken: "1-1", WaitingUntil: got.WaitingUntil, Busy: true, CreatedAt: got.CreatedAt, UpdatedAt: got.UpdatedAt}
		if diff := cmp.Diff(want, got); diff != "" || !got.WaitingUntil.Truncate(time.Second).Equal(begin.Add(time.Hour)) || got.CreatedAt.Before(begin) || got.UpdatedAt.Before(begin) || got.Ended() {
			t.Errorf("%+v (-want +got):\n%s", got, diff)
		}
		o.settle(t, rt)
		got, err = rt.Status(t.Context(), "a")
		if err != nil || got.Status != Failed || !got.Ended() || got.ErrorCode == "" || got.WaitingKind != "" || got.WaitingToken != "" || !got.WaitingUntil.IsZero() {
			t.Errorf("%+v %v", got, err)
		}
	})
}

func TestWait(t *testing.T) {
	t.Parallel()
	inBubbles(t, map[string]func(*testing.T){
		"for the end": func(t *testing.T) {
			o := eventOffice(t)
			plan := &faults.Plan{}
			rt := o.open(t, nil)
			noError(t, errorOf(rt.Start(t.Context(), startOf("a", 1))))
			done := make(chan ran, 1)
			waiting := o.open(t, plan)
			go func() {
				out, err := waiting.Wait(t.Context(), "a")
				done <- ran{out, err}
			}()
			time.Sleep(time.Minute)
			o.rest(t, rt)
			time.Sleep(time.Hour)
			isError(t, "raise", rt.Raise(t.Context(), "a", "number", 7, ""), nil)
			o.rest(t, rt)
			ended := time.Now()
			got := <-done
			if got.err != nil || got.out.Status != Completed || string(got.out.Output) != "8" {
				t.Errorf("%+v", got)
			}
			if late, looks := time.Since(ended), len(plan.Calls()); late > 2*waitMost || looks > int(2*(61*time.Minute)/waitMost)+20 {
				t.Errorf("it is told after %v and %d looks", late, looks)
			}
		},
		"how it ended": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			s := startOf("a", 1)
			s.Orchestrator = "bad"
			o.start(t, rt, s)
			begin := time.Now()
			out, err := rt.Wait(t.Context(), "a")
			if err != nil || out.Status != Failed || out.Failure == nil || time.Since(begin) != 0 {
				t.Errorf("%+v %v", out, err)
			}
		},
		"until the time is over": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			o.start(t, rt, startOf("a", 1))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begin := time.Now()
			out, err := rt.Wait(ctx, "a")
			isError(t, "wait", err, context.DeadlineExceeded)
			if out.Status != Running || len(out.Calls) != 2 || time.Since(begin) != time.Minute {
				t.Errorf("%+v after %v", out, time.Since(begin))
			}
			cancel()
			if out, err = rt.Wait(ctx, "a"); err == nil || out.Status != Running {
				t.Errorf("%+v %v", out, err)
			}
		},
		"for one that goes": func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			_, err := rt.Wait(t.Context(), "a")
			isError(t, "of nobody", err, ErrNotFound)
			ctx, cancel := context.WithCancelCause(t.Context())
			cause := errors.New("the caller has gone")
			cancel(cause)
			_, err = rt.Wait(ctx, "a")
			isError(t, "of nobody, for no time", err, cause)
		},
	})
}

// purgeAll calls PurgeAll until the end.
func purgeAll(t *testing.T, rt *Runtime, f Filter, limit int) (total Purged, calls int) {
	t.Helper()
	for next, first := "", true; first || next != ""; first = false {
		p := must(rt.PurgeAll(t.Context(), f, limit, next))(t)
		total.Orchestrations, total.Active, next, calls = total.Orchestrations+p.Orchestrations, total.Active+p.Active, p.Continuation, calls+1
		if p.Orchestrations+p.Active > limit {
			t.Errorf("a slice of %+v", p)
		}
	}
	return total, calls
}

func TestPurgeAll(t *testing.T) {
	t.Parallel()
	ids := func(t *testing.T, rt *Runtime) []string {
		t.Helper()
		var all []string
		for _, s := range pages(t, rt, Filter{TopLevel: true}, 100) {
			all = append(all, strings.TrimSuffix(strings.TrimPrefix(s.ID, "/subscriptions/"), "/x"))
		}
		return all
	}
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of every bubble
	for name, tt := range map[string]struct {
		filter Filter
		want   Purged
		left   []string
	}{
		"everything, active are left": {Filter{}, Purged{Orchestrations: 6, Active: 4}, []string{"02", "03", "07", "08"}},
		"filters":                     {Filter{Orchestrator: "other", CorrelationID: "corr0"}, Purged{Orchestrations: 2}, []string{"01", "02", "03", "04", "05", "06", "07", "08"}},
		"completed_before":            {Filter{EndedBefore: begin.Add(5 * time.Minute)}, Purged{Orchestrations: 3}, []string{"02", "03", "05", "06", "07", "08", "09"}},
		"a prefix":                    {Filter{Prefix: "/subscriptions/06"}, Purged{Orchestrations: 1}, []string{"00", "01", "02", "03", "04", "05", "07", "08", "09"}},
		"prune safety, nothing fits":  {Filter{Prefix: "subscriptions"}, Purged{}, []string{"00", "01", "02", "03", "04", "05", "06", "07", "08", "09"}},
	} {
		for _, limit := range []int{1, 3, 1000} {
			t.Run(fmt.Sprintf("%s, limits %d", name, limit), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					_, rt := crowd(t, 10)
					got, calls := purgeAll(t, rt, tt.filter, limit)
					wants(t, "purged", got, tt.want)
					wants(t, "left", ids(t, rt), tt.left)
					const child = 1 // it is checked, too
					if most := (tt.want.Orchestrations+tt.want.Active+child)/limit + 1; calls > most {
						t.Errorf("%d calls, at most %d are needed", calls, most)
					}
				})
			})
		}
	}
	t.Run("with their sub-orchestrations", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			o := largeOffice(t)
			got, _ := purgeAll(t, o.open(t, nil), Filter{}, 10)
			wants(t, "purged", got, Purged{Orchestrations: 2})
			o.gone(t, "a")
			o.gone(t, "loose")
		})
	})
}

// A bulk purge that died anywhere continues with the same call, and leaves nothing behind.
func TestPurgeAllInterrupted(t *testing.T) {
	t.Parallel()
	everyFault(t, func(t *testing.T, plan *faults.Plan) {
		o := eventOffice(t)
		rt := o.open(t, nil)
		for i := range 3 {
			s := startOf(fmt.Sprint("p", i), 1)
			s.Orchestrator = "bad"
			o.start(t, rt, s)
		}
		o.start(t, rt, startOf("p9", 1)) // waits
		f := Filter{Prefix: "p", Statuses: []Status{Failed, Running}}
		next := ""
		dying := o.open(t, plan)
		for {
			p, err := dying.PurgeAll(t.Context(), f, 2, next)
			if err != nil {
				if p.Continuation != next {
					t.Errorf("the same call would go on elsewhere: %q, not %q", p.Continuation, next)
				}
				break
			}
			if next = p.Continuation; next == "" {
				break
			}
		}
		for first := true; first || next != ""; first = false { // the same call, and those that follow
			p := must(rt.PurgeAll(t.Context(), f, 2, next))(t)
			next = p.Continuation
		}
		if total, _ := purgeAll(t, rt, f, 2); total.Active != 1 {
			t.Errorf("%+v", total)
		}
		for i := range 3 {
			o.gone(t, fmt.Sprint("p", i))
		}
		wants(t, "the one that waits", mustGet(t, rt, "p9").Status, Running)
	})
}
