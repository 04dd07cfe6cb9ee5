package orchestrator

import (
	"container/heap"
	"slices"
)

// turns has the coroutines of an execution take turns: in the order in which they were made, over and over, each as long as
// it can go on. What a turn costs depends on those that can go on, not on those that wait.
type turns struct {
	ready       fibers   // that may go on, behind the place of the one that runs
	later       fibers   // before that place
	conditional []*fiber // that wait for a condition, which others can make true
	place       int      // number of the one that runs; 0 for none
}

// rouse takes note that a fiber may go on.
func (t *turns) rouse(f *fiber) {
	switch {
	case f.ended || f.roused:
		return
	case f.number > t.place:
		heap.Push(&t.ready, f)
	default:
		heap.Push(&t.later, f)
	}
	f.roused = true
}

// begin begins a round of turns: every fiber that may go on has one.
func (t *turns) begin() {
	t.place = 0
	t.ready, t.later = append(t.ready, t.later...), t.later[:0]
	heap.Init(&t.ready)
	for _, f := range t.conditional {
		t.rouse(f)
	}
}

// next is the fiber whose turn it is; nil when each has had one.
func (t *turns) next() *fiber {
	for len(t.ready) > 0 {
		f := heap.Pop(&t.ready).(*fiber)
		f.roused = false
		if !f.ended && f.ready() {
			t.place = f.number
			return f
		}
	}
	return nil
}

// turn runs the fibers until all wait, or the execution has ended.
func (x *execution) turn() {
	x.watch.begin()
	defer x.watch.end()
	for progress := !x.suspended && !x.held && !x.stalled; progress; {
		progress = false
		x.turns.begin()
		for !x.ended {
			f := x.turns.next()
			if f == nil {
				break
			}
			progress = true
			x.current = f
			x.watch.runs(f.goroutine)
			f.coroutine.resume()
		}
	}
	x.current, x.turns.place = nil, 0
	if x.over > len(x.fibers)/2 {
		x.fibers = slices.DeleteFunc(x.fibers, func(f *fiber) bool { return f.ended })
		x.over = 0
	}
}

// fibers is a heap of fibers by their numbers.
type fibers []*fiber

func (h fibers) Len() int           { return len(h) }
func (h fibers) Less(i, j int) bool { return h[i].number < h[j].number }
func (h fibers) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push and Pop are for package heap.
func (h *fibers) Push(f any) { *h = append(*h, f.(*fiber)) }

// Pop gives the last.
func (h *fibers) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return f
}
