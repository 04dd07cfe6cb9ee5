package orchestrator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

// family starts "a" with a sub-orchestration and a human task that wait, and the unrelated "b" and "a:b".
func (c *clinic) family(t *testing.T, rt *Runtime) {
	t.Helper()
	c.start(t, rt, startOf("a", 7))
	c.admit(t, rt, false, "b", "a:b")
	if out := mustGet(t, rt, "a"); len(c.childrenOf(t, rt)) != 1 || len(c.openTasks(t, rt)) != 1 {
		t.Fatalf("%s %v: children %v, tasks %v", out.Status, out.Failure, c.childrenOf(t, rt), c.openTasks(t, rt))
	}
}

// childrenOf returns the sub-orchestrations of "a".
func (c *clinic) childrenOf(t *testing.T, rt *Runtime) []string {
	t.Helper()
	list, _, err := rt.List(t.Context(), Filter{}, 100, "")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range list {
		if s.Parent == "a" {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func (c *clinic) openTasks(t *testing.T, rt *Runtime) []tasks.Task {
	t.Helper()
	page := must(rt.Tasks().List(t.Context(), tasks.Filter{}, 100, ""))(t)
	return page.Tasks
}

// isPurged checks that nothing is left of "a" and its own, and that the others are unchanged.
func (c *clinic) isPurged(t *testing.T, rt *Runtime, others ...[]tables.Entity) {
	t.Helper()
	if rows := c.rows(t, "a"); len(rows) != 0 {
		t.Errorf("%d rows are left", len(rows))
	}
	if left := c.blobsOf(t, "a"); len(left) > len(c.blobsOf(t, "a:b")) {
		t.Errorf("%d blobs are left", len(left))
	}
	if children, open := c.childrenOf(t, rt), c.openTasks(t, rt); len(children)+len(open) > 0 {
		t.Errorf("children %v, tasks %v", children, open)
	}
	for _, rows := range others {
		c.unchanged(t, rows[0].Partition, rows)
	}
	wants(t, "known as damaged", knownDamaged(t, rt), "")
}

// After a forced purge, a damaged orchestration is gone with all that it had called, and its id is free.
func TestForcePurge(t *testing.T) {
	eachInjury(t, func(t *testing.T, c *clinic, hurt injury) {
		rt := c.open(t, nil)
		c.family(t, rt)
		hurt.do(t, c, "a")
		_, err := rt.Deliver(t.Context(), eventSignal("a", "e", "number", "1"))
		isError(t, "deliver", err, ErrCorrupt)
		b, ab := c.rows(t, "b"), c.rows(t, "a:b")
		isError(t, "forced purge", rt.ForcePurge(t.Context(), "a"), nil)
		c.isPurged(t, rt, b, ab)
		isError(t, "again", rt.ForcePurge(t.Context(), "a"), ErrNotFound)
		c.settle(t, rt) // the notification from the sub-orchestration
		c.isPurged(t, rt, b, ab)

		c.admit(t, rt, true, "a")
		wants(t, "started anew", mustGet(t, rt, "a").Execution, 1)
		isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
	})
}

// A forced purge treats a readable orchestration like Purge: it is purged when it has ended, and otherwise left alone.
func TestForcePurgeOfWhatCanBeRead(t *testing.T) {
	t.Parallel()
	inBubbles(t, map[string]func(*testing.T){
		"active": func(t *testing.T) {
			c := newClinic(t)
			rt := c.open(t, nil)
			c.family(t, rt)
			a := c.rows(t, "a")
			isError(t, "forced purge", rt.ForcePurge(t.Context(), "a"), ErrActive)
			c.unchanged(t, "a", a)
			wants(t, "children", len(c.childrenOf(t, rt)), 1)
		},
		"ended": func(t *testing.T) {
			c := newClinic(t)
			rt := c.open(t, nil)
			c.admit(t, rt, true, "a", "b")
			b := c.rows(t, "b")
			isError(t, "forced purge", rt.ForcePurge(t.Context(), "a"), nil)
			c.isPurged(t, rt, b)
		},
		"nobody": func(t *testing.T) {
			rt := newClinic(t).open(t, nil)
			isError(t, "forced purge", rt.ForcePurge(t.Context(), "a"), ErrNotFound)
			isError(t, "no id", rt.ForcePurge(t.Context(), ""), ErrNotFound)
		},
		"of a newer version": func(t *testing.T) {
			c := newClinic(t)
			rt := c.open(t, nil)
			c.admit(t, rt, true, "a", "b")
			alters(func(rows []tables.Entity) int { return len(rows) - 1 }, columnEncoding, "json;99")(t, c, "a")
			a := c.rows(t, "a")
			isError(t, "forced purge", rt.ForcePurge(t.Context(), "a"), ErrNewerSchema)
			p, err := rt.PurgeAll(t.Context(), Filter{}, 10, "")
			isError(t, "purge", err, nil)
			wants(t, "purged", p, Purged{Orchestrations: 1, Damaged: 1})
			c.unchanged(t, "a", a)
			wants(t, "known as damaged", knownDamaged(t, rt), "")
		},
		"a sub-orchestration that is to be left alone": func(t *testing.T) {
			c := newClinic(t)
			leaves := NewOrchestrator("leaves", func(ctx *Context, n int) (int, error) {
				child := NewOrchestrator("child", func(*Context, int) (int, error) { return 0, nil })
				return child.Call(ctx, n, WithParentClose(AbandonChild)).Await()
			})
			c.orchestrators = append(c.orchestrators, leaves)
			rt := c.open(t, nil)
			s := startOf("a", 1)
			s.Orchestrator = "leaves"
			c.start(t, rt, s)
			children := c.childrenOf(t, rt)
			loses(statusRow)(t, c, "a")
			isError(t, "forced purge", rt.ForcePurge(t.Context(), "a"), nil)
			if len(children) != 1 || mustGet(t, rt, children[0]).Status != Running {
				t.Errorf("%v", children)
			}
		},
	})
}

// A forced purge that died anywhere is invisible or has not begun. It continues when it is repeated, when all are
// purged, and when the id is started again. It never affects another orchestration.
func TestForcePurgeInterrupted(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"garbage in the last round", "the first round is missing", "the status is missing"} {
		for name, follow := range map[string]func(t *testing.T, c *clinic, rt *Runtime){
			"and repeated": func(t *testing.T, c *clinic, rt *Runtime) {
				t.Helper()
				if err := rt.ForcePurge(t.Context(), "a"); err != nil && !errors.Is(err, ErrNotFound) {
					t.Error(err)
				}
			},
			"and all are purged": func(t *testing.T, c *clinic, rt *Runtime) {
				t.Helper()
				begun := errors.Is(rt.Readable(t.Context(), "a"), ErrNotFound)
				p, err := rt.PurgeAll(t.Context(), Filter{Statuses: []Status{Failed}}, 10, "")
				if err != nil || p.Active != 0 {
					t.Errorf("%+v %v", p, err)
				}
				if !begun {
					isError(t, "forced purge", rt.ForcePurge(t.Context(), "a"), nil)
				}
				c.mustSweep(t, rt) // which forgets that it was damaged
			},
			"and started again": func(t *testing.T, c *clinic, rt *Runtime) {
				t.Helper()
				if errors.Is(rt.Readable(t.Context(), "a"), ErrCorrupt) {
					isError(t, "forced purge", rt.ForcePurge(t.Context(), "a"), nil)
				}
				c.admit(t, rt, true, "a")
				c.stored(t, "a")
				isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
				c.mustSweep(t, rt)
			},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				everyFault(t, func(t *testing.T, plan *faults.Plan) {
					c := newClinic(t)
					rt := c.open(t, nil)
					c.family(t, rt)
					injuries()[kind].do(t, c, "a")
					b, ab := c.rows(t, "b"), c.rows(t, "a:b")
					_ = c.open(t, plan).ForcePurge(t.Context(), "a") // it may die
					plan.Wait()
					if err := rt.Readable(t.Context(), "a"); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNotFound) {
						t.Errorf("in the middle: %v", err)
					}
					follow(t, c, rt)
					c.isPurged(t, rt, b, ab)
				})
			})
		}
	}
}

