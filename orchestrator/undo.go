package orchestrator

import (
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

// Undo undoes calls that have WithUndo: the given ones, or all that the execution has made; the last first, one after
// the other, each once. Failed calls are undone, too, because they may have done half of their work. Calls that still
// run are waited for before. A cancellation does not reach the undos. From the moment that its undo is called, the
// result of a call does not count any more: the next attempt makes the call again. The error joins those of the undos
// that failed.
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
		if t.undone {
			continue
		}
		t.undone, t.awaited = true, true
		x.wait(t)
		undo := x.schedule(task{kind: activityTask, name: t.options.undo.name, input: t.options.undo.input, options: t.options.undo.options,
			shielded: true, undoes: t.number, awaited: true})
		x.wait(undo)
		if x.noteResultSeen(undo); undo.err != nil {
			errs = append(errs, undo.err)
		}
	}
	return errors.Join(errs...)
}
