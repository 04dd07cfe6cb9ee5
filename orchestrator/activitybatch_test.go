package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
)

// tolerant calls an activity n times in parallel, each with an input of the size, and returns the outcome of each.
func tolerant(a *Activity[string, string], size int) *Orchestrator[int, []string] {
	return NewOrchestrator("test", func(ctx *Context, n int) ([]string, error) {
		var calls []*Future[string]
		for i := range n {
			calls = append(calls, a.Call(ctx, fmt.Sprint(i, ":", strings.Repeat("x", size))))
		}
		out := make([]string, n)
		for i, c := range calls {
			v, err := c.Await()
			if out[i] = v; err != nil {
				vault, ok := errors.AsType[*vaultError](err)
				out[i] = fmt.Sprint(ok && vault.Code == i, " ", errors.Unwrap(err) == nil)
			}
		}
		return out, nil
	})
}

// shared is an activity in which every fifth call fails for good, with a typed error, and every third needs a retry.
func shared(l *ledger) *Activity[string, string] {
	return NewActivity("shared", func(ctx context.Context, in string) (string, error) {
		number, _, _ := strings.Cut(in, ":")
		l.add(number)
		i := 0
		if _, err := fmt.Sscan(number, &i); err != nil {
			return "", err
		}
		switch {
		case i%5 == 4:
			return "", Permanent(&vaultError{"v", i})
		case i%3 == 2 && Info(ctx).Attempt == 1:
			return "", errors.New("once")
		}
		return "out " + number, nil
	}, WithRetry(Retry{MaxAttempts: 2, FirstInterval: time.Minute}), WithError[*vaultError]())
}

// Activities that are too many for one process run in others: each result arrives once, regardless of failures, and
// whether the batches fit messages or not.
func TestSpread(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 1, "over a message": 20 << 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := flow{config: Config{MaxInlineActivities: 2}, make: func(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
				a := shared(l)
				return []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, _ int) ([]string, error) {
					return tolerant(a, size).fn(ctx, 7)
				})}, []AnyActivity{a}
			}}
			f.check = func(t *testing.T, w *world, rt *Runtime, l *ledger) {
				var got []string
				noError(t, json.Unmarshal(mustGet(t, rt, "a").Output, &got))
				if diff := cmp.Diff([]string{"out 0", "out 1", "out 2", "out 3", "true true", "out 5", "out 6"}, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				for i := range 7 {
					if n := l.count(fmt.Sprint(i)); n < 1 || n > 5 {
						t.Errorf("%d ran %d times", i, n)
					}
				}
				if w.learnedEvents(t, "a", activitiesSent) == 0 {
					t.Error("nothing was handed out")
				}
			}
			f.runs(t, faults.CrashBefore, faults.CrashAfter, faults.Applied)
		})
	}
}

// spreadOut begins an orchestration of n activities and sends all but two of them to other processes.
func spreadOut(t *testing.T, w *world, n, size int, a *Activity[string, string]) *Runtime {
	t.Helper()
	o := tolerant(a, size)
	rt := w.configured(t, nil, Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{a}, MaxInlineActivities: 2,
		Queues: faults.Queues(w.queues, (&faults.Plan{}).Intercept)})
	if out := mustRun(t, rt, startOf("a", n)); !out.Woken {
		t.Fatalf("%+v", out)
	}
	return rt
}

func plainActivity(l *ledger) *Activity[string, string] {
	return NewActivity("plain", func(_ context.Context, in string) (string, error) { l.add(in[:1]); return in[:1], nil })
}

// Two processes share the work; results arrive twice and in any order.
func TestSpreadResultsInAnyOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		rt := spreadOut(t, w, 130, 0, plainActivity(l))
		other := w.configured(t, nil, Config{Orchestrators: []AnyOrchestrator{tolerant(plainActivity(l), 0)}, Activities: []AnyActivity{plainActivity(l)},
			MaxInlineActivities: 2, Queues: faults.Queues(w.queues, (&faults.Plan{}).Intercept)})
		workers := []*Runtime{rt, other, rt, other, rt}
		batches := 0
		for w.runActivities(t.Context(), t, workers[batches%5]) {
			batches++
		}
		var signals []Signal
		for {
			s, m, ok := w.receive(t, time.Hour)
			if !ok {
				break
			}
			signals = append(signals, s)
			noError(t, w.queues.Delete(t.Context(), signalQueue, m.ID, m.PopReceipt))
		}
		if batches != 3 || len(signals) != 3 { // 128 activities, 50 a message
			t.Fatalf("%d batches, %d signals", batches, len(signals))
		}
		for i, n := range []int{2, 0, 2, 1, 0} {
			if _, err := workers[i].Deliver(t.Context(), signals[n]); err != nil {
				t.Error(err)
			}
		}
		out := mustGet(t, rt, "a")
		if out.Status != Completed || len(l.all()) == 0 || rt.Counts().Duplicates+rt.Counts().Stale+other.Counts().Duplicates+other.Counts().Stale == 0 {
			t.Errorf("%s %v", out.Status, out.Failure)
		}
		if n := w.learnedEvents(t, "a", activityCompleted); n != 130 {
			t.Errorf("%d results", n)
		}
		w.replays(t, rt)
	})
}

