package orchestrator

import (
	"cmp"
	"slices"
)

// openWork finds work to wait for at the end of an orchestrator's function. It begins each search where the last one
// ended, so that work that ends in the order in which it began is not checked repeatedly.
type openWork struct {
	tasks     int // this many of the first tasks are done, awaited, or no work
	coroutine int // number of the coroutine that was found last
}

// awaitOpenWork waits, once the orchestrator's function has returned, for activities and sub-orchestrations that were
// called but never awaited, and for coroutines that wait for such calls. So every call is completed, except abandoned
// sub-orchestrations. Coroutines that wait for anything else end with the function.
func (x *execution) awaitOpenWork(ctx *Context) {
	f := x.current
	if x.hasOpenWork(&openWork{}, f) {
		var found openWork
		x.waitUntilTrue(f, []*task{{kind: conditionTask}}, func() bool { return !x.hasOpenWork(&found, f) })
	}
	for _, t := range x.tasks {
		if t.err != nil && !t.awaited && !t.canceled {
			ctx.Logger().Warn("a call failed and nobody waited for it", "call", t.name, "error", t.err)
		}
	}
}

// hasOpenWork reports whether a coroutine other than the asking one has such work.
func (x *execution) hasOpenWork(found *openWork, asking *coroutine) bool {
	for ; found.tasks < len(x.tasks); found.tasks++ {
		if t := x.tasks[found.tasks]; t.isOpenWork() && !t.awaited && !x.outlives(t) {
			return true
		}
	}
	all := x.coroutines
	from, _ := slices.BinarySearchFunc(all, found.coroutine, func(f *coroutine, number int) int { return cmp.Compare(f.number, number) })
	for i := range all {
		f := all[(from+i)%len(all)]
		if f != asking && !f.ended && !f.task.awaited && leadsToOpenWork(f, len(all)) {
			found.coroutine = f.number
			return true
		}
	}
	return false
}

// outlives reports whether the task is a sub-orchestration that continues without its caller.
func (x *execution) outlives(t *task) bool {
	return x.rules >= rules3 && t.kind == childTask && t.options.close == AbandonChild
}

// isOpenWork reports whether the task is an activity or a sub-orchestration that has not ended.
func (t *task) isOpenWork() bool { return !t.done && (t.kind == activityTask || t.kind == childTask) }

// leadsToOpenWork reports whether the coroutine can run, or waits for open work, itself or through other coroutines.
// depth ends the search among coroutines that wait for each other.
func leadsToOpenWork(f *coroutine, depth int) bool {
	if f.ended || depth == 0 {
		return false
	}
	return f.ready() || slices.ContainsFunc(f.waiting, func(t *task) bool {
		if t.kind != coroutineTask {
			return t.isOpenWork()
		}
		return leadsToOpenWork(t.body, depth-1)
	})
}
