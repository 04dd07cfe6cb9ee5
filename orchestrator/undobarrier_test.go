package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// An undo runs once its call has ended, in any process and with any outcome.
func TestUndoWaitsForWhatItUndoes(t *testing.T) {
	t.Parallel()
	// reserve takes a while, and notices its cancellation only if it is polite.
	reserve := func(d *diary, polite bool) func(context.Context, int) (int, error) {
		return func(ctx context.Context, n int) (int, error) {
			over := time.After(5 * time.Minute)
			done := ctx.Done()
			if !polite {
				done = nil
			}
			select {
			case <-over:
				d.note("reserved")
				return n, nil
			case <-done:
				d.note("stopped")
				return 0, ctx.Err()
			}
		}
	}
	for name, test := range map[string]struct {
		polite    bool
		elsewhere bool // the cancellation is delivered to another process
		batch     bool // another process runs the activity
		timeout   time.Duration
		want      []string
	}{
		"here":                                   {polite: true, want: []string{"stopped", "released"}},
		"here, and it ignores its context":       {want: []string{"reserved", "released"}},
		"in another process":                     {polite: true, elsewhere: true, want: []string{"stopped", "released"}},
		"in another process that takes its time": {elsewhere: true, want: []string{"reserved", "released"}},
		"in a batch":                             {batch: true, want: []string{"reserved", "released"}},
		"after its time-out":                     {timeout: time.Minute, want: []string{"reserved", "released"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, d := newWorld(t), &diary{}
				release := NewActivity("release", func(context.Context, int) (int, error) { d.note("released"); return 1, nil })
				quick := NewActivity("quick", func(_ context.Context, n int) (int, error) { return n, nil })
				act := NewActivity("reserve", reserve(d, test.polite))
				options := []CallOption{WithUndo(release, 1)}
				if test.timeout > 0 {
					options = append(options, WithTimeout(test.timeout))
				}
				o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
					if test.batch { // the first runs here, the excess elsewhere
						quick.Call(ctx, 1)
						quick.Call(ctx, 2)
					}
					_, err := act.Call(ctx, n, options...).Await()
					return 0, errors.Join(err, Undo(ctx))
				})
				c := Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{act, release, quick}, Queues: w.queues}
				if test.batch {
					c.MaxInlineActivities = 1
				}
				here, there := w.configured(t, nil, c), w.configured(t, nil, c)
				done := runInBackground(t.Context(), here, startOf("a", 1))
				time.Sleep(time.Second)
				var batches sync.WaitGroup
				for range w.waitingBatches(t) {
					batches.Go(func() { w.runActivities(t.Context(), t, there) })
				}
				time.Sleep(30 * time.Second)
				if test.timeout == 0 {
					to := here
					if test.elsewhere {
						to = there
					}
					noError(t, to.Cancel(t.Context(), "a", "enough"))
					w.deliverDue(t, to)
				}
				<-done
				w.attend(t, here, 20*time.Minute)
				batches.Wait()
				wants(t, "done", d.all(), test.want)
				if out := mustGet(t, here, "a"); !out.Ended() {
					t.Errorf("it is %s", stands(t, here, "a"))
				}
			})
		})
	}
}

// A canceled sub-orchestration is undone after its own clean-up.
func TestUndoOfACanceledChild(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, d := newWorld(t), &diary{}
		note := NewActivity("note", func(_ context.Context, s string) (string, error) { d.note(s); return s, nil })
		child := NewOrchestrator("child", func(ctx *Context, _ int) (string, error) {
			_, err := Event[int](ctx, "never").Await()
			ctx = WithoutCancel(ctx)
			ctx.Sleep(2 * time.Hour)
			_, failed := note.Call(ctx, "cleaned up").Await()
			return "", errors.Join(err, failed)
		})
		o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
			_, err := child.Call(ctx, 1, WithUndo(note, "undone")).Await()
			return "", errors.Join(err, Undo(ctx))
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o, child}, []AnyActivity{note})
		mustRun(t, rt, startOf("a", 1))
		noError(t, rt.Cancel(t.Context(), "a", "enough"))
		w.attend(t, rt, 5*time.Hour)
		wants(t, "done", d.all(), []string{"cleaned up", "undone"})
		wants(t, "it ends", mustGet(t, rt, "a").Status, Canceled)
		w.replays(t, rt)
	})
}

// A cancellation of the coroutine that undoes does not reach the undo, and a second coroutine with the same undo waits
// for the first.
func TestUndoInCoroutines(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, d := newWorld(t), &diary{}
		makes, takes := d.steps()
		slow := NewActivity("slow", func(ctx context.Context, s string) (string, error) {
			_ = pause(ctx, time.Minute)
			d.note("take " + s)
			return s, errors.New("half of it stays")
		})
		o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
			if _, err := All(makes.Call(ctx, "one", WithUndo(slow, "one")), makes.Call(ctx, "two", WithUndo(takes, "two"))); err != nil {
				return "", err
			}
			undoing := func(ctx *Context) (string, error) { err := Undo(ctx); return fmt.Sprint(err != nil), nil }
			first, second := Go(ctx, undoing), Go(ctx, undoing)
			ctx.Sleep(time.Second)
			Cancel(ctx, first, second)
			both, err := All(first, second)
			return fmt.Sprint(both), err
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{makes, takes, slow})
		mustRun(t, rt, startOf("a", 1))
		w.attend(t, rt, 10*time.Minute)
		wants(t, "both learn that one undo failed", stands(t, rt, "a"), `Completed "[true true]"`)
		wants(t, "undone", d.count("take one")+d.count("take two"), 2)
		w.replays(t, rt)
	})
}

// An undo that is called long after the cancellation, after another wait, runs immediately when its call has ended:
// here, in a batch, and in a batch that was dropped.
func TestUndoLongAfterTheCancellation(t *testing.T) {
	t.Parallel()
	for name, batch := range map[string]bool{"here": false, "in a batch": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				w.forgetful = true
				undo := l.step("undo")
				work := NewActivity("work", func(ctx context.Context, n int) (int, error) { return n, pause(ctx, 2*time.Minute) }, WithUndo(undo, 1))
				quick := l.step("quick")
				o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
					first := quick.Call(ctx, 1)
					f := work.Call(ctx, 1)
					err := errors.Join(errorOf(first.Await()), errorOf(Event[int](ctx, "stop").Await()))
					Cancel(ctx, f)
					err = errors.Join(err, errorOf(Event[int](ctx, "really").Await()))
					return 1, errors.Join(err, Undo(ctx, f))
				})
				c := Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{work, undo, quick}, Queues: w.queues}
				if batch {
					c.MaxInlineActivities = 1
				}
				code := func() *Runtime { return w.configured(t, nil, c) }
				rt := code()
				done := runInBackground(t.Context(), rt, startOf("a", 1))
				time.Sleep(time.Second)
				noError(t, rt.Raise(t.Context(), "a", "stop", 1, ""))
				w.deliverDue(t, rt)
				<-done
				if batch { // which is dropped
					w.runActivities(t.Context(), t, code())
				}
				w.attend(t, code(), 10*time.Minute)
				noError(t, code().Raise(t.Context(), "a", "really", 1, ""))
				w.attend(t, code(), 10*time.Minute)
				wants(t, "it ends", stands(t, code(), "a"), "Completed 1")
				wants(t, "undone", l.count("undo(1)"), 1)
				w.replays(t, code())
			})
		})
	}
}
