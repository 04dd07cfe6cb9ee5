package lazyctx_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/lazyctx"
)

type key struct{}

// the observable state of a context.
type what struct {
	err, cause error
	deadline   time.Time
	bounded    bool
	value      any
	done       bool
}

// look observes a context; done also requests the channel.
func look(ctx context.Context, done bool) what {
	w := what{err: ctx.Err(), cause: context.Cause(ctx), value: ctx.Value(key{})}
	w.deadline, w.bounded = ctx.Deadline()
	if !done {
		w.done = w.err != nil
		return w
	}
	select {
	case <-ctx.Done():
		w.done = true
	default:
	}
	return w
}

// TestAsContext compares the context with one of package context, for every kind of end and of earlier wait.
func TestAsContext(t *testing.T) {
	why := errors.New("why")
	steps := map[string]func(cancelParent context.CancelCauseFunc, cancel func()){
		"nothing":           func(context.CancelCauseFunc, func()) {},
		"cancel":            func(_ context.CancelCauseFunc, cancel func()) { cancel() },
		"parent":            func(parent context.CancelCauseFunc, _ func()) { parent(why) },
		"cancel and parent": func(parent context.CancelCauseFunc, cancel func()) { cancel(); parent(why) },
		"time":              func(context.CancelCauseFunc, func()) { time.Sleep(time.Minute) },
		"cancel and time":   func(_ context.CancelCauseFunc, cancel func()) { cancel(); time.Sleep(time.Minute) },
		"time and cancel":   func(_ context.CancelCauseFunc, cancel func()) { time.Sleep(time.Minute); cancel() },
	}
	for name, step := range steps {
		for _, limit := range []time.Duration{0, time.Second} {
			for _, waited := range []bool{false, true} {
				for _, asks := range []int{0, 1, 2, 3} {
					asksDone, detached := asks%2 == 1, asks >= 2
					synctest.Test(t, func(t *testing.T) {
						run := func(lazy bool) what {
							parent, cancelParent := context.WithCancelCause(context.WithValue(t.Context(), key{}, 1))
							defer cancelParent(nil)
							var deadline time.Time
							if limit > 0 {
								deadline = time.Now().Add(limit)
							}
							ctx, cancel := pair(parent, deadline, detached, lazy)
							defer cancel()
							if waited {
								_ = ctx.Done()
							}
							step(cancelParent, cancel)
							synctest.Wait()
							w := look(ctx, asksDone)
							if w.bounded = w.deadline.Equal(deadline) && w.bounded; w.bounded {
								w.deadline = time.Time{} // the two contexts are not made at the same time
							}
							return w
						}
						if want, got := run(false), run(true); want != got {
							t.Errorf("%s, limit %v, waited %v, detached %v: got %+v, want %+v", name, limit, waited, detached, got, want)
						}
					})
				}
			}
		}
	}
}

// pair returns a lazy context, or the one of package context that it has to be like.
func pair(parent context.Context, deadline time.Time, detached, lazy bool) (context.Context, context.CancelFunc) {
	switch {
	case lazy && detached:
		c := &lazyctx.Context{}
		c.InitDetached(parent, deadline)
		return c, c.Cancel
	case lazy:
		c := lazyctx.New(parent, deadline)
		return c, c.Cancel
	case detached:
		parent = context.WithoutCancel(parent)
	}
	if deadline.IsZero() {
		return context.WithCancel(parent)
	}
	return context.WithDeadline(parent, deadline)
}

// TestChildren: contexts that are made from it end with it.
func TestChildren(t *testing.T) {
	c := lazyctx.New(t.Context(), time.Time{})
	child, cancel := context.WithTimeout(c, time.Hour)
	defer cancel()
	if c.Cancel(); child.Err() != context.Canceled {
		t.Errorf("the child of a canceled context says %v", child.Err())
	}
	<-child.Done()
}

// TestDeadline: the earlier deadline counts.
func TestDeadline(t *testing.T) {
	now := time.Now()
	parent, cancel := context.WithDeadline(t.Context(), now.Add(time.Hour))
	defer cancel()
	for own, want := range map[time.Time]time.Time{{}: now.Add(time.Hour), now.Add(time.Minute): now.Add(time.Minute), now.Add(2 * time.Hour): now.Add(time.Hour)} {
		if at, ok := lazyctx.New(parent, own).Deadline(); !ok || !at.Equal(want) {
			t.Errorf("with the deadline %v of its own, the context ends at %v, %v", own, at, ok)
		}
	}
}

// TestCost: a context without a waiter is one allocation.
func TestCost(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	at := time.Now().Add(time.Hour)
	if n := testing.AllocsPerRun(100, func() {
		c := lazyctx.New(parent, at)
		if c.Err() != nil || c.Value(key{}) != nil {
			t.Error("a new context has ended, or holds something")
		}
		c.Cancel()
	}); n > 1 {
		t.Errorf("a context costs %v allocations", n)
	}
}