// Activities that are no longer needed are not run, and leave nothing behind.
func TestSpreadForAnOrchestrationThatHasEnded(t *testing.T) {
	t.Parallel()
	for _, purged := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			rt := spreadOut(t, w, 9, 10<<10, plainActivity(l))
			ran := len(l.all())
			m, _ := w.receiveBatch(t)
			b, err := decodeBatch(queues.Decode(m.Text))
			if err != nil || !w.holds(t, "a", b.Blob) {
				t.Fatalf("%+v %v", b, err)
			}
			noError(t, rt.Terminate(t.Context(), "a", "enough"))
			w.settle(t, rt)
			if purged {
				noError(t, rt.Purge(t.Context(), "a"))
			}
			if err := rt.RunActivities(t.Context(), queues.Decode(m.Text)); err != nil || w.waitingMessages(t) != 0 {
				t.Errorf("the batch stays: %v", err)
			}
			if rt.Counts().Stale != 1 || len(l.all()) != ran {
				t.Errorf("%+v, calls %v", rt.Counts(), l.all())
			}
			if w.holds(t, "a", b.Blob) {
				t.Error("its payload stays")
			}
		})
	}
}

// A worker that times out reports the finished activities and sends the rest again, with their progress. Without a
// finished one it leaves the message.
func TestSpreadWhenTheTimeIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		slow := NewActivity("slow", func(ctx context.Context, in string) (string, error) {
			if in[0] >= '2' && in[0]%2 == 1 && Info(ctx).Progress == nil {
				if err := Heartbeat(ctx, in[:1]); err != nil {
					return "", err
				}
				<-ctx.Done()
				return "", ctx.Err()
			}
			l.add(in[:1] + string(Info(ctx).Progress))
			return in[:1], nil
		})
		rt := spreadOut(t, w, 8, 0, slow)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if !w.runActivities(ctx, t, rt) || w.waitingBatches(t) != 1 {
			t.Fatalf("%d batches", w.waitingBatches(t))
		}
		w.settle(t, rt)
		if out := mustGet(t, rt, "a"); out.Ended() {
			t.Fatalf("%+v", out)
		}
		gone, stop := context.WithCancel(t.Context())
		stop()
		m, _ := w.receiveBatch(t)
		if err := rt.RunActivities(gone, queues.Decode(m.Text)); err == nil {
			t.Error("a worker without time acknowledges")
		}
		if err := rt.RunActivities(t.Context(), queues.Decode(m.Text)); err != nil {
			t.Error(err)
		}
		w.settle(t, rt)
		if out := mustGet(t, rt, "a"); out.Status != Completed || l.count(`3"3"`) != 1 || l.count("2") != 1 {
			t.Errorf("%s, calls %v", out.Status, l.all())
		}
		w.replays(t, rt)
	})
}

// Activities that the host abandons fail, with that as the reason; nothing waits for ever.
func TestSpreadThatIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		rt := spreadOut(t, w, 9, 10<<10, plainActivity(l))
		m, _ := w.receiveBatch(t)
		for range 2 { // the host may report it twice
			noError(t, rt.GiveUpActivities(t.Context(), queues.Decode(m.Text), "five crashes"))
		}
		w.settle(t, rt)
		out := mustGet(t, rt, "a")
		given := 0
		for _, c := range out.Calls {
			if c.Failure != nil && c.Failure.Code == "GivenUp" && c.Failure.Message == "five crashes" {
				given++
			}
		}
		if out.Status != Completed || given != 7 {
			t.Errorf("%s, %d given up", out.Status, given)
		}
		w.replays(t, rt)
	})
}