// A forced purge that is paused anywhere, while another one finishes and the id is started again, leaves the new
// orchestration alone.
func TestForcePurgeRace(t *testing.T) {
	eachInjury(t, func(t *testing.T, c *clinic, hurt injury) {
		for pausedAt := 1; ; pausedAt++ {
			if !sample.Keep(t, pausedAt) {
				continue
			}
			rt := c.open(t, nil)
			c.start(t, rt, startOf("a", 7))
			hurt.do(t, c, "a")
			reached, goOn := make(chan struct{}), make(chan struct{})
			calls := 0
			slow := c.over(t, func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
				if calls++; calls == pausedAt {
					close(reached)
					<-goOn
				}
				return next(ctx)
			})
			done := make(chan error, 1)
			go func() { done <- slow.ForcePurge(t.Context(), "a") }()
			select {
			case <-reached:
			case err := <-done: // it has no more calls
				isError(t, "forced purge", err, nil)
				return
			}
			if err := rt.ForcePurge(t.Context(), "a"); err != nil && !errors.Is(err, ErrNotFound) {
				t.Errorf("the other forced purge: %v", err)
			}
			c.admit(t, rt, false, "a")
			before, blobs := c.rows(t, "a"), c.blobsOf(t, "a")
			close(goOn)
			if err := <-done; err != nil && !errors.Is(err, ErrActive) && !errors.Is(err, ErrNotFound) {
				t.Errorf("paused at call %d: %v", pausedAt, err)
			}
			c.unchanged(t, "a", before)
			if n := len(c.blobsOf(t, "a")); n < len(blobs) || n == 0 || t.Failed() {
				t.Fatalf("paused at call %d: %d blobs of %d are left", pausedAt, n, len(blobs))
			}
			isError(t, "raise", rt.Raise(t.Context(), "a", "number", 1, ""), nil)
			c.rest(t, rt)
			isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
			c.settle(t, rt)
		}
	})
}

