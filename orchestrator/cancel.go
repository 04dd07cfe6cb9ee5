package orchestrator

import "fmt"

// Cancel interrupts what the futures stand for: each that is not done gives ErrCanceled at once. A running activity has
// its context canceled, a sub-orchestration is canceled in its turn, a timer is forgotten; of a coroutine that Go made,
// what it waits for is interrupted. What an activity has done by then is done.
func Cancel(ctx *Context, futures ...Waitable) {
	for _, f := range futures {
		ctx.execution.cancel(f.waitable())
	}
}

// Canceled says whether somebody canceled the orchestration, and why. From then on everything that it has called, and all
// that it calls or waits for, gives ErrCanceled, for good: what is to be cleaned up is called with WithoutCancel. When it
// returns an error, it ends as Canceled; but as Failed, for a person, if that holds the error of a call that failed.
func (c *Context) Canceled() (reason string, canceled bool) {
	if c.execution.canceled == nil {
		return "", false
	}
	return *c.execution.canceled, true
}

// WithoutCancel is a Context that is not canceled when the orchestration is: for cleaning up. What is called with it, and
// the coroutines that Go makes with it, run on.
func WithoutCancel(ctx *Context) *Context {
	shielded := *ctx
	shielded.shielded = true
	return &shielded
}

// isCanceled says that what is called with the context gives ErrCanceled.
func (c *Context) isCanceled() bool { return c.execution.canceled != nil && !c.shielded }

func canceledError(what string) error { return fmt.Errorf("%s: %w", what, ErrCanceled) }

func (x *execution) cancel(t *task) {
	if t.kind == coroutineTask {
		x.cancelCoroutine(t)
		return
	}
	if t.kind == conditionTask && !t.done {
		x.interrupt(t)
	}
	if !t.open() {
		return
	}
	x.decide(event{Kind: callCanceled, Task: t.number})
	x.interrupt(t)
}

// cancelCoroutine interrupts what a coroutine waits for. One that has not begun does not begin.
func (x *execution) cancelCoroutine(t *task) {
	if t.done || t.canceled {
		return // canceled, because coroutines can wait for each other
	}
	for _, f := range x.coroutines {
		if f.task != t {
			continue
		}
		if len(f.waiting) == 0 && f != x.current {
			f.ended = true
			x.interrupt(t)
			return
		}
		t.canceled = true
		for _, w := range f.waiting {
			x.cancel(w)
		}
		t.canceled = false
	}
}

// interrupt ends a call for the orchestration; what is left of it is the driver's to stop.
func (x *execution) interrupt(t *task) {
	t.canceled, t.canceledAt, x.interrupts = true, x.decisions, true
	x.complete(t, nil, canceledError(t.name))
}

// cancelAll interrupts everything that the orchestration has called, but for what is shielded. One that has not begun ends.
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
}

// canceledFailure is how a cancellation shows to who waited for the orchestration.
func canceledFailure(reason string) *Failure {
	return stoppedFailure("canceled", codeCanceled, reason)
}

// terminatedFailure is how a termination shows to who waited for the orchestration.
func terminatedFailure(reason string) *Failure {
	return stoppedFailure("terminated", codeTerminated, reason)
}

// Failure.Code of what was stopped.
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

// Is makes a recorded cancellation an ErrCanceled.
func (f *Failure) Is(target error) bool { return target == ErrCanceled && f.Code == codeCanceled }
