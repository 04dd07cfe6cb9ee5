package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/worker"
	"github.com/vibedata/roundhouse/queues"
)

// A worker handles messages of its own process immediately, although the queue was empty for hours.
func TestExecuteAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld()
		step := w.step(0)
		greet := orchestrator.NewOrchestrator("greet", func(ctx *orchestrator.Context, name string) (string, error) {
			return step.Call(ctx, "Hello, "+name).Await()
		})
		run, stop := mustRun(t, w.config(nil, orchestrators(greet), step))
		defer stop()
		time.Sleep(3 * time.Hour)
		began := time.Now()
		for range 2 { // the second call only waits
			greeting, err := worker.Execute(t.Context(), run, greet, "greet-1", "World")
			if err != nil || greeting != "Hello, World" {
				t.Errorf("%q, %v", greeting, err)
			}
		}
		out := mustEnd(t, run, "greet-1")
		if took := out.EndedAt.Sub(began); took > 10*time.Millisecond || w.count("Hello, World") != 1 {
			t.Errorf("it took %v, and the activity ran %d times", took, w.count("Hello, World"))
		}
		w.mustLength(t, signalQueue, 0)
	})
}

// A caller learns why an orchestration has no result.
func TestResultOfAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld()
		broken := orchestrator.NewOrchestrator("broken", func(*orchestrator.Context, string) (string, error) { return "", errors.New("out of paper") })
		other := orchestrator.NewOrchestrator("other", func(*orchestrator.Context, string) (string, error) { return "", nil })
		run, stop := mustRun(t, w.config(nil, orchestrators(broken, other)))
		defer stop()
		_, err := worker.Execute(t.Context(), run, broken, "a", "")
		if f := failure(t, err); f.Message != "out of paper" {
			t.Errorf("%+v", f)
		}
		if _, err := worker.Result(t.Context(), run, other, "a"); !errors.Is(err, orchestrator.ErrConflict) {
			t.Errorf("as another: %v", err)
		}
		if _, err := worker.Result(t.Context(), run, other, "b"); !errors.Is(err, orchestrator.ErrNotFound) {
			t.Errorf("one that there is not: %v", err)
		}
	})
}

// Timers and events are handled when they are due, or at most a poll later. An idle worker polls, and does not spin.
func TestTimerAndEvent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, polls := newWorld(), 0
		step := w.step(0)
		c := w.config(nil, orchestrators(order(time.Hour, step)), step)
		c.Runtime.Queues = faults.Queues(w.queues, func(ctx context.Context, call faults.Call, next func(context.Context) error) error {
			if call.Operation == "Receive" {
				w.did("poll")
			}
			return next(ctx)
		})
		run, stop := mustRun(t, c)
		defer stop()
		noError(t, worker.Start(t.Context(), run, order(time.Hour, step), "a", "a"))
		began := time.Now()
		time.Sleep(2 * time.Hour)
		if polls = w.count("poll"); polls > 3*2*3600*11/10+200 {
			t.Errorf("%d polls in two hours", polls)
		}
		noError(t, run.Runtime().Raise(t.Context(), "a", "paid", "cash", ""))
		out := mustEnd(t, run, "a")
		if took := out.EndedAt.Sub(began); string(out.Output) != `"a-first cash a-last"` || took > 2*time.Hour+time.Second {
			t.Errorf("%s after %v", out.Output, took)
		}
		timer := out.Calls[1]
		if late := timer.EndedAt.Sub(began) - time.Hour; late < 0 || late > 2*time.Second {
			t.Errorf("the timer was %v late: %+v", late, timer)
		}
	})
}

// Every message is lost: the sweeper wakes waiting orchestrations.
func TestLostMessages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld()
		step := w.step(0)
		run, stop := mustRun(t, w.config(nil, orchestrators(order(time.Hour, step)), step))
		noError(t, errors.Join(worker.Start(t.Context(), run, order(time.Hour, step), "a", "a"), run.Runtime().Raise(t.Context(), "a", "paid", "cash", "")))
		time.Sleep(time.Minute)
		stop()
		w.queues = queues.NewMemory()
		run, stop = mustRun(t, w.config(nil, orchestrators(order(time.Hour, step)), step))
		defer stop()
		if out := mustEnd(t, run, "a"); string(out.Output) != `"a-first cash a-last"` || run.Runtime().Counts().Woken != 1 {
			t.Errorf("%s %s, woken %d times", out.Status, out.Output, run.Runtime().Counts().Woken)
		}
	})
}

// Many orchestrations, and more activities than one process may run, on two workers: each activity runs once, also
// one that outlasts the visibility of its message.
func TestTwoWorkers(t *testing.T) {
	t.Parallel()
	const many, wide = 20, 40
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		step := w.step(time.Minute)
		fan := orchestrator.NewOrchestrator("fan", func(ctx *orchestrator.Context, in string) (int, error) {
			var all []*orchestrator.Future[string]
			for i := range wide {
				all = append(all, step.Call(ctx, fmt.Sprint(in, "/", i)))
			}
			got, err := orchestrator.All(all...)
			return len(got), err
		})
		c := w.config(nil, orchestrators(fan), step)
		c.Runtime.MaxInlineActivities = 10
		first, stop1 := mustRun(t, c)
		defer stop1()
		_, stop2 := mustRun(t, c)
		defer stop2()
		for n := range many {
			noError(t, worker.Start(t.Context(), first, fan, id(n), id(n)))
		}
		for n := range many {
			if got, err := worker.Result(t.Context(), first, fan, id(n)); err != nil || got != wide {
				t.Errorf("%s: %d, %v", id(n), got, err)
			}
			for i := range wide {
				if runs := w.count(fmt.Sprint(id(n), "/", i)); runs != 1 {
					t.Errorf("activity %d of %s ran %d times", i, id(n), runs)
				}
			}
		}
		w.mustLength(t, activityQueue, 0)
	})
}

