package orchestrator

import "slices"

// carryOut waits, once the function has returned, for the activities and sub-orchestrations that nobody has looked at,
// and for those that coroutines wait for which nobody has looked at: what is called is carried out. To wait for anything
// else is no work: such coroutines end with the function.
func (x *execution) carryOut(ctx *Context) {
	f := x.current
	x.waitUntilTrue(f, &task{kind: conditionTask}, func() bool { return !x.works(f) })
	for _, t := range x.tasks {
		if t.err != nil && !t.awaited && !t.canceled {
			ctx.Logger().Warn("a call failed and nobody waited for it", "call", t.name, "reason", t.err)
		}
	}
}

// works says that there is something to carry out besides the fiber that asks.
func (x *execution) works(asking *fiber) bool {
	if x.open > 0 && slices.ContainsFunc(x.tasks, func(t *task) bool { return t.works() && !t.awaited }) {
		return true
	}
	return slices.ContainsFunc(x.fibers, func(f *fiber) bool {
		return f != asking && !f.ended && !f.task.awaited && x.busy(f, len(x.fibers))
	})
}

// works says that the task is an activity or a sub-orchestration that goes on.
func (t *task) works() bool { return !t.done && (t.kind == activityTask || t.kind == childTask) }

// busy says that the fiber can run, or waits for what is to be carried out, itself or through others. depth ends the search
// among fibers that wait for each other.
func (x *execution) busy(f *fiber, depth int) bool {
	if f.ended || depth == 0 {
		return false
	}
	return f.ready() || slices.ContainsFunc(f.waiting, func(t *task) bool {
		if t.kind != fiberTask {
			return t.works()
		}
		i := slices.IndexFunc(x.fibers, func(other *fiber) bool { return other.task == t })
		return i >= 0 && x.busy(x.fibers[i], depth-1)
	})
}
