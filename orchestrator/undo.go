package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// undoCall is the call of an activity that undoes another call.
type undoCall struct {
	name    string
	input   json.RawMessage
	options *callOptions
}

// WithUndo sets the activity that undoes the call, and its input; Undo calls it. The activity must be harmless when the
// call that it undoes has happened in part, or not at all.
func WithUndo[In, Out any](undo *Activity[In, Out], in In) CallOption {
	return callOption(func(o *callOptions) {
		input, options, err := prepareCall(in, &undo.options, nil)
		if err != nil {
			err = fmt.Errorf("undo by activity %s: %w", undo.name, err)
		}
		o.undo, o.undoErr = &undoCall{undo.name, input, options}, err
	})
}

// Undo undoes calls that have WithUndo: the given ones, or all calls of the execution; the last first, one after the
// other, each once. Failed calls are undone, too, because they may have done half of their work. An undo runs when its
// call has ended. It waits for an activity that still runs, even in another process, and for a canceled
// sub-orchestration with its clean-up. An activity that ignores the end of its context is only detected in the process
// that runs the undo. If the message of an activity is lost, its undo waits for Config.LostAfter at most.
// Cancellations do not reach the undos. Undo also waits for calls that another coroutine undoes. Once its undo is
// called, the result of a call no longer counts: the next attempt makes the call again. The error joins those of the
// undos that failed.
func Undo(ctx *Context, calls ...Waitable) error {
	x := ctx.execution
	var all []*task
	for _, t := range x.tasks {
		wanted := len(calls) == 0 || slices.ContainsFunc(calls, func(c Waitable) bool { return c.waitable() == t })
		if wanted && t.options.undo != nil {
			all = append(all, t)
		}
	}
	var errs []error
	for _, t := range slices.Backward(all) {
		errs = append(errs, x.undo(t))
	}
	return errors.Join(errs...)
}

// undo undoes a call, or waits until another coroutine has.
func (x *execution) undo(t *task) error {
	if t.undone {
		if u := x.undos[t]; x.rules < rules3 || u != nil && u.done {
			return nil // its error was returned then
		}
		x.waitUntilTrue(x.current, []*task{{kind: conditionTask}}, func() bool { u := x.undos[t]; return u != nil && u.done })
		return x.undos[t].err
	}
	t.undone, t.awaited = true, true
	x.wait(t)
	undo := x.schedule(task{kind: activityTask, name: t.options.undo.name, input: t.options.undo.input, options: t.options.undo.options,
		shielded: true, undoes: t.number, awaited: true})
	if x.undos == nil {
		x.undos = map[*task]*task{}
	}
	x.undos[t] = undo
	x.wait(undo)
	x.noteResultSeen(undo)
	return undo.err
}

// uninterruptible reports whether a cancellation does not affect the task: an undo, or the runtime's own wait for one.
func (x *execution) uninterruptible(t *task) bool {
	return x.rules >= rules3 && (t.undoes > 0 || t.kind == conditionTask && t.name == "")
}

// undoOfChild returns the open undo of a canceled sub-orchestration; nil for none.
func (x *execution) undoOfChild(id string) *task {
	for t, undo := range x.undos {
		if t.kind == childTask && t.child == id && undo.open() {
			return undo
		}
	}
	return nil
}

// elsewhereCall is a canceled activity that another process may run, and when it was canceled, in microseconds.
type elsewhereCall struct {
	task *task
	at   int64
}

// runsElsewhere reports whether another process may run the activity, so that its undo has to wait for a report of its
// return.
func (t *task) runsElsewhere() bool {
	return t.kind == activityTask && t.options.undo != nil && t.open() && (t.foreign || t.sent)
}

// runElsewhere returns the numbers of the activities that other processes may run and that a cancellation would
// interrupt.
func (x *execution) runElsewhere() (numbers []int) {
	for _, t := range x.tasks {
		if t.runsElsewhere() && !t.shielded {
			numbers = append(numbers, t.number)
		}
	}
	return numbers
}

// noteElsewhere records activities that were canceled while other processes may run them.
func (x *execution) noteElsewhere(numbers []int, at int64) {
	for _, number := range numbers {
		if t := x.task(number); t != nil && !t.elsewhere {
			t.elsewhere = true
			x.elsewhere = append(x.elsewhere, elsewhereCall{t, at})
		}
	}
}

func (x *execution) noteReturned(t *task) {
	t.returned = true
	x.elsewhere = slices.DeleteFunc(x.elsewhere, func(c elsewhereCall) bool { return c.task == t })
}

// waitsForUndone reports whether an undo has to wait for the call that it undoes. For activities that run in this
// process, the attempt waits, see Runtime.awaitUndone.
func (c *executor) waitsForUndone(undo *task) bool {
	t := c.execution.task(undo.undoes)
	switch {
	case t == nil:
		return false
	case c.inFlight[c.call(t)] != nil:
		return true
	case !t.elsewhere || t.returned:
		return false
	case t.foreign: // the driver that runs the call runs its undo, or the one that takes over
		undo.foreign = true
		return true
	}
	return t.sent // its result reports the return
}

// learnReturns records which canceled activities no longer run in any process. These are the activities that this
// driver is responsible for, once they have returned, and those of batches that must be lost.
func (d *driver) learnReturns() error {
	for _, c := range slices.Clone(d.execution.elsewhere) {
		t := c.task
		lost := d.sentAgain && d.rt.config.Now().Sub(fromMicros(c.at)) > d.rt.config.LostAfter
		if t.foreign || t.sent && !lost || d.executor.inFlight[d.executor.call(t)] != nil {
			continue
		}
		if err := d.learnReturn(t); err != nil {
			return err
		}
	}
	return nil
}

// learnReturn records that no process runs a canceled activity now, and makes this driver responsible for its undo.
func (d *driver) learnReturn(t *task) error {
	if undo := d.execution.undos[t]; undo != nil {
		undo.foreign, undo.rival = false, false
	}
	return d.learn(event{Kind: callReturned, Task: t.number})
}

// childEnded reports whether the canceled sub-orchestration of a call that has to be undone has ended.
func (c *executor) childEnded(ctx context.Context, child string) (bool, error) {
	s, err := c.rt.Status(ctx, child)
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	if err == nil && !s.Ended() {
		c.rt.config.Log.InfoContext(ctx, "an undo waits for a canceled sub-orchestration", "orchestrationId", c.start.ID, "childId", child, "status", string(s.Status))
	}
	return s.Ended(), err
}

// runningCalls are the activities with an undo that run in this process, by idempotency key. An activity that ignores
// the end of its context continues after its driver has stopped waiting for it, and its undo must not run at the same
// time.
type runningCalls map[string]*runningCall

// runningCall is the number of running attempts at a call, and a channel that is closed with the last one.
type runningCall struct {
	attempts int
	ended    chan struct{}
}

// noteRunning records that an activity has begun; the returned function records its return.
func (r *Runtime) noteRunning(key string) (ended func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = runningCalls{}
	}
	c := r.running[key]
	if c == nil {
		c = &runningCall{ended: make(chan struct{})}
		r.running[key] = c
	}
	c.attempts++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if c.attempts--; c.attempts == 0 {
			close(c.ended)
			delete(r.running, key)
		}
	}
}

// awaitUndone waits until no attempt at the call with this key, which has to be undone, runs in this process. The
// error is that of ctx.
func (r *Runtime) awaitUndone(ctx context.Context, key string) error {
	if key == "" {
		return nil
	}
	r.mu.Lock()
	c := r.running[key]
	r.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
