package orchestrator

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// handoverTrial is an orchestration at an activity that runs on its driver's goroutine and does not return.
type handoverTrial struct {
	w       *world
	rt      *Runtime
	l       *ledger
	release chan struct{}      // lets the activity return
	beat    chan struct{}      // makes it send a heartbeat
	cancel  context.CancelFunc // ends the context of Run
	out     chan Outcome       // the result of Run
}

// begin runs the orchestration up to the activity. A coroutine calls another activity once an event or a minute has
// come.
func beginHandover(t *testing.T, wait func(*Context) error) *handoverTrial {
	r := &handoverTrial{w: newWorld(t), l: &ledger{}, release: make(chan struct{}), beat: make(chan struct{}), out: make(chan Outcome, 1)}
	where := NewActivity("where", func(context.Context, int) (int64, error) { return new(watchdog).goroutineID(), nil })
	at := make(chan int64, 1)
	block := NewActivity("block", func(ctx context.Context, n int) (int, error) {
		at <- new(watchdog).goroutineID()
		for {
			select {
			case <-r.beat:
				if err := Heartbeat(ctx, "half"); err != nil {
					r.l.add("told to stop")
				}
			case <-r.release:
				return n, nil
			}
		}
	})
	beside := r.l.step("beside")
	before := make(chan int64, 1)
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		goroutine, err := where.Call(ctx, 0).Await()
		if err != nil {
			return 0, err
		}
		if !ctx.Replaying() {
			before <- goroutine
		}
		if wait != nil {
			Go(ctx, func(ctx *Context) (int, error) {
				if err := wait(ctx); err != nil {
					return 0, err
				}
				return beside.Call(ctx, 1).Await()
			})
		}
		return block.Call(ctx, n).Await()
	})
	r.rt = r.w.process(t, nil, o, where, block, beside)
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() {
		s := startOf("a", 1)
		s.Timeout = time.Hour
		out, err := r.rt.Run(ctx, s)
		if err != nil {
			t.Errorf("run: %v", err)
		}
		r.out <- out
	}()
	synctest.Wait()
	if first, second := <-before, <-at; first != second {
		t.Errorf("the activities ran on the goroutines %d and %d", first, second)
	}
	return r
}

// deliver delivers a signal in the background.
func (r *handoverTrial) deliver(t *testing.T, s Signal) {
	go func() {
		if _, err := r.rt.Deliver(t.Context(), s); err != nil {
			t.Errorf("signal: %v", err)
		}
	}()
}

// Signals and events that arrive while an activity runs on the driver's goroutine are applied immediately, not when
// the activity has returned.
func TestHandOver(t *testing.T) {
	t.Parallel()
	status := func(want Status) func(*testing.T, *handoverTrial) {
		return func(t *testing.T, r *handoverTrial) {
			if got := r.w.status(t, "a").String("RuntimeStatus"); got != string(want) {
				t.Errorf("the status is %s while the activity runs, want %s", got, want)
			}
		}
	}
	besides := func(t *testing.T, r *handoverTrial) {
		if r.l.count("beside(1)") != 1 {
			t.Error("the coroutine did not go on")
		}
	}
	onEvent := func(ctx *Context) error { _, err := Event[int](ctx, "go").Await(); return err }
	onTimer := func(ctx *Context) error { _, err := Timer(ctx, time.Minute).Await(); return err }
	raised := Signal{SignalID: "raised", InstanceID: "a", RuntimeProvider: provider, Type: ExternalSignal, Payload: Payload{Event: "go", Data: json.RawMessage("1")}}
	tests := map[string]struct {
		wait  func(*Context) error // the wait of the coroutine; nil for no coroutine
		comes func(*testing.T, *handoverTrial)
		check func(*testing.T, *handoverTrial) // while the activity still runs
		ends  Status
	}{
		"terminate":                     {nil, func(t *testing.T, r *handoverTrial) { r.deliver(t, commandSignal("a", "terminate")) }, status(Terminated), Terminated},
		"cancel":                        {nil, func(t *testing.T, r *handoverTrial) { r.deliver(t, commandSignal("a", "cancel")) }, status(Canceled), Canceled},
		"suspend, and its time is over": {nil, func(t *testing.T, r *handoverTrial) { r.deliver(t, commandSignal("a", "suspend")) }, status(Suspended), Failed},
		"event":                         {onEvent, func(t *testing.T, r *handoverTrial) { r.deliver(t, raised) }, besides, Completed},
		"timer":                         {onTimer, func(*testing.T, *handoverTrial) { time.Sleep(time.Minute + time.Second) }, besides, Completed},
		"time-out":                      {nil, func(*testing.T, *handoverTrial) { time.Sleep(time.Hour + time.Second) }, status(Failed), Failed},
		"progress": {nil, func(_ *testing.T, r *handoverTrial) { time.Sleep(time.Minute); r.beat <- struct{}{} }, func(t *testing.T, r *handoverTrial) {
			time.Sleep(time.Minute) // progress lingers, because it leads to no decision
			synctest.Wait()
			if n := count(r.w.stored(t, "a"), activityProgressed); n != 1 {
				t.Errorf("the progress is in %d rounds while the activity runs", n)
			}
		}, Completed},
		"end of the context": {nil, func(_ *testing.T, r *handoverTrial) { r.cancel(); time.Sleep(10 * time.Second) }, func(t *testing.T, r *handoverTrial) {
			if len(r.out) != 1 {
				t.Error("Run waits for the activity longer than the grace period")
			}
		}, Running},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := beginHandover(t, tt.wait)
				defer r.cancel()
				tt.comes(t, r)
				synctest.Wait()
				tt.check(t, r)
				close(r.release)
				if out := <-r.out; out.Status != tt.ends {
					t.Errorf("it ends as %s: %v", out.Status, out.Failure)
				}
				r.w.stored(t, "a")
			})
		})
	}
}

// count returns how many events of a kind were learned.
func count(all []storedExecution, kind eventKind) (n int) {
	for _, g := range all {
		for _, r := range g.rounds {
			for _, e := range r.Learned {
				if e.Kind == kind {
					n++
				}
			}
		}
	}
	return n
}

// An activity that ends its goroutine fails, and the orchestration continues elsewhere.
func TestHandOverByGoexit(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := NewActivity("step", func(_ context.Context, n int) (int, error) {
		if l.add("step"); n%2 == 0 {
			runtime.Goexit()
		}
		return n, nil
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		failed := 0
		for i := range n {
			if _, err := step.Call(ctx, i).Await(); err != nil {
				failed++
			}
		}
		return failed, nil
	})
	out := mustRun(t, w.process(t, nil, o, step), startOf("a", 6))
	if out.Status != Completed || string(out.Output) != "3" || l.count("step") != 6 {
		t.Errorf("%s %v with output %s, calls %v", out.Status, out.Failure, out.Output, l.all())
	}
	w.stored(t, "a")
}
