package orchestrator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// seat is the place of a process among the nodes; a test decides which one is taken over.
type seat struct {
	mu   sync.Mutex
	name string
	gone bool
}

func (p *seat) Name() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.name
}

func (p *seat) Hold(string) func() { return func() {} }

func (p *seat) Confirm(_ context.Context, name string) error {
	if p.mu.Lock(); p.gone || name != p.name {
		defer p.mu.Unlock()
		return nodes.ErrFenced
	}
	p.mu.Unlock()
	return nil
}

// fence makes others take over from the process, which continues under another name, or not at all.
func (p *seat) fence(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name, p.gone = name, name == ""
}

// takeovers are an orchestration with an activity that takes ten minutes, and two processes.
type takeovers struct {
	here, there         *Runtime
	seatHere, seatThere *seat
}

func newTakeovers(t *testing.T) *takeovers {
	t.Helper()
	w := newWorld(t)
	long := NewActivity("long", func(ctx context.Context, n int) (int, error) { return n, pause(ctx, 10*time.Minute) })
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return long.Call(ctx, n).Await() })
	x := &takeovers{seatHere: &seat{name: "here-1"}, seatThere: &seat{name: "there-1"}}
	under := func(p *seat) *Runtime {
		return w.configured(t, nil, Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{long}, Queues: w.queues, ScheduleQueue: signalQueue, Nodes: p})
	}
	x.here, x.there = under(x.seatHere), under(x.seatThere)
	return x
}

// takeOver makes a runtime take over the orchestration in the background. The channel gets the error; begun counts.
func (x *takeovers) takeOver(t *testing.T, rt *Runtime, lost string, begun *atomic.Int32) chan error {
	done := make(chan error, 1)
	go func() {
		done <- rt.TakeOver(t.Context(), Lost{Node: lost, Orchestrations: []string{"a"}, Since: time.Now()}, func(int) { begun.Add(1) })
	}()
	time.Sleep(2 * time.Second) // all effects without waiting have happened then
	return done
}

func (x *takeovers) drivenBy(t *testing.T) string {
	t.Helper()
	in := must(x.there.Inspect(context.WithoutCancel(t.Context()), "a"))(t)
	return in.Node
}

// A living process that was considered dead can take over in its turn, although it still drives the orchestration
// under its lost name.
func TestTakeoverByWhoWasTakenOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		x := newTakeovers(t)
		first := runInBackground(t.Context(), x.here, startOf("a", 1))
		time.Sleep(time.Minute)
		x.seatHere.fence("here-2")
		var begun atomic.Int32
		second := x.takeOver(t, x.there, "here-1", &begun)
		if by := x.drivenBy(t); by != "there-1" || begun.Load() != 1 {
			t.Fatalf("driven by %s, %d takeovers", by, begun.Load())
		}
		x.seatThere.fence("")
		third := x.takeOver(t, x.here, "there-1", &begun)
		if by := x.drivenBy(t); by != "here-2" || begun.Load() != 2 {
			t.Errorf("driven by %s, %d takeovers", by, begun.Load())
		}
		if r := <-first; !errors.Is(r.err, ErrElsewhere) {
			t.Errorf("under the lost name: %v", r.err)
		}
		if err := <-third; err != nil {
			t.Error(err)
		}
		if err := <-second; !errors.Is(err, nodes.ErrFenced) {
			t.Errorf("there: %v", err)
		}
		if out, err := x.here.Get(t.Context(), "a"); err != nil || out.Status != Completed {
			t.Errorf("%s %v", out.Status, err)
		}
	})
}

// A process that is taken over itself finishes no takeover: the process that takes over from it does.
func TestTakeoverByWhoIsFenced(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		x := newTakeovers(t)
		first := runInBackground(t.Context(), x.here, startOf("a", 1))
		time.Sleep(time.Minute)
		x.seatHere.fence("")
		x.seatThere.fence("")
		var begun atomic.Int32
		if err := <-x.takeOver(t, x.there, "here-1", &begun); !errors.Is(err, nodes.ErrFenced) || begun.Load() != 0 {
			t.Errorf("%v, %d takeovers begun", err, begun.Load())
		}
		<-first
	})
}

// late is a process that others take over from when it confirms its life for the first time.
type late struct {
	*seat
	next string
}

func (p late) Confirm(ctx context.Context, name string) error {
	if p.Name() == "late-1" {
		p.fence(p.next)
	}
	return p.seat.Confirm(ctx, name)
}

// A process that is taken over while it starts an orchestration starts it under its next name. A process that ends
// does not, and the caller learns that nothing was started.
func TestStartByWhoIsFenced(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]error{"late-2": nil, "": nodes.ErrFenced} {
		t.Run("next name "+next, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			o := NewOrchestrator("test", func(*Context, int) (int, error) { return 1, nil })
			rt := w.configured(t, nil, Config{Orchestrators: []AnyOrchestrator{o}, Queues: w.queues, ScheduleQueue: signalQueue, Nodes: late{&seat{name: "late-1"}, next}})
			out, err := rt.Start(t.Context(), startOf("a", 1))
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Fatalf("start: %v, want %v", err, want)
			}
			if want == nil && out.Status != Pending {
				t.Errorf("status %s, want %s", out.Status, Pending)
			}
			if _, err := rt.Get(t.Context(), "a"); want != nil && !errors.Is(err, ErrNotFound) {
				t.Errorf("get after the failed start: %v, want %v", err, ErrNotFound)
			}
		})
	}
}
