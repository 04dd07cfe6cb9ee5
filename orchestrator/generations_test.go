package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// names returns the names of all blobs.
func (w *world) names(t *testing.T) []string {
	t.Helper()
	var names []string
	for name, err := range blobs.All(t.Context(), w.blobs, "orchestrations", "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// An orchestration that continues as new repeatedly keeps as many blobs as it has executions that count, in one
// process and in one after the other.
func TestBlobsOfOldExecutionsGo(t *testing.T) {
	bulky(t)
	t.Parallel()
	for _, everyTime := range []bool{false, true} {
		t.Run(fmt.Sprint("a process each ", everyTime), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t)
				big := NewActivity("big", func(_ context.Context, n int) (string, error) {
					return fmt.Sprint(n) + strings.Repeat("x", 100<<10), nil
				})
				make := func() *Runtime {
					return w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
						if _, err := big.Call(ctx, n).Await(); err != nil {
							return 0, err
						}
						if everyTime {
							if err := ctx.Sleep(time.Hour); err != nil {
								return 0, err
							}
						}
						if n < 200 {
							return 0, ContinueAsNew(n + 1)
						}
						return n, nil
					})}, []AnyActivity{big})
				}
				mustRun(t, make(), startOf("a", 1))
				most := 0
				for everyTime && !w.ended(t, make()) {
					time.Sleep(time.Hour + time.Minute)
					w.deliverDue(t, make())
					most = max(most, len(w.names(t)))
				}
				if out := mustGet(t, make(), "a"); string(out.Output) != "200" {
					t.Fatalf("%s %s %v", out.Status, out.Output, out.Failure)
				}
				if most = max(most, len(w.names(t))); most > 4 { // the first is kept, as its input is; the last two; one on its way
					t.Errorf("%d blobs", most)
				}
				w.stored(t, "a")
			})
		})
	}
}

// A repeated signal is recognised, regardless of later signals and continuations as new, for the promised time.
func TestSignalsAreKnownForATime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		twice bool
	}{"at once": {0, false}, "within the horizon": {SignalHorizon - 2*time.Hour, false}, "behind it": {SignalHorizon + 2*time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t)
				rt := w.signalling(t, nil, []AnyOrchestrator{numberLoop(113)}, nil)
				mustRun(t, rt, startOf("a", []int{}))
				for i := range 111 {
					raise(t, w, "a", i, 0)
				}
				w.settle(t, rt)
				time.Sleep(c.after)
				raise(t, w, "a", 200, 0)
				w.settle(t, rt)
				again := w.learnedNumbers(t, rt)
				raise(t, w, "a", 0, 0)
				w.settle(t, rt)
				if got := w.learnedNumbers(t, rt) > again; got != c.twice {
					t.Errorf("applied again: %v", got)
				}
			})
		})
	}
}

// learnedNumbers returns how many numbers orchestration a has read.
func (w *world) learnedNumbers(t *testing.T, rt *Runtime) int {
	t.Helper()
	out := mustGet(t, rt, "a")
	if out.Ended() {
		return 113
	}
	return strings.Count(string(out.Input), ",") + 1
}

// Rows that are loaded by several requests, between which others commit, are no damage.
func TestRoundsThatAreCommittedBetweenTwoPages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			for range 4 {
				v, err := Event[int](ctx, "number").Await()
				if err != nil {
					return 0, err
				}
				n += v
			}
			return n, nil
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step})
		mustRun(t, rt, startOf("a", 0))
		raise(t, w, "a", 1, 0)
		w.settle(t, rt)
		next := 2
		slow := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step})
		slow.journal.tables = inPages{slow.journal.tables, func(row string) { // after the last round, and before the status
			if next < 4 && row == roundKey(1, int(w.status(t, "a").Int("StateVersion"))) {
				raise(t, w, "a", next, 0)
				next++
				w.settle(t, rt)
			}
		}}
		out, err := slow.Get(t.Context(), "a")
		if err != nil || out.Status != Running || next != 4 {
			t.Errorf("%s, %d events: %v", out.Status, next, err)
		}
		// Permanent damage is detected immediately.
		w.apply(t, tables.Delete(tables.Key{Partition: "a", Row: roundKey(1, 2)}, ""))
		if _, err := slow.Get(t.Context(), "a"); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v", err)
		}
	})
}

// inPages answers a query row by row, and calls between in between.
type inPages struct {
	tables.Store
	between func(row string)
}

func (s inPages) Query(ctx context.Context, table string, q tables.Query) (tables.Page, error) {
	q.Limit = 1
	page, err := s.Store.Query(ctx, table, q)
	if page.Next != "" && len(page.Entities) > 0 {
		s.between(page.Entities[0].Row)
	}
	return page, err
}

// An export holds every complete execution, with the contents of its blobs.
func TestExportOfOlderExecutions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		big := NewActivity("big", func(_ context.Context, n int) (string, error) {
			return fmt.Sprint(n) + strings.Repeat("x", spillFrom), nil
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			s, err := big.Call(ctx, n).Await()
			if err == nil && n < 4 {
				return 0, ContinueAsNew(n + len(s)/spillFrom)
			}
			return n, err
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{big})
		for i := range 3 {
			if i == 0 {
				mustRun(t, rt, startOf("a", 1))
			} else if err := errorOf(rt.Restart(t.Context(), "a", fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
			w.settle(t, rt)
		}
		history, err := rt.Export(t.Context(), "a")
		noError(t, errors.Join(err, Replay(o, history)))
		if n := strings.Count(string(history), `"execution": `); n < 4 {
			t.Errorf("%d executions", n)
		}
	})
}
