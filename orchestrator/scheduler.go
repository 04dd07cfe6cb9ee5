package orchestrator

import (
	"container/heap"
	"slices"
)

// scheduler decides which coroutine of an execution runs next: each runs until it waits, in the order in which they
// were made, over and over. The cost of a turn depends on the coroutines that can continue, not on those that wait.
type scheduler struct {
	ready       coroutineHeap // may run, after the current one in the order
	later       coroutineHeap // may run, before the current one in the order
	conditional []*coroutine  // wait for a condition, which others can make true
	place       int           // number of the current one; 0 for none
	room        [1]*coroutine // storage for ready with a single entry
}

// wake records that a coroutine may run.
func (t *scheduler) wake(f *coroutine) {
	switch {
	case f.ended || f.scheduled:
		return
	case f.number > t.place:
		if t.ready == nil {
			t.ready = t.room[:0]
		}
		heap.Push(&t.ready, f)
	default:
		heap.Push(&t.later, f)
	}
	f.scheduled = true
}

// beginPass begins a pass in which every coroutine that may run gets one turn.
func (t *scheduler) beginPass() {
	t.place = 0
	t.ready, t.later = append(t.ready, t.later...), t.later[:0]
	heap.Init(&t.ready)
	for _, f := range t.conditional {
		t.wake(f)
	}
}

// next returns the next coroutine of the pass; nil at its end.
func (t *scheduler) next() *coroutine {
	for len(t.ready) > 0 {
		f := heap.Pop(&t.ready).(*coroutine)
		f.scheduled = false
		if !f.ended && f.ready() {
			t.place = f.number
			return f
		}
	}
	return nil
}

// turn runs the coroutines until all wait, or the execution has ended.
func (x *execution) turn() {
	x.watchdog.begin()
	defer x.watchdog.end()
	for progress := !x.suspended && !x.held && !x.stalled; progress; {
		progress = false
		x.scheduler.beginPass()
		for !x.ended {
			f := x.scheduler.next()
			if f == nil {
				break
			}
			progress = true
			x.current = f
			x.watchdog.runs(f.goroutine)
			f.body.resume()
		}
	}
	x.current, x.scheduler.place = nil, 0
	if x.endedCoroutines > len(x.coroutines)/2 {
		x.coroutines = slices.DeleteFunc(x.coroutines, func(f *coroutine) bool { return f.ended })
		x.endedCoroutines = 0
	}
}

// coroutineHeap is a heap of coroutines by their numbers.
type coroutineHeap []*coroutine

func (h coroutineHeap) Len() int           { return len(h) }
func (h coroutineHeap) Less(i, j int) bool { return h[i].number < h[j].number }
func (h coroutineHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push appends a coroutine for package heap.
func (h *coroutineHeap) Push(f any) { *h = append(*h, f.(*coroutine)) }

// Pop removes and returns the last coroutine for package heap.
func (h *coroutineHeap) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return f
}