// A worker that stops leaves its work to another one, or finishes it if it has the time.
func TestStop(t *testing.T) {
	t.Parallel()
	for patience, runs := range map[time.Duration]string{0: "stopped", 20 * time.Minute: "finished"} {
		t.Run(runs, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld()
				step := w.step(10 * time.Minute)
				slow := orchestrator.NewOrchestrator("slow", func(ctx *orchestrator.Context, in string) (string, error) { return step.Call(ctx, in).Await() })
				c := w.config(nil, orchestrators(slow), step)
				c.StopTimeout = patience
				run, stop := mustRun(t, c)
				noError(t, worker.Start(t.Context(), run, slow, "a", "a"))
				time.Sleep(5 * time.Minute)
				began := time.Now()
				stop()
				took := time.Since(began)
				if done := w.count("a"); patience == 0 && (done != 0 || took > 10*time.Second) || patience > 0 && (done != 1 || took > 6*time.Minute) {
					t.Errorf("it stopped after %v, and %d activities have ended", took, done)
				}
				run, stop = mustRun(t, c)
				defer stop()
				if got, err := worker.Result(t.Context(), run, slow, "a"); err != nil || got != "a" || w.count("a") != 1 {
					t.Errorf("%q, %v, after %d runs", got, err, w.count("a"))
				}
			})
		})
	}
}

// A worker dies at every storage call, or the call fails: another worker, or the same one, drives the orchestration
// to its end.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, plan *faults.Plan) {
		w := newWorld()
		step := w.step(0)
		starter := must(worker.New(t.Context(), w.config(nil, orchestrators(order(time.Minute, step)), step)))(t)
		noError(t, errors.Join(worker.Start(t.Context(), starter, order(time.Minute, step), "a", "a"), starter.Runtime().Raise(t.Context(), "a", "paid", "cash", "")))
		c := w.config(plan, orchestrators(order(time.Minute, step)), step)
		first, err := worker.New(t.Context(), c)
		if err != nil && !plan.Done() {
			t.Fatal(err)
		}
		if err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
			defer cancel()
			if err := first.Run(ctx); err != nil {
				t.Error(err)
			}
		}
		second, stop := mustRun(t, w.config(nil, orchestrators(order(time.Minute, step)), step))
		defer stop()
		out := mustEnd(t, second, "a")
		if string(out.Output) != `"a-first cash a-last"` || w.count("a-first") > 2 || w.count("a-last") > 2 {
			t.Errorf("%s %s %v: %v", out.Status, out.Output, out.Failure, w.runs)
		}
		plan.Wait()
		time.Sleep(15 * time.Minute) // the remaining messages are redelivered and recognized
		w.mustLength(t, signalQueue, 0)
		w.mustLength(t, signalQueue+"-dead-letters", 0)
	}
	count := &faults.Plan{}
	synctest.Test(t, func(t *testing.T) { run(t, count) })
	calls := len(count.Calls())
	if calls < 30 {
		t.Fatalf("only %d calls", calls)
	}
	for at := 1; at <= calls; at++ {
		for _, fault := range faults.Faults() {
			name := fmt.Sprintf("%d-%v", at, fault)
			if !sample.Keep(t, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				sample.Repeat(t)
				synctest.Test(t, func(t *testing.T) { run(t, &faults.Plan{At: at, Fault: fault}) })
			})
		}
	}
}

// Two workers on a real emulator.
func TestAzurite(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	account := storage.Account(t)
	w := newWorld()
	stores, queueStore, blobStore, err := open(account)
	if err != nil {
		t.Fatal(err)
	}
	w.tables, w.queues, w.blobs = stores, queueStore, blobStore
	step := w.step(0)
	payment := orchestrator.NewOrchestrator("payment", func(ctx *orchestrator.Context, in string) (string, error) {
		if _, err := step.Call(ctx, in).Await(); err != nil {
			return "", err
		}
		return orchestrator.Event[string](ctx, "paid").Await()
	})
	name := strings.ToLower(azuritetest.Name("w"))
	c := w.config(nil, orchestrators(payment), step)
	c.Runtime.Table, c.Runtime.IndexTable, c.Runtime.TaskTable, c.Runtime.Container = name, name+"parked", name+"tasks", name
	c.Runtime.SignalQueue, c.Runtime.ScheduleQueue, c.Runtime.ActivityQueue = name+"-s", name+"-t", name+"-a"
	first, stop1 := mustRun(t, c)
	defer stop1()
	_, stop2 := mustRun(t, c)
	defer stop2()
	for n := range 10 {
		noError(t, worker.Start(t.Context(), first, payment, id(n), id(n)))
	}
	for n := range 10 {
		noError(t, first.Runtime().Raise(t.Context(), id(n), "paid", "cash", ""))
	}
	for n := range 10 {
		if got, err := worker.Result(t.Context(), first, payment, id(n)); err != nil || got != "cash" {
			t.Errorf("%s: %q, %v", id(n), got, err)
		}
	}
}

func open(a azure.Account) (*azure.Tables, *azure.Queues, *azure.Blobs, error) {
	t, err1 := azure.NewTables(a)
	q, err2 := azure.NewQueues(a)
	b, err3 := azure.NewBlobs(a)
	return t, q, b, errors.Join(err1, err2, err3)
}
