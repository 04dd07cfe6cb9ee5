package orchestrator

// The peers' checks of executions and of the custom status, by their names. By other tests:
//
//	custom_status  the limit, and what exceeds it   TestCustomStatus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/tables"
)

func TestMultiExecution(t *testing.T) {
	t.Parallel()
	// failing ends its first executions with an error, after a step that completes.
	failing := func(l *ledger, failures int) (*Orchestrator[int, int], []AnyActivity) {
		step := l.step("step")
		doubtful := NewActivity("doubtful", func(_ context.Context, n int) (int, error) {
			if l.add("doubtful") <= failures {
				return 0, errors.New("not yet")
			}
			return n, nil
		})
		return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			v, err := step.Call(ctx, n).Await()
			if err != nil {
				return 0, err
			}
			return doubtful.Call(ctx, v).Await()
		}), []AnyActivity{step, doubtful}
	}
	// Each execution has its own calls and its own rounds.
	t.Run("isolation", func(t *testing.T) {
		t.Parallel()
		w, l := newWorld(t), &ledger{}
		o, activities := failing(l, 1)
		for range 2 {
			mustRun(t, w.process(t, nil, o, activities...), startOf("a", 1))
		}
		out := mustGet(t, w.process(t, nil, o), "a")
		first := out.Earlier[0]
		if first.Status != Failed || len(first.Calls) != 2 || first.Calls[1].Failure == nil || first.Calls[1].Output != nil {
			t.Errorf("first: %+v", first)
		}
		if out.Status != Completed || len(out.Calls) != 2 || out.Calls[1].Failure != nil || out.Calls[1].Reused || !out.Calls[0].Reused {
			t.Errorf("second: %+v", out)
		}
		if l.count("step(1)") != 1 {
			t.Errorf("calls %v", l.all())
		}
	})
	t.Run("latest_detection", func(t *testing.T) {
		t.Parallel()
		w, l := newWorld(t), &ledger{}
		o, activities := failing(l, 11)
		for n := 1; n <= 12; n++ { // beyond nine, so that the order of the rows' keys counts
			mustRun(t, w.process(t, nil, o, activities...), startOf("a", 1))
			out := mustGet(t, w.process(t, nil, o), "a")
			if out.Execution != n || len(out.Earlier) != n-1 || w.status(t, "a").Int("Execution") != int64(n) {
				t.Fatalf("execution %d of %d, %d earlier", out.Execution, n, len(out.Earlier))
			}
		}
		if out := mustGet(t, w.process(t, nil, o), "a"); out.Status != Completed || l.count("step(1)") != 1 {
			t.Errorf("%s, calls %v", out.Status, l.all())
		}
	})
	t.Run("id_sequencing", func(t *testing.T) {
		t.Parallel()
		w, l := newWorld(t), &ledger{}
		o, activities := failing(l, 3)
		for range 4 {
			mustRun(t, w.process(t, nil, o, activities...), startOf("a", 1))
		}
		for i, g := range w.stored(t, "a") {
			if started, ok := g.start(); g.number != i+1 || !ok || started.start().Base != 1 {
				t.Errorf("%dth execution: %d, base %d", i+1, g.number, started.start().Base)
			}
			calls := 0
			for _, r := range g.rounds {
				for _, e := range r.Decided {
					if e.Task == 0 {
						continue
					}
					if calls++; e.Task != calls {
						t.Errorf("execution %d: call %d has the number %d", g.number, calls, e.Task)
					}
				}
			}
		}
	})
	t.Run("continue_as_new_creates_new_execution", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
			if n < 3 {
				return "", ContinueAsNew(n + 1)
			}
			return fmt.Sprint(ctx.Execution(), " ", n, " ", ctx.CorrelationID()), nil
		})
		s := startOf("a", 1)
		s.Carry = []byte("carried")
		out := mustRun(t, w.process(t, nil, o), s)
		if string(out.Output) != `"3 3 corr"` || string(out.Input) != "3" || string(out.Carry) != "carried" || len(out.Earlier) != 0 {
			t.Errorf("%+v", out)
		}
		for i, g := range w.stored(t, "a") {
			started, _ := g.start()
			if string(started.Payload) != fmt.Sprint(i+1) || started.start().Base != i+1 || len(g.rounds) != 1 {
				t.Errorf("execution %d began with %s, base %d, in %d rounds", g.number, started.Payload, started.start().Base, len(g.rounds))
			}
		}
	})
	// The rows of an execution stay as they are, regardless of later ones.
	t.Run("history_persists", func(t *testing.T) {
		t.Parallel()
		w, l := newWorld(t), &ledger{}
		o, activities := failing(l, 2)
		var before []tables.Entity
		for range 3 {
			mustRun(t, w.process(t, nil, o, activities...), startOf("a", 1))
			rows := w.rows(t, "a")
			rows = slices.DeleteFunc(rows, func(e tables.Entity) bool { return !strings.HasPrefix(e.Row, roundPrefix) })
			if len(rows) <= len(before) {
				t.Fatalf("%d rows after %d", len(rows), len(before))
			}
			if diff := cmp.Diff(before, rows[:len(before)]); len(before) > 0 && diff != "" {
				t.Errorf("earlier rounds (-before +after):\n%s", diff)
			}
			before = rows
		}
	})
}

