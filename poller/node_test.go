package poller_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/poller"
)

// lostNode is a node that is taken over; it counts its holds.
type lostNode struct {
	name string
	held atomic.Int32
}

func (n *lostNode) Name() string { return n.name }

func (n *lostNode) Hold(string) func() {
	n.held.Add(1)
	return func() { n.held.Add(-1) }
}

func on(n *lostNode) func(*poller.RunnerConfig) { return func(c *poller.RunnerConfig) { c.Node = n } }

// The lease of a lost node is free immediately, and only for that node's name.
func TestReleaseNode(t *testing.T) {
	tests := map[string]struct {
		node     string
		released bool
	}{
		"the lost one": {"lost-1", true}, "another": {"taker", false}, "part of its name": {"lost", false}, "longer": {"lost-12", false},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.source.Append(3)
				plan := &faults.Plan{At: 4, Fault: faults.CrashBefore} // read, fetch, acquire, deliver
				if _, err := w.process(plan, on(&lostNode{name: "lost-1"})).Tick(t.Context()); !errors.Is(err, faults.ErrCrashed) {
					t.Fatal(err)
				}
				taker := &lostNode{name: "taker"}
				for _, want := range []bool{tt.released, false} {
					if did, err := w.operator().ReleaseNode(t.Context(), name, tt.node); did != want || err != nil {
						t.Errorf("released: %v, %v; want %v", did, err, want)
					}
				}
				result := w.tick(w.process(nil, on(taker)))
				if free := result.Rows == 3 && result.Skipped == nil; free != tt.released || !free && !errors.Is(result.Skipped, poller.ErrHeld) {
					t.Errorf("%+v", result)
				}
				if n := taker.held.Load(); n != 0 {
					t.Errorf("%d holds after the tick", n)
				}
			})
		})
	}
}

// A node that lives on cannot commit its work from before the takeover, and continues under its new name.
func TestReleaseNodeFences(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		n := &lostNode{name: "fenced"}
		w.deliver = func(context.Context, poller.Delivery) error {
			w.deliver = nil
			if n.held.Load() != 1 {
				t.Errorf("%d holds while it delivers", n.held.Load())
			}
			n.name = "fenced again"
			if did, err := w.operator().ReleaseNode(t.Context(), name, "fenced"); !did || err != nil {
				t.Errorf("%v %v", did, err)
			}
			return nil
		}
		r := w.process(nil, on(n))
		if _, err := r.Tick(t.Context()); !errors.Is(err, poller.ErrLost) {
			t.Errorf("the one that was taken over from: %v", err)
		}
		if result := w.tick(r); result.Rows != 3 {
			t.Errorf("%+v", result)
		}
	})
}

func TestReleaseNodeFails(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		if did, err := w.operator().ReleaseNode(t.Context(), name, "lost"); did || err != nil {
			t.Errorf("one that never ran: %v %v", did, err)
		}
		if _, err := w.operator().ReleaseNode(t.Context(), name, ""); !errors.Is(err, poller.ErrInvalid) {
			t.Error(err)
		}
	})
}

// A release breaks off at every call and in every way. Another one completes it.
func TestReleaseNodeCrashAtEveryCall(t *testing.T) {
	run := func(t *testing.T, w *world, plan *faults.Plan) {
		w.source.Append(3)
		lost := &faults.Plan{At: 4, Fault: faults.CrashBefore} // read, fetch, acquire, deliver
		if _, err := w.process(lost, on(&lostNode{name: "lost"})).Tick(t.Context()); !errors.Is(err, faults.ErrCrashed) {
			t.Fatal(err)
		}
		broken := poller.Operator{Store: poller.BlobStore{Blobs: faults.Blobs(w.state, plan.Intercept)}}
		did, err := broken.ReleaseNode(t.Context(), name, "lost")
		if err == nil && !did {
			t.Error("neither released nor an error")
		}
		plan.Wait()
		if _, err := w.operator().ReleaseNode(t.Context(), name, "lost"); err != nil {
			t.Error(err)
		}
		if result := w.tick(w.process(nil, nil)); result.Rows != 3 {
			t.Errorf("%+v", result)
		}
	}
	count := &faults.Plan{}
	bubble(t, func(t *testing.T, w *world) { run(t, w, count) })
	for at := range count.Calls() {
		for _, fault := range faults.Faults() {
			t.Run(fmt.Sprintf("%s-%d", fault, at+1), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) { run(t, w, &faults.Plan{At: at + 1, Fault: fault}) })
			})
		}
	}
}
