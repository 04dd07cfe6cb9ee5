package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/worker"
	"github.com/vibedata/roundhouse/queues"
)

// An unreadable message is dead-lettered immediately and unchanged; a message for an unknown orchestration after a
// day, for which it may be early.
func TestDeadLetters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld()
		run, stop := mustRun(t, w.config(nil, nil))
		defer stop()
		for _, queue := range []string{signalQueue, activityQueue} {
			noError(t, errorOf(w.queues.(*queues.Memory).SendText(t.Context(), queue, "{garbage", 0)))
		}
		noError(t, run.Runtime().Raise(t.Context(), "nobody", "paid", true, "event-1"))
		time.Sleep(time.Minute)
		w.mustLength(t, signalQueue+"-dead-letters", 1)
		w.mustLength(t, activityQueue+"-dead-letters", 1)
		w.mustLength(t, activityQueue, 0)
		w.mustLength(t, signalQueue, 1)
		time.Sleep(25 * time.Hour) // for a day, the event may be for an orchestration that is not started yet
		w.mustLength(t, signalQueue, 0)
		dead, err := w.queues.Receive(t.Context(), signalQueue+"-dead-letters", 10, time.Minute)
		if err != nil || len(dead) != 2 || dead[0].Text != "{garbage" || !strings.Contains(string(queues.Decode(dead[1].Text)), "event-1") {
			t.Errorf("%+v, %v", dead, err)
		}
	})
}

// An event that arrives before its orchestration is not lost.
func TestEventBeforeStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld()
		o := orchestrator.NewOrchestrator("wait", func(ctx *orchestrator.Context, _ string) (string, error) {
			return orchestrator.Event[string](ctx, "paid").Await()
		})
		run, stop := mustRun(t, w.config(nil, orchestrators(o)))
		defer stop()
		noError(t, run.Runtime().Raise(t.Context(), "a", "paid", "cash", ""))
		time.Sleep(time.Minute)
		if got, err := worker.Execute(t.Context(), run, o, "a", ""); err != nil || got != "cash" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// die is a process that receives all messages of a queue and dies with them, up to the limit of a worker.
func (w *world) die(t *testing.T, queue string, times int) {
	t.Helper()
	for range times {
		messages, err := w.queues.Receive(t.Context(), queue, 32, 30*time.Second)
		if err != nil || len(messages) == 0 {
			t.Fatalf("%d messages in %s, %v", len(messages), queue, err)
		}
		time.Sleep(time.Minute)
	}
}

// poison lets a process die with all messages of a queue, first among others and then alone.
func (w *world) poison(t *testing.T, queue string) {
	t.Helper()
	w.die(t, queue, 8)
	messages, err := w.queues.Receive(t.Context(), queue, 32, 30*time.Second)
	for _, m := range messages {
		noError(t, errorOf(w.queues.Send(t.Context(), queue+"-poison", queues.Decode(m.Text), 0)))
		err = w.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.die(t, queue+"-poison", 2)
}

// A message that was in progress each time that a process died, but was not the cause, is handled to its end.
func TestABystander(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld()
		step := w.step(0)
		c := w.config(nil, orchestrators(order(time.Minute, step)), step)
		starter := must(worker.New(t.Context(), c))(t)
		noError(t, worker.Start(t.Context(), starter, order(time.Minute, step), "a", "a"))
		w.die(t, signalQueue, 8)
		run, stop := mustRun(t, c)
		defer stop()
		noError(t, run.Runtime().Raise(t.Context(), "a", "paid", "cash", ""))
		if got, err := worker.Result(t.Context(), run, order(time.Minute, step), "a"); err != nil || got != "a-first cash a-last" {
			t.Errorf("%q, %v", got, err)
		}
		for _, queue := range []string{signalQueue, signalQueue + "-poison", signalQueue + "-dead-letters"} {
			w.mustLength(t, queue, 0)
		}
	})
}

// An orchestration that crashes the process each time ends as Failed, and its waiters are notified; its signal is
// kept.
func TestAProcessThatDiesWithASignal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
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
		noError(t, worker.Start(t.Context(), starter, o, "a", ""))
		w.poison(t, signalQueue)
		run, stop := mustRun(t, c)
		defer stop()
		_, err = worker.Result(t.Context(), run, o, "a")
		if f := failure(t, err); !strings.Contains(f.Message, "the process died each time that it worked on the message, also with this one alone") {
			t.Errorf("%+v", f)
		}
		if out := <-told; out.ID != "a" || out.Status != orchestrator.Failed {
			t.Errorf("told of %+v", out)
		}
		w.mustLength(t, signalQueue+"-dead-letters", 1)
	})
}

// Activities that crash the process, or that no worker knows, fail, and their orchestration handles it.
func TestActivitiesThatAreGivenUp(t *testing.T) {
	t.Parallel()
	for name, deadly := range map[string]bool{"process died": true, "unknown activity": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
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
				c.Runtime.MaxInlineActivities = 2
				// A process that only drives: activities to be spread stay in the queue.
				driver := must(orchestrator.New(c.Runtime))(t)
				noError(t, errorOf(worker.New(t.Context(), c)))
				noError(t, errorOf(driver.Run(t.Context(), orchestrator.Start{ID: "a", Orchestrator: "fan", Input: []byte(`""`)})))
				if deadly {
					w.poison(t, activityQueue)
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
				w.mustLength(t, activityQueue+"-dead-letters", 0)
			})
		})
	}
}
