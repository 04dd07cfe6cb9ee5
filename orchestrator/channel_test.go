package orchestrator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Coroutines pass values to each other in order, with any capacity, and wait for each other; after a takeover by
// another process, too.
func TestCoroutinesWorkTogether(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T){}
	for capacity := range 3 {
		tests[fmt.Sprint("capacity ", capacity)] = func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			o := NewOrchestrator("test", func(ctx *Context, n int) ([]int, error) {
				jobs, results := NewChannel[int](ctx, capacity), NewChannel[int](ctx, n)
				var workers WaitGroup
				for range 3 {
					workers.Add(1)
					Go(ctx, func(ctx *Context) (int, error) {
						defer workers.Done()
						for {
							job, ok, err := jobs.Receive(ctx)
							if err != nil || !ok {
								return 0, err
							}
							v, err := step.Call(ctx, job).Await()
							if err == nil {
								err = ctx.Sleep(time.Hour) // another process takes over meanwhile
							}
							if err == nil {
								err = results.Send(ctx, v)
							}
							if err != nil {
								return 0, err
							}
						}
					})
				}
				for i := range n {
					if err := jobs.Send(ctx, 10*i); err != nil {
						return nil, err
					}
				}
				jobs.Close()
				if err := workers.Wait(ctx); err != nil {
					return nil, err
				}
				var got []int
				for v, ok := results.TryReceive(); ok; v, ok = results.TryReceive() {
					got = append(got, v)
				}
				slices.Sort(got) // the order depends on the activities
				return got, nil
			})
			rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step})
			mustRun(t, rt, startOf("a", 7))
			w.attend(t, w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step}), 6*time.Hour)
			wants(t, "it ends", stands(t, rt, "a"), "Completed [1,11,21,31,41,51,61]")
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// A closed channel yields its values, and then reports that it is closed; a send to it is a mistake.
func TestClosedChannels(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
			c := NewChannel[int](ctx, 1)
			if err := c.Send(ctx, 5); err != nil {
				return "", err
			}
			c.Close()
			first, ok, err := c.Receive(ctx)
			second, open, again := c.Receive(ctx)
			if n == 2 {
				return "", errors.Join(c.Send(ctx, 6))
			}
			return fmt.Sprint(first, ok, second, open), errors.Join(err, again)
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		mustRun(t, rt, startOf("a", 1))
		wants(t, "it ends", stands(t, rt, "a"), `Completed "5 true 0 false"`)
		mustRun(t, rt, startOf("b", 2))
		if said := stands(t, rt, "b"); !strings.Contains(said, "closed channel") {
			t.Errorf("a send to a closed channel: %s", said)
		}
		w.replays(t, rt)
	})
}