func TestCustomStatusOfAnOrchestration(t *testing.T) {
	t.Parallel()
	// Each event sets the status to its text, or leaves it unchanged without one.
	o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
		for range 3 {
			v, err := Event[*string](ctx, "say").Await()
			if err != nil {
				return 0, err
			}
			if v == nil {
				continue
			}
			if err := ctx.SetStatus(*v); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	run := func(t *testing.T, events ...string) (*world, []string) {
		t.Helper()
		w := newWorld(t)
		mustRun(t, w.signalling(t, nil, []AnyOrchestrator{o}, nil), startOf("a", 1))
		seen := []string{w.status(t, "a").String("CustomStatus")}
		for i, data := range events {
			// Each by another process, so that only the rounds count.
			noError(t, errorOf(w.signalling(t, nil, []AnyOrchestrator{o}, nil).Deliver(t.Context(), eventSignal("a", fmt.Sprint(i), "say", data))))
			seen = append(seen, w.status(t, "a").String("CustomStatus"))
		}
		w.stored(t, "a")
		return w, seen
	}
	for name, tt := range map[string]struct{ events, want []string }{
		"default":        {nil, []string{""}},
		"set":            {[]string{`"one"`, `"two"`}, []string{"", `"one"`, `"two"`}},
		"none_preserves": {[]string{`"one"`, `null`, `null`}, []string{"", `"one"`, `"one"`, `"one"`}},
		"no_change":      {[]string{`null`}, []string{"", ""}},
		"clear":          {[]string{`"one"`, `""`}, []string{"", `"one"`, `""`}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				if _, seen := run(t, tt.events...); cmp.Diff(tt.want, seen) != "" {
					t.Errorf("(-want +got):\n%s", cmp.Diff(tt.want, seen))
				}
			})
		})
	}
	// A poller detects changes from StateVersion alone.
	t.Run("version_increments", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		mustRun(t, rt, startOf("a", 1))
		for n := range 3 {
			before := w.status(t, "a").Int("StateVersion")
			signal := eventSignal("a", fmt.Sprint(n), "say", `"x"`)
			for range 2 { // the second is the same, and changes nothing
				noError(t, errorOf(rt.Deliver(t.Context(), signal)))
			}
			if got := w.status(t, "a").Int("StateVersion"); got != before+1 {
				t.Errorf("version %d after %d", got, before)
			}
		}
	})
	t.Run("nonexistent", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if _, err := w.signalling(t, nil, []AnyOrchestrator{o}, nil).Get(t.Context(), "nobody"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "nobody") {
			t.Errorf("%v", err)
		}
		if _, err := w.tables.Get(t.Context(), "orchestrations", tables.Key{Partition: "nobody", Row: statusRow}); !errors.Is(err, tables.ErrNotFound) {
			t.Errorf("%v", err)
		}
	})
}
