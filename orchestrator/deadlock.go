package orchestrator

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// DeadlockError reports that an orchestration can never continue: its coroutines wait for each other, and no open call
// could wake one of them.
type DeadlockError struct {
	Orchestration string
	// Waits describes the wait of each coroutine, and its place, as "a condition at function (file:line)".
	Waits []string
}

// Error returns the lines of the waits.
func (e *DeadlockError) Error() string {
	waits := ""
	if len(e.Waits) > 0 {
		waits = ": it waits for " + strings.Join(e.Waits, "; ")
	}
	return fmt.Sprintf("orchestration %s is deadlocked: nothing that it waits for can come%s: correct the code, or cancel it", e.Orchestration, waits)
}

// deadlocked reports whether only a cancellation could make the code continue. Call it after all coroutines have run
// until they wait.
func (x *execution) deadlocked() bool {
	if call, _ := x.waitingFor(); x.ended || x.suspended || x.held || len(x.withheld)+len(x.overtakers) > 0 || call != nil {
		return false
	}
	if len(x.scheduler.conditional) > 0 && (x.openCount > 0 || slices.ContainsFunc(x.tasks, (*task).open)) {
		return false // the end of a call that no coroutine waits for can make a condition true
	}
	alive := false
	for _, f := range x.coroutines {
		if !f.ended && f.ready() {
			return false
		}
		alive = alive || !f.ended
	}
	return alive
}

// deadlock returns the error of a deadlocked execution; nil otherwise. It names no places if the execution is known to
// be stalled, because the rounds have them.
func (x *execution) deadlock() error {
	if !x.deadlocked() {
		return nil
	}
	err := &DeadlockError{Orchestration: x.id}
	if x.stalled {
		return err
	}
	stacks := stacksByGoroutine()
	for _, f := range x.coroutines {
		if f.ended {
			continue
		}
		var names []string
		for _, t := range f.waiting {
			names = append(names, t.waitName())
		}
		err.Waits = append(err.Waits, strings.Join(names, " or ")+" at "+callerFrame(stacks[f.goroutine]))
	}
	return err
}

// waitName describes the wait of a coroutine for the task.
func (t *task) waitName() string {
	switch {
	case t.kind == coroutineTask:
		return "a coroutine"
	case t.name == "":
		return "calls that were not awaited"
	default:
		return t.name
	}
}

// callerFrame returns the innermost frame of a stack that belongs to neither the standard library nor this package.
func callerFrame(stack string) string {
	own := reflect.TypeFor[Context]().PkgPath() + "."
	return frame(stack, func(function, file string) bool {
		return !isStandardLibrary(function) && (!strings.HasPrefix(function, own) || strings.Contains(file, "_test.go:"))
	})
}
