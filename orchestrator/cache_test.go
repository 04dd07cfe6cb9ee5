package orchestrator

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
)

// listener is an orchestration that has called so many activities, and collects events until one is stop. Its output
// is the events' values.
func listener(step *Activity[int, int]) *Orchestrator[int, []int] {
	return NewOrchestrator("listener", func(ctx *Context, calls int) (got []int, err error) {
		for i := range calls {
			if _, err := step.Call(ctx, i).Await(); err != nil {
				return nil, err
			}
		}
		for {
			n, err := Event[int](ctx, "event").Await()
			if err != nil || n < 0 {
				return got, err
			}
			got = append(got, n)
		}
	})
}

func numbered(id string, n int) Signal {
	return Signal{SignalID: fmt.Sprint("event ", n), InstanceID: id, RuntimeProvider: provider, Type: ExternalSignal, Payload: Payload{Event: "event", Data: fmt.Append(nil, n)}}
}

// callCounter counts calls of storage.
type callCounter map[string]int

func (c callCounter) intercept(ctx context.Context, call faults.Call, next func(context.Context) error) error {
	c[call.Operation]++
	return next(ctx)
}

// An event reads one row in the process that drove the orchestration last. Elsewhere, and after another process has
// driven it, its rounds are read, and the result is the same.
func TestCachedExecution(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ran := 0
	step := NewActivity("step", func(_ context.Context, n int) (int, error) { ran++; return n, nil })
	process := func(calls callCounter, events int) *Runtime {
		rt := w.intercepted(t, calls.intercept, Config{Orchestrators: []AnyOrchestrator{listener(step)}, Activities: []AnyActivity{step}, CachedEvents: events})
		t.Cleanup(rt.Close)
		return rt
	}
	hereCalls, elsewhereCalls, forgetfulCalls := callCounter{}, callCounter{}, callCounter{}
	here, elsewhere, forgetful := process(hereCalls, 10_000), process(elsewhereCalls, 10_000), process(forgetfulCalls, 100)
	deliver := func(rt *Runtime, n int) Outcome {
		t.Helper()
		out := must(rt.Deliver(t.Context(), numbered("x", n)))(t)
		return out
	}
	noError(t, errorOf(here.Run(t.Context(), Start{ID: "x", Orchestrator: "listener", Input: []byte("200")})))
	for _, step := range []struct {
		name  string
		on    *Runtime
		calls callCounter
		want  map[string]int
	}{
		{"where it came to rest", here, hereCalls, map[string]int{"Get": 1, "Apply": 1}},
		{"again", here, hereCalls, map[string]int{"Get": 1, "Apply": 1}},
		{"elsewhere", elsewhere, elsewhereCalls, map[string]int{"Query": 1, "Apply": 1}},
		{"elsewhere, again", elsewhere, elsewhereCalls, map[string]int{"Get": 1, "Apply": 1}},
		{"where it was before", here, hereCalls, map[string]int{"Get": 1, "Query": 1, "Apply": 1}},
		{"where there is too little room", forgetful, forgetfulCalls, map[string]int{"Query": 1, "Apply": 1}},
		{"there, again", forgetful, forgetfulCalls, map[string]int{"Query": 1, "Apply": 1}},
	} {
		clear(step.calls)
		deliver(step.on, len(step.name))
		if diff := cmp.Diff(callCounter(step.want), step.calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	out := deliver(here, -1)
	if want := "[21,5,9,16,19,30,12]"; string(out.Output) != want || out.Status != Completed || ran != 200 {
		t.Errorf("%s %s after %d calls, want %s", out.Status, out.Output, ran, want)
	}
	if len(here.cache.entries) != 0 || here.cache.weight != 0 {
		t.Errorf("%d executions are kept of one that has ended", len(here.cache.entries))
	}
}

// A purged orchestration and a new one under its id are different, although their rows look alike.
func TestCachedExecutionOfAPurgedOrchestration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	step := NewActivity("step", func(_ context.Context, n int) (int, error) { return n, nil })
	process := func() *Runtime {
		return w.signalling(t, nil, []AnyOrchestrator{listener(step)}, []AnyActivity{step})
	}
	here, elsewhere := process(), process()
	start := Start{ID: "x", Orchestrator: "listener", Input: []byte("0")}
	noError(t, errorOf(here.Run(t.Context(), start)))
	noError(t, errorOf(here.Deliver(t.Context(), numbered("x", 1))))
	noError(t, errorOf(elsewhere.Deliver(t.Context(), numbered("x", -1))))
	noError(t, elsewhere.Purge(t.Context(), "x"))
	noError(t, errorOf(elsewhere.Run(t.Context(), start)))
	noError(t, errorOf(elsewhere.Deliver(t.Context(), numbered("x", 2))))
	out, err := here.Deliver(t.Context(), numbered("x", -1))
	if err != nil || string(out.Output) != "[2]" {
		t.Errorf("%s, %v", out.Output, err)
	}
}

// A runtime evicts cached executions when it is closed, and when others need the room: the deferred functions run
// then.
func TestCacheLetsGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	left := make(chan string, 10)
	o := NewOrchestrator("waits", func(ctx *Context, name string) (int, error) {
		defer func() { left <- name }()
		return Event[int](ctx, "event").Await()
	})
	gone := func() string {
		select {
		case name := <-left:
			return name
		default:
			return "nobody"
		}
	}
	rt := w.intercepted(t, callCounter{}.intercept, Config{Orchestrators: []AnyOrchestrator{o}, CachedEvents: 2 * (coroutineWeight + 2)})
	for _, name := range []string{"a", "b", "c"} {
		noError(t, errorOf(rt.Run(t.Context(), Start{ID: name, Orchestrator: "waits", Input: fmt.Appendf(nil, "%q", name)})))
	}
	if name := gone(); name != "a" {
		t.Errorf("%s left, not the one that rested longest", name)
	}
	rt.Close()
	for _, want := range []string{"b", "c"} {
		if name := gone(); name != want {
			t.Errorf("%s left, not %s", name, want)
		}
	}
	noError(t, errorOf(rt.Run(t.Context(), Start{ID: "d", Orchestrator: "waits", Input: []byte(`"d"`)})))
	if name := gone(); name != "d" {
		t.Errorf("%s left", name)
	}
}

func BenchmarkEvent(b *testing.B) {
	for _, calls := range []int{0, 250, 1000} {
		b.Run(fmt.Sprint(2*calls), func(b *testing.B) {
			w := newWorld(&testing.T{})
			step := NewActivity("step", func(_ context.Context, n int) (int, error) { return n, nil })
			rt, err := New(Config{Tables: w.tables, Blobs: w.blobs, Queues: w.queues, Orchestrators: []AnyOrchestrator{listener(step)}, Activities: []AnyActivity{step}, CachedEvents: 1 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer rt.Close()
			if _, err := rt.Run(b.Context(), Start{ID: "x", Orchestrator: "listener", Input: fmt.Append(nil, calls)}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if _, err := rt.Deliver(b.Context(), numbered("x", n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