// A lost batch is sent again after a while, also if it is lost after others have reported.
func TestSpreadThatIsLost(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, 80 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			rt := spreadOut(t, w, 60, 0, plainActivity(l))
			m, _ := w.receiveBatch(t)
			if late > 0 { // the other one reports when the check is due
				time.Sleep(late)
				w.runActivities(t.Context(), t, rt)
				for w.deliver(t.Context(), t, rt) {
				}
			}
			if err := w.queues.Delete(t.Context(), activityQueue, m.ID, m.PopReceipt); err != nil && late == 0 {
				t.Fatal(err)
			}
			begin := time.Now()
			for !mustGet(t, rt, "a").Ended() && time.Since(begin) < 24*time.Hour {
				time.Sleep(5 * time.Minute)
				noError(t, errorOf(rt.Sweep(t.Context(), 10)))
				if late > 0 {
					for { // the lost message stays lost
						b, ok := w.receiveBatch(t)
						if !ok {
							break
						}
						if b.ID != m.ID {
							noError(t, rt.RunActivities(t.Context(), queues.Decode(b.Text)))
						}
						noError(t, w.queues.Delete(t.Context(), activityQueue, b.ID, b.PopReceipt))
					}
				} else {
					w.runActivities(t.Context(), t, rt)
				}
				for w.deliver(t.Context(), t, rt) {
				}
			}
			if out := mustGet(t, rt, "a"); out.Status != Completed || rt.Counts().Woken < 1 || time.Since(begin) > 4*time.Hour {
				t.Errorf("%s after %v, woken %d", out.Status, time.Since(begin), rt.Counts().Woken)
			}
			w.replays(t, rt)
		})
	}
}

// An activity in another process learns at a heartbeat that its result is no longer needed.
func TestSpreadActivityThatIsNotWantedAnyMore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		busy := NewActivity("busy", func(ctx context.Context, in string) (string, error) {
			for in[0] >= '2' {
				if err := Heartbeat(ctx, 1); err != nil {
					l.add("stopped")
					return "", err
				}
				_ = pause(ctx, time.Second)
			}
			return "", nil
		})
		rt := spreadOut(t, w, 3, 0, busy)
		done := make(chan bool)
		go func() { done <- w.runActivities(t.Context(), t, rt) }()
		time.Sleep(10 * time.Second)
		noError(t, rt.Terminate(t.Context(), "a", "enough"))
		w.deliver(t.Context(), t, rt)
		if !<-done || l.count("stopped") != 1 {
			t.Errorf("calls: %v", l.all())
		}
		w.settle(t, rt)
		if out := mustGet(t, rt, "a"); out.Status != Terminated {
			t.Errorf("%+v", out)
		}
	})
}

func FuzzDecodeBatch(f *testing.F) {
	for _, b := range []activityBatch{
		{RuntimeProvider: provider, Orchestration: "a", Execution: 1, Activities: []activityCall{{Task: 1, Name: "step", Input: []byte("1"), Attempt: 1}}},
		{RuntimeProvider: provider, Orchestration: "a", Execution: 1, CorrelationID: "c", Blob: hashOf(nil)},
	} {
		text, err := marshal(b)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"runtimeProvider":"roundhouse","workflowInstanceId":"a","execution":1,"blob":"../b/x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := decodeBatch(body)
		if err != nil {
			if !errors.Is(err, ErrBatch) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		if strings.ContainsAny(b.Blob, "/.") {
			t.Errorf("blob %q", b.Blob)
		}
		text := must(marshal(b))(t)
		again, err := decodeBatch(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if twice, err := marshal(again); err != nil || !bytes.Equal(text, twice) {
			t.Errorf("%s became %s: %v", text, twice, err)
		}
	})
}

// Results that another process delivers while the process that sent the activities still works do not send them again.
func TestResultsDoNotSendTheirBatchAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		long := NewActivity("long", func(ctx context.Context, n int) (int, error) { return n, pause(ctx, 5*time.Second) })
		step := l.step("step")
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			first := long.Call(ctx, n)
			_, err := All(step.Call(ctx, 1), step.Call(ctx, 2))
			return n, errors.Join(err, errorOf(first.Await()))
		})
		c := Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{long, step}, Queues: w.queues, MaxInlineActivities: 1}
		here, there := w.configured(t, nil, c), w.configured(t, nil, c)
		done := runInBackground(t.Context(), here, startOf("a", 1))
		time.Sleep(time.Second)
		wants(t, "batches", w.waitingBatches(t), 1)
		w.runActivities(t.Context(), t, there)
		w.deliverDue(t, there)
		wants(t, "batches that were sent again", w.waitingBatches(t), 0)
		<-done
		w.attend(t, here, time.Minute)
		wants(t, "it ends", stands(t, here, "a"), "Completed 1")
		wants(t, "calls", l.all(), map[string]int{"step(1)": 1, "step(2)": 1})
		w.replays(t, here)
	})
}
