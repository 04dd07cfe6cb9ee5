package orchestrator

import (
	"fmt"
	"strings"
)

// Cancel interrupts the calls of the futures. Each one that is not done gives ErrCanceled immediately. The context of
// a running activity is canceled, a sub-orchestration is canceled in turn, a timer is dropped, and the waits of a
// coroutine made by Go are interrupted. Work that an activity has done by then is not undone.
func Cancel(ctx *Context, futures ...Waitable) {
	for _, f := range futures {
		ctx.execution.cancel(f.waitable())
	}
}

// Canceled reports whether the orchestration was canceled, and why. From then on every open call and every new call or
// wait gives ErrCanceled, for good; use WithoutCancel for clean-up. An orchestrator that then returns an error ends as
// Canceled. It ends as Failed, for an operator to check, if that error holds the error of a call that failed.
func (c *Context) Canceled() (reason string, canceled bool) {
	if c.execution.canceled == nil {
		return "", false
	}
	return *c.execution.canceled, true
}

// WithoutCancel returns a Context that is not canceled, neither with the orchestration nor with ctx. It is for
// clean-up. Calls and coroutines (Go) made with it continue.
func WithoutCancel(ctx *Context) *Context {
	shielded := *ctx
	shielded.shielded, shielded.scope = true, nil
	return &shielded
}

// isCanceled reports whether calls made with this context give ErrCanceled.
func (c *Context) isCanceled() bool { return c.Err() != nil }

func canceledError(what string) error { return fmt.Errorf("%s: %w", what, ErrCanceled) }

func (x *execution) cancel(t *task) {
	if t.kind == coroutineTask {
		x.cancelCoroutine(t)
		return
	}
	if x.uninterruptible(t) {
		return
	}
	if t.kind == conditionTask && !t.done {
		x.interrupt(t)
	}
	if !t.open() {
		return
	}
	e := event{Kind: callCanceled, Task: t.number}
	if recorded, ok := x.recordedDecision(callCanceled, ""); ok {
		e.Target = recorded.Target
	} else if t.runsElsewhere() {
		e.Target = &target{Tasks: []int{t.number}}
	}
	x.decide(e)
	x.noteElsewhere(e.target().Tasks, x.last)
	x.interrupt(t)
}

// cancelCoroutine interrupts the waits of a coroutine. A coroutine that has not begun never begins.
func (x *execution) cancelCoroutine(t *task) {
	if t.done || t.canceled {
		return // canceled is set because coroutines can wait for each other
	}
	f := t.body
	if len(f.waiting) == 0 && f != x.current {
		f.ended = true
		x.endedCoroutines++
		f.body.close()
		x.interrupt(t)
		return
	}
	t.canceled = true
	for _, w := range f.waiting {
		x.cancel(w)
	}
	t.canceled = false
}

// interrupt ends a call for the orchestration. The driver stops the work behind it.
func (x *execution) interrupt(t *task) {
	t.canceled, t.canceledAt, x.interrupts = true, x.decisions, true
	x.complete(t, nil, canceledError(t.name))
}

// cancelAll interrupts every open call that is not shielded. An execution ends if its first turn has not run.
func (x *execution) cancelAll(reason string) {
	if x.canceled != nil {
		return
	}
	if x.held {
		x.stop(canceledFailure(reason))
		return
	}
	x.canceled, x.sawFailure = &reason, true
	for _, t := range x.tasks {
		if t.open() && !t.shielded {
			x.interrupt(t)
		}
	}
	for _, f := range x.coroutines {
		for _, t := range f.waiting {
			if t.kind == conditionTask && t.name != "" && !f.ended && !t.done && !t.shielded {
				x.interrupt(t)
			}
		}
	}
	x.turn()
	if x.rules >= rules3 && x.deadlocked() {
		x.stop(canceledFailure(reason)) // futures that wait for each other cannot be interrupted
	}
}

// canceledFailure returns the failure for the waiters of a canceled orchestration.
func canceledFailure(reason string) *Failure {
	return stoppedFailure("canceled", codeCanceled, reason)
}

// terminatedFailure returns the failure for the waiters of a terminated orchestration.
func terminatedFailure(reason string) *Failure {
	return stoppedFailure("terminated", codeTerminated, reason)
}

// These are the values of Failure.Code for orchestrations that were stopped.
const (
	codeCanceled   = "Canceled"
	codeTerminated = "Terminated"
	codeGivenUp    = "GivenUp"
	codeTooLarge   = "TooLarge"
)

func stoppedFailure(how, code, reason string) *Failure {
	text := "the orchestration was " + how
	if reason != "" {
		text += ": " + reason
	}
	return &Failure{Message: text, Code: code, Permanent: true}
}

// Reason returns the reason with which the orchestration was terminated or canceled, "" for any other failure.
func (f *Failure) Reason() string {
	for code, how := range map[string]string{codeCanceled: "canceled", codeTerminated: "terminated"} {
		if reason, stopped := strings.CutPrefix(f.Message, "the orchestration was "+how+": "); stopped && f.Code == code {
			return reason
		}
	}
	return ""
}

// Is lets errors.Is find ErrCanceled in a recorded cancellation.
func (f *Failure) Is(target error) bool { return target == ErrCanceled && f.Code == codeCanceled }
