package orchestrator

import (
	"cmp"
	"container/heap"
	"slices"
)

// wait is one wait of a coroutine for a task.
type wait struct {
	coroutine *coroutine
	count     int // which wait of the coroutine it is
	task      *task
	// place is the index of the task among those that the coroutine waits for.
	place int
}

// obsolete reports whether the coroutine no longer waits there, or can continue.
func (w wait) obsolete() bool {
	return w.coroutine.waits != w.count || w.coroutine.ended || w.task.done || w.coroutine.ready()
}

// waitFor registers that a coroutine waits until one of the tasks is done.
func (x *execution) waitFor(f *coroutine, tasks []*task) {
	f.waiting = tasks
	f.waits++
	for i, t := range tasks {
		if t.done {
			continue
		}
		x.waiting.note(f, t)
		w := wait{f, f.waits, t, i}
		if n := len(t.waits); n > 0 && t.waits[n-1].coroutine == f {
			t.waits[n-1] = w // the coroutine has waited for this task before, perhaps in a loop
		} else {
			if n == 0 {
				t.waits = t.firstWait[:0]
			}
			t.waits = append(t.waits, w)
		}
		if t.kind == eventTask {
			x.receivers.add(w)
		}
	}
}

// receivers holds the waits for external events, by the folded names of the events.
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

// first returns the task that gets an event of that name: the task of the first coroutine that waits for it; nil for
// none.
func (r receivers) first(name string) *task {
	all := r[fold(name)]
	if all == nil {
		return nil
	}
	for len(all.heap) > 0 {
		if w := heap.Pop(&all.heap).(wait); !w.obsolete() {
			return w.task
		}
	}
	return nil
}

// waits holds the waits for events of one name. Obsolete ones are removed when they come first, or when they may be
// many.
type waits struct {
	heap waitHeap
	tidy int // length at which obsolete waits are removed
}

func (a *waits) add(w wait) {
	const few = 32
	if len(a.heap) >= max(a.tidy, few) {
		a.heap = slices.DeleteFunc(a.heap, wait.obsolete)
		heap.Init(&a.heap)
		a.tidy = 2 * len(a.heap)
	}
	heap.Push(&a.heap, w)
}

// waitHeap orders waits by the numbers of their coroutines.
type waitHeap []wait

func (h waitHeap) Len() int { return len(h) }
func (h waitHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].coroutine.number, h[j].coroutine.number), cmp.Compare(h[i].place, h[j].place)) < 0
}
func (h waitHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push appends a wait for package heap.
func (h *waitHeap) Push(w any) { *h = append(*h, w.(wait)) }

// Pop removes and returns the last wait for package heap.
func (h *waitHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	*h = (*h)[:last]
	return w
}
