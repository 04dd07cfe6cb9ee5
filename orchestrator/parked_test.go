package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/queues"
)

// perWake bounds the cost of waking a parked orchestration by an event: the event's message, the host's receipt and
// deletion of it, a query of the rounds and a round.
const perWake = 5

// Ten thousand orchestrations wait for a timer or for an event. A process keeps nothing of them. Half are woken by
// events, each within its budget. The messages of all timers are lost, and the sweeper wakes the others when they are
// due.
func TestTenThousandParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		multitude := 2 * sample.Size(t, 5_000, indexSlice)
		w := newWorld(t)
		w.forgetful = true
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			timer, e := Timer(ctx, 24*time.Hour), Event[int](ctx, "go")
			if Any(ctx, timer, e) == 0 {
				return -1, nil
			}
			return e.Await()
		})
		var calls atomic.Int64
		count := func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
			calls.Add(1)
			return next(ctx)
		}
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		goroutines := bubbleGoroutines(t)
		for i := range multitude {
			if out := mustRun(t, rt, startOf(parkedID(i), i)); !out.Woken {
				t.Fatalf("%+v", out)
			}
		}
		synctest.Wait()
		if n := len(rt.active); n != 0 || len(rt.obsoleteParked) > indexSlice {
			t.Errorf("the process has %d drivers, and %d rows to forget", n, len(rt.obsoleteParked))
		}
		if n := bubbleGoroutines(t); n > goroutines {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}

		// Each event wakes a process that has no state of the orchestration.
		cold := w.intercepted(t, count, Config{Orchestrators: []AnyOrchestrator{o}})
		host := faults.Queues(w.queues, count)
		most, before := int64(0), int64(0)
		for i := range multitude / 2 {
			noError(t, cold.Raise(t.Context(), parkedID(i), "go", i, ""))
			noError(t, handOne(t.Context(), host, cold))
			now := calls.Load()
			most, before = max(most, now-before), now
		}
		if most > perWake {
			t.Errorf("an event costs up to %d transactions, of which %d are allowed", most, perWake)
		}

		w.loseMessages(t)
		sweeper := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		t.Logf("%d events, up to %d transactions each", multitude/2, most)
		time.Sleep(24*time.Hour + 6*time.Minute)
		woken, err := sweeper.Sweep(t.Context(), 2*multitude)
		if err != nil || woken != multitude/2 {
			t.Errorf("%d woken, %v", woken, err)
		}
		for w.deliver(t.Context(), t, sweeper) {
		}
		for i := range multitude {
			want := fmt.Sprint(i)
			if i >= multitude/2 {
				want = "-1"
			}
			if out := mustGet(t, sweeper, parkedID(i)); out.Status != Completed || string(out.Output) != want {
				t.Fatalf("%s is %s with %s, want %s", parkedID(i), out.Status, out.Output, want)
			}
		}
		for range 3 { // the woken ones need no further checks
			time.Sleep(time.Hour)
			if n, err := sweeper.Sweep(t.Context(), 2*multitude); err != nil || n != 0 {
				t.Errorf("%d woken again, %v", n, err)
			}
		}
		if rows := w.parked(t); len(rows) != 0 {
			t.Errorf("%d rows are left in the index", len(rows))
		}
	})
}

// bubbleGoroutines counts the goroutines of the caller's synctest bubble: those of the runtime and of other tests come
// and go meanwhile.
func bubbleGoroutines(t *testing.T) int {
	t.Helper()
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	bubble := regexp.MustCompile(`synctest bubble \d+`).Find(stacks) // the caller's stack is the first
	if bubble == nil {
		t.Fatal("the test runs in no bubble")
	}
	return len(regexp.MustCompile(`(?m)^goroutine \d+ .*\b`+string(bubble)+`\b`).FindAll(stacks, -1))
}

func parkedID(i int) string { return fmt.Sprintf("a%05d", i) }

// handOne delivers the one signal that is due to a process, as the host does.
func handOne(ctx context.Context, q queues.Store, rt *Runtime) error {
	messages, err := q.Receive(ctx, signalQueue, 1, time.Minute)
	if err != nil || len(messages) != 1 {
		return errors.Join(err, fmt.Errorf("%d signals are due", len(messages)))
	}
	s, err := DecodeSignal(queues.Decode(messages[0].Text))
	if err == nil {
		_, err = rt.Deliver(ctx, s)
	}
	return errors.Join(err, q.Delete(ctx, signalQueue, messages[0].ID, messages[0].PopReceipt))
}
