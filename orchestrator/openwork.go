package orchestrator

import "slices"

// awaitOpenWork waits, once the orchestrator's function has returned, for activities and sub-orchestrations that were
// called but never awaited, and for coroutines that wait for such calls: a call that was made is completed. Coroutines
// that wait for anything else end with the function.
func (x *execution) awaitOpenWork(ctx *Context) {
	f := x.current
	x.waitUntilTrue(f, &task{kind: conditionTask}, func() bool { return !x.hasOpenWork(f) })
	for _, t := range x.tasks {
		if t.err != nil && !t.awaited && !t.canceled {
			ctx.Logger().Warn("a call failed and nobody waited for it", "call", t.name, "reason", t.err)
		}
	}
}

// hasOpenWork reports whether a coroutine other than the asking one has such work.
func (x *execution) hasOpenWork(asking *coroutine) bool {
	if x.openCount > 0 && slices.ContainsFunc(x.tasks, func(t *task) bool { return t.isOpenWork() && !t.awaited }) {
		return true
	}
	return slices.ContainsFunc(x.coroutines, func(f *coroutine) bool {
		return f != asking && !f.ended && !f.task.awaited && x.leadsToOpenWork(f, len(x.coroutines))
	})
}

// isOpenWork reports whether the task is an activity or a sub-orchestration that has not ended.
func (t *task) isOpenWork() bool { return !t.done && (t.kind == activityTask || t.kind == childTask) }

// leadsToOpenWork reports whether the coroutine can run, or waits for open work, itself or through other coroutines.
// depth ends the search among coroutines that wait for each other.
func (x *execution) leadsToOpenWork(f *coroutine, depth int) bool {
	if f.ended || depth == 0 {
		return false
	}
	return f.ready() || slices.ContainsFunc(f.waiting, func(t *task) bool {
		if t.kind != coroutineTask {
			return t.isOpenWork()
		}
		i := slices.IndexFunc(x.coroutines, func(other *coroutine) bool { return other.task == t })
		return i >= 0 && x.leadsToOpenWork(x.coroutines[i], depth-1)
	})
}
