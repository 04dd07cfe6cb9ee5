package orchestrator

import (
	"container/heap"
	"slices"
)

// waiting finds the waits of an execution, which every round records. Its cost does not depend on the number of
// coroutines.
type waiting struct {
	coroutines coroutineHeap // all that wait for a call, and some that do not
	due        dueHeap       // the times of all calls that a coroutine waits for, and some others
	room       [1]*coroutine // storage for coroutines with a single entry
}

// note records that a coroutine waits for a call.
func (w *waiting) note(f *coroutine, t *task) {
	if t.number > 0 && !f.noted {
		f.noted = true
		if w.coroutines == nil {
			w.coroutines = w.room[:0]
		}
		heap.Push(&w.coroutines, f)
	}
	w.noteDue(t)
}

// noteDue records the due time of a call.
func (w *waiting) noteDue(t *task) {
	if t.open() && t.due != 0 && t.dueNoted != t.due {
		t.dueNoted = t.due
		heap.Push(&w.due, dueCall{t.due, t})
	}
}

// waitingFor returns the open call that the execution waits for, the first one of the first coroutine that waits for a
// call, with that coroutine; nil without any.
func (x *execution) waitingFor() (call *task, by *coroutine) {
	all := &x.waiting.coroutines
	for !x.ended && len(*all) > 0 {
		f := (*all)[0]
		if i := slices.IndexFunc(f.waiting, (*task).open); i >= 0 && !f.ended {
			return f.waiting[i], f
		}
		f.noted = false
		heap.Pop(all)
	}
	return nil, nil
}

// waitingUntil returns the earliest time of the execution's waits, in microseconds; 0 for none.
func (x *execution) waitingUntil() int64 {
	if x.ended {
		return 0
	}
	earliest := x.deadline
	if stream, until := x.nextHeld(); stream != "" && (earliest == 0 || until.UnixMicro() < earliest) {
		earliest = until.UnixMicro()
	}
	all := &x.waiting.due
	for len(*all) > 0 {
		first := (*all)[0]
		if first.task.due == first.due && first.task.isWaitedFor() {
			if earliest == 0 || first.due < earliest {
				return first.due
			}
			break
		}
		first.task.dueNoted = 0
		heap.Pop(all)
	}
	return earliest
}

// isWaitedFor reports whether a coroutine waits for the call.
func (t *task) isWaitedFor() bool {
	return t.open() && slices.ContainsFunc(t.waits, func(w wait) bool { return w.coroutine.waits == w.count && !w.coroutine.ended })
}

// dueCall is a call with its due time, in microseconds.
type dueCall struct {
	due  int64
	task *task
}

// dueHeap is a heap of calls by their times.
type dueHeap []dueCall

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push appends a call for package heap.
func (h *dueHeap) Push(c any) { *h = append(*h, c.(dueCall)) }

// Pop removes and returns the last call for package heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}
