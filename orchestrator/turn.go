package orchestrator

import (
	"cmp"
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

// wait is one time that a fiber waits for a task, at a place among the tasks that it waits for.
type wait struct {
	fiber *fiber
	count int // of the fiber's waits
	task  *task
	place int
}

// over says that the fiber does not wait there any more, or that it can go on.
func (w wait) over() bool {
	return w.fiber.waits != w.count || w.fiber.ended || w.task.done || w.fiber.ready()
}

// waitFor has a fiber wait until one of the tasks is done.
func (x *execution) waitFor(f *fiber, tasks []*task) {
	f.waiting = tasks
	f.waits++
	for i, t := range tasks {
		if t.done {
			continue
		}
		w := wait{f, f.waits, t, i}
		if n := len(t.waits); n > 0 && t.waits[n-1].fiber == f {
			t.waits[n-1] = w // it has waited for it before, in a loop perhaps
		} else {
			t.waits = append(t.waits, w)
		}
		if t.kind == eventTask {
			x.receivers.add(w)
		}
	}
}

// receivers are the waits for external events, by fold of their names.
type receivers map[string]*waits

func (r *receivers) add(w wait) {
	if *r == nil {
		*r = receivers{}
	}
	name := fold(w.task.name)
	if (*r)[name] == nil {
		(*r)[name] = &waits{}
	}
	(*r)[name].add(w)
}

// first is the task that an event of that name is for: of the first fiber that waits for one; nil for none.
func (r receivers) first(name string) *task {
	all := r[fold(name)]
	if all == nil {
		return nil
	}
	for len(all.heap) > 0 {
		if w := heap.Pop(&all.heap).(wait); !w.over() {
			return w.task
		}
	}
	return nil
}

// waits are those for one name. Those that are over go when they are the first, or when they may be many.
type waits struct {
	heap waitHeap
	tidy int // length at which they are looked at
}

func (a *waits) add(w wait) {
	const few = 32
	if len(a.heap) >= max(a.tidy, few) {
		a.heap = slices.DeleteFunc(a.heap, wait.over)
		heap.Init(&a.heap)
		a.tidy = 2 * len(a.heap)
	}
	heap.Push(&a.heap, w)
}

// waitHeap is a heap of waits: those of the first fiber come first.
type waitHeap []wait

func (h waitHeap) Len() int { return len(h) }
func (h waitHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].fiber.number, h[j].fiber.number), cmp.Compare(h[i].place, h[j].place)) < 0
}
func (h waitHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push and Pop are for package heap.
func (h *waitHeap) Push(w any) { *h = append(*h, w.(wait)) }

// Pop gives the last.
func (h *waitHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	*h = (*h)[:last]
	return w
}
