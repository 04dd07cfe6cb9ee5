package orchestrator

import "slices"

// awaitOpenWork waits, once the function has returned, for the activities and sub-orchestrations that nobody has looked at,
// and for those that coroutines wait for which nobody has looked at: what is called is carried out. To wait for anything
// else is no work: such coroutines end with the function.
func (x *execution) awaitOpenWork(ctx *Context) {
	f := x.current
	x.waitUntilTrue(f, &task{kind: conditionTask}, func() bool { return !x.hasOpenWork(f) })
	for _, t := range x.tasks {
		if t.err != nil && !t.awaited && !t.canceled {
			ctx.Logger().Warn("a call failed and nobody waited for it", "call", t.name, "reason", t.err)
		}
	}
}

// hasOpenWork says that there is something to carry out besides the fiber that asks.
func (x *execution) hasOpenWork(asking *coroutine) bool {
	if x.openCount > 0 && slices.ContainsFunc(x.tasks, func(t *task) bool { return t.isOpenWork() && !t.awaited }) {
		return true
	}
	return slices.ContainsFunc(x.coroutines, func(f *coroutine) bool {
		return f != asking && !f.ended && !f.task.awaited && x.leadsToOpenWork(f, len(x.coroutines))
	})
}

// isOpenWork says that the task is an activity or a sub-orchestration that goes on.
func (t *task) isOpenWork() bool { return !t.done && (t.kind == activityTask || t.kind == childTask) }

// leadsToOpenWork says that the fiber can run, or waits for what is to be carried out, itself or through others. depth ends the search
// among fibers that wait for each other.
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
