package worker_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/worker"
	"github.com/vibedata/roundhouse/queues"
)

// What cannot be understood goes to the poison queue at once, as it is; what is for nobody, after as many tries as there may
// be.
func TestPoisonQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		run, stop := mustRun(t, w.config(nil, nil))
		defer stop()
		for _, queue := range []string{signalQueue, activityQueue} {
			if _, err := w.queues.(*queues.Memory).SendText(t.Context(), queue, "{garbage", 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := run.Runtime().Raise(t.Context(), "nobody", "paid", true, "event-1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.mustLength(t, signalQueue+"-poison", 1)
		w.mustLength(t, activityQueue+"-poison", 1)
		w.mustLength(t, activityQueue, 0)
		w.mustLength(t, signalQueue, 1)
		time.Sleep(time.Hour)
		w.mustLength(t, signalQueue, 0)
		poison, err := w.queues.Receive(t.Context(), signalQueue+"-poison", 10, time.Minute)
		if err != nil || len(poison) != 2 || poison[0].Text != "{garbage" || !strings.Contains(string(queues.Decode(poison[1].Text)), "event-1") {
			t.Errorf("%+v, %v", poison, err)
		}
	})
}

// An event that comes before its orchestration is not lost.
func TestEventBeforeStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		o := orchestrator.NewOrchestrator("wait", func(ctx *orchestrator.Context, _ string) (string, error) {
			return orchestrator.Event[string](ctx, "paid").Await()
		})
		run, stop := mustRun(t, w.config(nil, orchestrators(o)))
		defer stop()
		if err := run.Runtime().Raise(t.Context(), "a", "paid", "cash", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got, err := worker.Execute(t.Context(), run, o, "a", ""); err != nil || got != "cash" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// die is a process that takes all messages of a queue and dies with them, as often as a worker would let it.
func (w *world) die(t *testing.T, queue string) {
	t.Helper()
	for range 8 {
		if _, err := w.queues.Receive(t.Context(), queue, 32, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
	}
}

// An orchestration that takes the process down each time ends as Failed, and whoever has to know is told; its signal is kept.
func TestAProcessThatDiesWithASignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, told := newWorld(), make(chan orchestrator.Outcome, 10)
		o := orchestrator.NewOrchestrator("deadly", func(*orchestrator.Context, string) (string, error) { return "survived", nil })
		c := w.config(nil, orchestrators(o))
		c.Runtime.Ended = func(_ context.Context, out orchestrator.Outcome) error {
			told <- out
			return nil
		}
		starter, err := worker.New(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := worker.Start(t.Context(), starter, o, "a", ""); err != nil {
			t.Fatal(err)
		}
		w.die(t, signalQueue)
		run, stop := mustRun(t, c)
		defer stop()
		_, err = worker.Result(t.Context(), run, o, "a")
		if f := failure(t, err); !strings.Contains(f.Message, "the process died each time") {
			t.Errorf("%+v", f)
		}
		if out := <-told; out.ID != "a" || out.Status != orchestrator.Failed {
			t.Errorf("told of %+v", out)
		}
		w.mustLength(t, signalQueue+"-poison", 1)
	})
}

// Activities that take the process down, or that no worker knows, fail, and their orchestration decides what follows.
func TestActivitiesThatAreGivenUp(t *testing.T) {
	t.Parallel()
	for name, deadly := range map[string]bool{"process died": true, "unknown activity": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				step := w.step(0)
				o := orchestrator.NewOrchestrator("fan", func(ctx *orchestrator.Context, _ string) (string, error) {
					_, err := orchestrator.All(step.Call(ctx, "x"), step.Call(ctx, "y"), step.Call(ctx, "z"))
					if err == nil {
						return "", nil
					}
					return err.Error(), nil
				})
				c := w.config(nil, orchestrators(o), step)
				c.Runtime.SpreadAbove = 2
				// A process that only drives: what is to be spread stays in the queue.
				driver, err := orchestrator.New(c.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				if err := driver.Prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := driver.Run(t.Context(), orchestrator.Start{ID: "a", Orchestrator: "fan", Input: []byte(`""`)}); err != nil {
					t.Fatal(err)
				}
				if deadly {
					w.die(t, activityQueue)
				} else {
					c = w.config(nil, orchestrators(o))
				}
				run, stop := mustRun(t, c)
				defer stop()
				got, err := worker.Result(t.Context(), run, o, "a")
				if err != nil || !strings.Contains(got, name) && !strings.Contains(got, "the process died") {
					t.Errorf("%q, %v", got, err)
				}
				w.mustLength(t, activityQueue, 0)
				w.mustLength(t, activityQueue+"-poison", 0)
			})
		})
	}
}
