package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// diary records actions, in order.
type diary struct {
	mu    sync.Mutex
	notes []string
}

func (d *diary) note(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, text)
}

func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.notes)
}

func (d *diary) count(text string) int {
	n := 0
	for _, note := range d.all() {
		if note == text {
			n++
		}
	}
	return n
}

// makes and takes are a call and its undo. A text that begins with "half" fails after it has done its work.
func (d *diary) steps() (makes, takes *Activity[string, string]) {
	step := func(name string) *Activity[string, string] {
		return NewActivity(name, func(_ context.Context, s string) (string, error) {
			if strings.HasPrefix(s, "slow") && name == "make" {
				time.Sleep(10 * time.Second)
			}
			d.note(name + " " + s)
			if strings.HasPrefix(s, "half") && name == "make" || strings.HasPrefix(s, "stuck") && name == "take" {
				return "", errors.New(name + " " + s + " failed")
			}
			return s, nil
		})
	}
	return step("make"), step("take")
}

// Undone results are forgotten, and the others are kept: the next attempt repeats the undone work, and nothing else.
func TestWhatIsUndoneIsForgottenAndTheRestIsKept(t *testing.T) {
	t.Parallel()
	for name, again := range secondChances() {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, l, d := newWorld(t), &ledger{}, &diary{}
				makes, takes := d.steps()
				download := l.step("download")
				verify := NewActivity("verify", func(context.Context, int) (int, error) {
					if l.add("verify") == 1 {
						return 0, errors.New("unhealthy")
					}
					return 1, nil
				})
				o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
					if _, err := download.Call(ctx, n).Await(); err != nil {
						return "", err
					}
					if _, err := makes.Call(ctx, "update", WithUndo(takes, "update")).Await(); err != nil {
						return "", err
					}
					if _, err := Timer(ctx, 24*time.Hour).Await(); err != nil {
						return "", err
					}
					if _, err := verify.Call(ctx, n).Await(); err != nil {
						return "", Permanent(errors.Join(err, Undo(ctx)))
					}
					return "updated", nil
				})
				rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{makes, takes, download, verify})
				mustRun(t, rt, startOf("a", 1))
				w.settle(t, rt)
				wants(t, "the first attempt", mustGet(t, rt, "a").Status, Failed)
				noError(t, again(t.Context(), rt))
				w.settle(t, rt)
				wants(t, "it ends", stands(t, rt, "a"), `Completed "updated"`)
				wants(t, "done", d.all(), []string{"make update", "take update", "make update"})
				wants(t, "downloads", l.count("download(1)"), 1)
				w.replays(t, rt)
			})
		})
	}
}

// Undo undoes the last call first, one after the other and each once: failed calls too, because they may have done
// half of their work, and running ones, once they have ended. Calls without an undo remain, and the error joins those
// of failed undos.
func TestUndoTakesBackTheLastFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, d := newWorld(t), &diary{}
		makes, takes := d.steps()
		child := NewOrchestrator("child", func(ctx *Context, s string) (string, error) { return makes.Call(ctx, s).Await() })
		o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
			for _, s := range []string{"one", "half two", "stuck three"} {
				_, _ = makes.Call(ctx, s, WithUndo(takes, s)).Await()
			}
			_, _ = makes.Call(ctx, "for good").Await()
			_, _ = child.Call(ctx, "four", WithUndo(takes, "four")).Await()
			makes.Call(ctx, "slow five", WithUndo(takes, "slow five"))
			first, second := Undo(ctx), Undo(ctx)
			return fmt.Sprint(first != nil && strings.Contains(first.Error(), "take stuck three failed"), second), nil
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o, child}, []AnyActivity{makes, takes})
		mustRun(t, rt, startOf("a", 1))
		w.settle(t, rt)
		wants(t, "it ends", stands(t, rt, "a"), `Completed "true <nil>"`)
		wants(t, "done", d.all(), []string{"make one", "make half two", "make stuck three", "make for good", "make four", "make slow five",
			"take slow five", "take four", "take stuck three", "take half two", "take one"})
		w.replays(t, rt)
	})
}

// A cancellation does not stop an undo, and the run ends as canceled.
func TestUndoIsShieldedFromCancellation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, d := newWorld(t), &diary{}
		makes, takes := d.steps()
		o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
			one := makes.Call(ctx, "one", WithUndo(takes, "one"))
			two := makes.Call(ctx, "two", WithUndo(takes, "two"))
			if _, err := All(one, two); err != nil {
				return "", err
			}
			err := ctx.Sleep(24 * time.Hour)
			return "", errors.Join(err, Undo(ctx, two))
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{makes, takes})
		mustRun(t, rt, startOf("a", 1))
		noError(t, rt.Cancel(t.Context(), "a", "no need"))
		w.attend(t, rt, time.Hour)
		wants(t, "it ends", mustGet(t, rt, "a").Status, Canceled)
		wants(t, "taken back", []int{d.count("take one"), d.count("take two")}, []int{0, 1})
		w.replays(t, rt)
	})
}

