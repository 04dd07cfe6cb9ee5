package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/tables"
)

// ids returns the ids of all orchestrations.
func (w *world) ids(t *testing.T, rt *Runtime) (ids []string) {
	t.Helper()
	for _, s := range w.all(t, rt) {
		ids = append(ids, s.ID)
	}
	return ids
}

// The sub-orchestrations of an endless orchestration are purged like its rounds, and it continues. Those with ids of
// their own may be called again: they remain as long as it does.
func TestForgottenChildrenArePurged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) { return step.Call(ctx, n).Await() })
		middle := NewOrchestrator("middle", func(ctx *Context, n int) (int, error) { return child.Call(ctx, n).Await() })
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			if _, err := All(middle.Call(ctx, n), child.Call(ctx, n, WithID(fmt.Sprint("own", n%2)))); err != nil {
				return 0, err
			}
			if _, err := Event[int](ctx, "next").Await(); err != nil {
				return 0, err
			}
			return 0, ContinueAsNew(n + 1)
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o, middle, child}, []AnyActivity{step})
		mustRun(t, rt, startOf("a", 1))
		for range 9 {
			w.attend(t, rt, time.Hour)
			noError(t, rt.Raise(t.Context(), "a", "next", 1, ""))
		}
		w.attend(t, rt, time.Hour)
		stored := map[int]bool{}
		for _, g := range w.stored(t, "a") {
			stored[g.number] = true
		}
		before := w.ids(t, rt)
		purge := func(f Filter) int {
			t.Helper()
			total, _ := purgeAll(t, rt, f, 2)
			return total.Orchestrations
		}
		if n := purge(Filter{EndedBefore: time.Now().Add(-48 * time.Hour)}); n != 0 {
			t.Errorf("%d went that have just ended", n)
		}
		if purge(Filter{EndedBefore: time.Now().Add(time.Hour), TopLevel: true}) != 0 {
			t.Error("sub-orchestrations went, and those on top were meant")
		}
		purged := purge(Filter{EndedBefore: time.Now().Add(time.Hour)})
		want := slices.DeleteFunc(slices.Clone(before), func(id string) bool {
			var execution int
			_, err := fmt.Sscanf(id, "a:%d-", &execution)
			return err == nil && !stored[execution]
		})
		if diff := cmp.Diff(want, w.ids(t, rt)); diff != "" || len(stored) >= 10 || purged != 10-len(stored) {
			t.Errorf("%d purged, %d executions of 10 are stored (-want +got):\n%s", purged, len(stored), diff)
		}
		w.replays(t, rt)
		noError(t, rt.Raise(t.Context(), "a", "next", 1, ""))
		w.attend(t, rt, time.Hour)
		if s := mustGet(t, rt, "a"); s.Execution != 11 || s.Status != Running {
			t.Errorf("%s in execution %d", s.Status, s.Execution)
		}
		noError(t, rt.Terminate(t.Context(), "a", ""))
		w.attend(t, rt, time.Hour)
		purge(Filter{EndedBefore: time.Now().Add(time.Hour)})
		purge(Filter{EndedBefore: time.Now().Add(time.Hour)}) // the rows before its caller
		if ids := w.ids(t, rt); len(ids) > 0 {
			t.Errorf("left: %q", ids)
		}
		if n := w.waitingMessages(t); n > 0 {
			t.Errorf("%d messages are for nobody", n)
		}
	})
}

// A damaged sub-orchestration blocks nothing, and one that has not ended remains.
func TestForgottenChildrenThatStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rt := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(*Context, int) (int, error) { return 1, nil }),
		NewOrchestrator("waits", func(ctx *Context, _ int) (int, error) { return Event[int](ctx, "never").Await() })}, nil)
	for _, id := range []string{"bad", "good"} {
		s := startOf(id, 1)
		s.Parent = "gone"
		mustRun(t, rt, s)
	}
	waits := startOf("waits", 1)
	waits.Parent, waits.Orchestrator = "gone", "waits"
	mustRun(t, rt, waits)
	w.apply(t, tables.Upsert(tables.Entity{Key: tables.Key{Partition: "bad", Row: roundKey(1, 1)}, Properties: map[string]any{columnEncoding: "none"}}))
	if n, _ := purgeAll(t, rt, Filter{}, 2); n.Orchestrations != 1 || strings.Join(w.ids(t, rt), " ") != "bad waits" {
		t.Errorf("%+v purged, %q are left", n, w.ids(t, rt))
	}
}

// The id contains the calling execution, unless the id was given.
func TestCallerOf(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]int{"p:3-child-aa-1": 3, "p:12-child-aa-1": 12, "p:0-child-aa-1": 0, "p:x-child-aa-1": 0, "p:3-other-aa-1": 0,
		"q:3-child-aa-1": 0, "p:3": 0, "p": 0, "own": 0, "p:-3-child-aa-1": 0, "p:3-child-": 0} {
		if got, ok := callerOf(Summary{ID: id, Parent: "p", Orchestrator: "child"}); got != want && ok || ok != (want > 0) {
			t.Errorf("%s: %d %v", id, got, ok)
		}
	}
}
