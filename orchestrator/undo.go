package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// undoCall is the call of an activity that takes another call back.
type undoCall struct {
	name    string
	input   json.RawMessage
	options callOptions
}

// WithUndo names the activity that takes the call back, and its input: Undo calls it. It has to be harmless when what it
// takes back has happened in part, or not at all.
func WithUndo[In, Out any](undo *Activity[In, Out], in In) CallOption {
	return callOption(func(o *callOptions) {
		input, options, err := prepareCall(in, undo.options, nil)
		if err != nil {
			err = fmt.Errorf("undo by activity %s: %w", undo.name, err)
		}
		o.undo, o.undoErr = &undoCall{undo.name, input, options}, err
	})
}

// Undo takes calls back that WithUndo said how: those that are given, or else all that the execution has made; the last
// first, one after the other, each once. Those that failed are taken back, too, because they may have done half, and those
// that still run are waited for before. A cancellation does not reach it. What was taken back is forgotten from the moment
// on that its undo is called: an attempt that follows calls it again. The error joins those of the undos that failed.
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
		undo := x.schedule(&task{kind: activityTask, name: t.options.undo.name, input: t.options.undo.input, options: t.options.undo.options,
			shielded: true, undoes: t.number, awaited: true})
		x.wait(undo)
		if x.noteResultSeen(undo); undo.err != nil {
			errs = append(errs, undo.err)
		}
	}
	return errors.Join(errs...)
}