// The next attempt remembers everything that completed if a call failed and nothing but undos followed, and nothing
// otherwise.
func TestTheNextAttemptKeepsWhatIsSound(t *testing.T) {
	t.Parallel()
	fail := NewActivity("fail", func(ctx context.Context, _ int) (int, error) {
		if Info(ctx).Execution == 1 {
			return 0, errors.New("not yet")
		}
		return 1, nil
	})
	other := NewOrchestrator("other", func(*Context, int) (int, error) { return 1, nil })
	endings := map[string]struct {
		run  func(*Context, *Activity[int, int]) error
		kept bool
	}{
		"a call fails": {kept: true, run: func(ctx *Context, _ *Activity[int, int]) error {
			_, err := fail.Call(ctx, 1).Await()
			return err
		}},
		"a call fails in a coroutine": {kept: true, run: func(ctx *Context, _ *Activity[int, int]) error {
			_, err := Go(ctx, func(ctx *Context) (int, error) { return fail.Call(ctx, 1).Await() }).Await()
			return err
		}},
		"a call follows the failure": {run: func(ctx *Context, step *Activity[int, int]) error {
			_, err := fail.Call(ctx, 1).Await()
			_, late := step.Call(ctx, 99).Await()
			return errors.Join(err, late)
		}},
		"a publication follows the failure": {run: func(ctx *Context, _ *Activity[int, int]) error {
			_, err := fail.Call(ctx, 1).Await()
			return errors.Join(err, ctx.Publish(Publication{TenantID: "t", Type: "failed", Payload: []byte("1")}))
		}},
		"a report follows the failure": {kept: true, run: func(ctx *Context, _ *Activity[int, int]) error {
			_, err := fail.Call(ctx, 1).Await()
			return errors.Join(err, ctx.Publish(Publication{TenantID: "t", Type: "failed", Payload: []byte("1"), Report: true}))
		}},
		"a start follows the failure": {run: func(ctx *Context, _ *Activity[int, int]) error {
			_, err := fail.Call(ctx, 1).Await()
			_, late := other.Start(ctx, "", 1)
			return errors.Join(err, late)
		}},
		"no call failed": {run: func(ctx *Context, _ *Activity[int, int]) error {
			if ctx.Execution() == 1 {
				return errors.New("not yet")
			}
			return nil
		}},
		"a panic": {run: func(ctx *Context, _ *Activity[int, int]) error {
			if ctx.Execution() == 1 {
				panic("not yet")
			}
			return nil
		}},
	}
	tests := map[string]func(*testing.T){}
	for name, ending := range endings {
		tests[name] = func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) { return step.Call(ctx, n+10).Await() })
			ids := map[string]bool{}
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				ids[ctx.NewUUID().String()] = true
				side, err := SideEffect(ctx, "side", func() int { return l.add("side") })
				if err != nil {
					return side, err
				}
				if _, err := All(step.Call(ctx, n), child.Call(ctx, n)); err != nil {
					return 0, err
				}
				if _, err := Timer(ctx, time.Hour).Await(); err != nil {
					return 0, err
				}
				return n, ending.run(ctx, step)
			})
			rt := w.publishing(t, nil, &post{}, []AnyOrchestrator{o, child, other}, []AnyActivity{step, fail})
			mustRun(t, rt, startOf("a", 1))
			w.settle(t, rt)
			noError(t, errorOf(rt.Rewind(t.Context(), "a", "rewind")))
			begin := time.Now()
			w.attend(t, rt, 3*time.Hour)
			out, times := mustGet(t, rt, "a"), 2
			if ending.kept {
				times = 1
			}
			wants(t, "it ends", stands(t, rt, "a"), "Completed 1")
			wants(t, "times of the step, the child, the side effect and the ids",
				[]int{l.count("step(1)"), l.count("step(11)"), l.count("side"), len(ids)}, []int{times, times, times, times})
			if waited := out.EndedAt.Sub(begin) > 50*time.Minute; waited == ending.kept {
				t.Errorf("it has waited again: %v", waited)
			}
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// Between two attempts an orchestration is Retrying: its attempt has ended, and more will follow by itself. The caller
// that repeats the start can give it up.
func TestRetryingIsNotOverUntilItIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		fail := NewActivity("fail", func(_ context.Context, n int) (int, error) {
			if n == 2 {
				return 0, Permanent(errors.New("never"))
			}
			return 0, errors.New("not yet")
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return fail.Call(ctx, n).Await() })
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{fail})
		out := mustRun(t, rt, willRetry(startOf("a", 1)))
		if out.Status != Retrying || out.EndedAt.IsZero() || out.Ended() {
			t.Errorf("between two attempts: %s, ended at %v, over %v", out.Status, out.EndedAt, out.Ended())
		}
		wants(t, "it shows", shownStatus(t, rt, "a"), Retrying)
		isError(t, "another's", rt.GiveUp(t.Context(), "a", "another", errors.New("eight deliveries")), ErrConflict)
		isError(t, "give up", rt.GiveUp(t.Context(), "a", "corr", errors.New("eight deliveries")), nil)
		out = mustGet(t, rt, "a")
		if out.Status != Failed || !out.Ended() {
			t.Errorf("given up: %s, over %v", stands(t, rt, "a"), out.Ended())
		}
		wants(t, "without a caller that brings it again", mustRun(t, rt, startOf("b", 1)).Status, Failed)
		wants(t, "what no attempt can mend", mustRun(t, rt, willRetry(startOf("c", 2))).Status, Failed)
		w.replays(t, rt)
	})
}