// An orchestration that was restored and continues while it is about to be purged by force is not purged.
func TestForcePurgeOfWhatIsRestored(t *testing.T) {
	eachInjury(t, func(t *testing.T, c *clinic, hurt injury) {
		rt := c.open(t, nil)
		c.admit(t, rt, false, "a")
		intact, blobs := c.rows(t, "a"), c.blobsOf(t, "a")
		hurt.do(t, c, "a")
		slow := c.over(t, atApply(1, func() {
			c.restore(t, "a", intact, blobs)
			isError(t, "raise", rt.Raise(t.Context(), "a", "other", 1, ""), nil)
			c.rest(t, rt)
		}))
		isError(t, "forced purge", slow.ForcePurge(t.Context(), "a"), ErrActive)
		wants(t, "it is", mustGet(t, rt, "a").Status, Running)
	})
}

// A process drives an orchestration that is damaged meanwhile, and continues; another one purges it by force, a third
// one starts the id again. In any order, the end is an intact orchestration, or none.
func TestForcePurgeBesideOthers(t *testing.T) {
	t.Parallel()
	kinds := []string{"garbage in the first round", "a middle round is missing", "the first round is missing", "the status is missing"}
	sample.Rapid(t)
	rapid.Check(t, func(draw *rapid.T) {
		kind, at := rapid.SampledFrom(kinds).Draw(draw, "kind"), rapid.IntRange(1, 40).Draw(draw, "damaged after")
		seed := rapid.Int64().Draw(draw, "seed")
		synctest.Test(t, func(t *testing.T) {
			c := newClinic(t)
			steps := NewOrchestrator("steps", func(ctx *Context, n int) (int, error) {
				for range n {
					if err := ctx.Sleep(time.Second); err != nil {
						return 0, err
					}
				}
				return n, nil
			})
			c.orchestrators = append(c.orchestrators, steps)
			slow := func(shift int64) *Runtime {
				wait := uint64(seed + shift)
				return c.over(t, func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
					wait = wait*6364136223846793005 + 1442695040888963407
					time.Sleep(time.Duration(wait>>33) % (3 * time.Second)) // the bubble's time
					return next(ctx)
				})
			}
			s := startOf("a", 20)
			s.Orchestrator = "steps"
			done := runInBackground(t.Context(), slow(1), s)
			time.Sleep(time.Duration(at) * time.Second)
			hurt := injuries()[kind]
			if len(c.rounds(t, "a")) < 3 {
				hurt = injury{do: func(*testing.T, *clinic, string) {}} // it has hardly begun
			}
			hurt.do(t, c, "a")
			purged, started := make(chan error, 1), make(chan error, 1)
			purger, starter := slow(2), slow(3)
			go func() { purged <- purger.ForcePurge(t.Context(), "a") }()
			go func() { _, err := starter.Start(t.Context(), startRequest("a", 1, "anew", ReuseEnded)); started <- err }()
			errs := []error{(<-done).err, <-purged, <-started}
			for _, err := range errs {
				known := err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrActive) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrElsewhere) || errors.Is(err, ErrConflict)
				if !known {
					t.Errorf("%v", err)
				}
			}
			rt := c.open(t, nil)
			if errors.Is(rt.Readable(t.Context(), "a"), ErrCorrupt) {
				if errs[1] == nil {
					t.Errorf("purged, and damaged: %v", rt.Readable(t.Context(), "a"))
				}
				isError(t, "forced purge", rt.ForcePurge(t.Context(), "a"), nil)
			}
			c.stored(t, "a")
			c.settle(t, rt)
			c.stored(t, "a")
		})
		if t.Failed() {
			draw.FailNow()
		}
	})
}
