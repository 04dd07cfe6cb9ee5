package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// usualTasks is enough calls for most executions.
const usualTasks = 4

// maxTaskSlab bounds the calls of one slab.
const maxTaskSlab = 64

// add registers a call and numbers it.
func (x *execution) add(call task) *task {
	if len(x.taskSlab) == cap(x.taskSlab) {
		x.taskSlab = make([]task, 0, max(1, min(2*cap(x.taskSlab), maxTaskSlab)))
	}
	x.taskSlab = append(x.taskSlab, call)
	t := &x.taskSlab[len(x.taskSlab)-1]
	t.number = len(x.tasks) + 1
	t.began = x.clock.UnixMicro()
	if t.options == nil {
		t.options = &x.noOptions
	}
	if x.tasks == nil {
		x.tasks = make([]*task, 0, usualTasks)
	}
	x.tasks = append(x.tasks, t)
	if !t.kind.outside() {
		x.openCount++
	}
	return t
}

func (x *execution) callActivity(ctx *Context, name string, input json.RawMessage, options *callOptions) *task {
	x.noteAction()
	t := x.schedule(task{kind: activityTask, name: name, input: input, options: options, shielded: ctx.shielded})
	ctx.scope.add(t)
	return t
}

// schedule decides the call of an activity.
func (x *execution) schedule(call task) *task {
	t := x.add(call)
	t.running = true
	x.runningCount++
	x.decide(event{Kind: activityScheduled, Task: t.number, Name: t.name, Payload: t.input, Shielded: t.shielded, Target: t.target()})
	return t
}

// target returns the fields of the decision to call an activity beyond the call itself; nil without any.
func (t *task) target() *target {
	if t.undoes == 0 && !t.options.local {
		return nil
	}
	return &target{Undoes: t.undoes, Local: t.options.local}
}

// callChild decides the call of a sub-orchestration.
func (x *execution) callChild(ctx *Context, name string, input json.RawMessage, options *callOptions) *task {
	x.noteAction()
	child := options.id
	if child == "" {
		child = x.childID(name, input)
	}
	t := x.add(task{kind: childTask, name: name, input: input, options: options, shielded: ctx.shielded, child: child, joins: x.openChild(child)})
	if options.id != "" {
		if x.named == nil {
			x.named = map[string]*task{}
		}
		x.named[child] = t
	}
	x.openChildren = append(x.openChildren, t)
	ctx.scope.add(t)
	aim := target{Child: t.child}
	if options.close != CancelChild {
		aim.Close = options.close
	}
	e := event{Kind: childScheduled, Task: t.number, Name: name, Payload: input, Shielded: t.shielded, Target: &aim}
	if options.retry.MaxAttempts > 1 {
		e.Attempt = options.retry.MaxAttempts
	}
	x.decide(e)
	return t
}

// checkChild reports whether a call may have the id that WithID gives it. A sub-orchestration is identified by its id,
// its input and its caller: a call with the same ones joins it, and others get ErrConflict.
func (x *execution) checkChild(name string, input json.RawMessage, id string) error {
	if id == "" || x.rules < rules3 {
		return nil
	}
	if id == x.id {
		return fmt.Errorf("%q is the id of the calling orchestration: %w", id, ErrConflict)
	}
	if t := x.named[id]; t != nil && !t.undone && (t.name != name || !bytes.Equal(t.input, input)) {
		return fmt.Errorf("%q is the id of an earlier call, with another input or of another orchestrator: %w", id, ErrConflict)
	}
	return nil
}

// childID derives the id of a sub-orchestration from the orchestrator's name, the input, and the number of equal calls
// before. So an attempt that keeps the results of the previous one finds the same sub-orchestration, even when its
// code has changed.
func (x *execution) childID(name string, input json.RawMessage) string {
	same := name + "-" + hashOf(input)[:16]
	if x.children == nil {
		x.children = map[string]int{}
	}
	x.children[same]++
	id := fmt.Sprintf("%s:%d-%s-%d", x.id, x.base, same, x.children[same])
	if !validID(id) {
		id = "child-" + hashOf([]byte(id))
	}
	return id
}

// detach decides the start of an orchestration without a caller.
func (x *execution) detach(name, id string, input json.RawMessage) string {
	x.noteAction()
	if id == "" {
		id = x.childID(name, input)
	}
	x.decide(event{Kind: childDetached, Name: name, Payload: input, Target: &target{Child: id}})
	return id
}

// timer decides a timer. Its recorded input is the duration, so that an attempt that keeps results recognises the
// timer.
func (x *execution) timer(ctx *Context, d time.Duration) *task {
	t := x.add(task{kind: timerTask, name: "timer", input: fmt.Appendf(nil, "%q", d), due: x.clock.Add(d).UnixMicro(), shielded: ctx.shielded})
	ctx.scope.add(t)
	x.decide(event{Kind: timerScheduled, Task: t.number, Name: t.name, Payload: t.input, Due: t.due, Shielded: t.shielded})
	return t
}

// sideEffect returns the recorded value during a replay, else the value of the previous attempt if it left one, else
// the result of make. It records the value.
func (x *execution) sideEffect(name string, make func() (json.RawMessage, error)) (json.RawMessage, error) {
	kept := x.priorSideEffects[name]
	if len(kept) > 0 {
		x.priorSideEffects[name] = kept[1:]
	}
	if recorded, ok := x.recordedDecision(sideEffectRecorded, name); ok {
		x.decide(recorded)
		return recorded.Payload, nil
	}
	if len(kept) > 0 {
		x.decide(event{Kind: sideEffectRecorded, Name: name, Payload: kept[0]})
		return kept[0], nil
	}
	payload, err := make()
	if err != nil {
		return nil, err
	}
	x.decide(event{Kind: sideEffectRecorded, Name: name, Payload: payload})
	return payload, nil
}

// patched gives the same answer each time for a name: an execution that has passed the place without the patch stays
// without it.
func (x *execution) patched(name string) bool {
	if on, ok := x.patches[name]; ok {
		return on
	}
	_, recorded := x.recordedDecision(patchRecorded, name)
	on := recorded || !x.isRecorded()
	if x.patches == nil {
		x.patches = map[string]bool{}
	}
	x.patches[name] = on
	if on {
		x.decide(event{Kind: patchRecorded, Name: name})
	}
	return on
}

// isRecorded reports whether the history holds the next decision, as it does during a replay.
func (x *execution) isRecorded() bool {
	return x.replaying && (!x.more || len(x.decided) < len(x.recorded))
}

// recordedDecision returns the decision of the replayed round at this place, if it is of this kind and name.
func (x *execution) recordedDecision(kind eventKind, name string) (event, bool) {
	if i := len(x.decided); x.replaying && i < len(x.recorded) && x.recorded[i].Kind == kind && x.recorded[i].Name == name {
		return x.recorded[i], true
	}
	return event{}, false
}
