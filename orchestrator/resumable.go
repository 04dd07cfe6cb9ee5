package orchestrator

import (
	"iter"
	"runtime"
)

// resumable runs a function that can hand control back in the middle and go on later. Only one goroutine at a time may
// use it.
type resumable struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

func newResumable(body func()) *resumable {
	c := &resumable{}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		body()
	})
	return c
}

// resume runs the body until it pauses (true) or has returned (false).
func (c *resumable) resume() bool {
	_, paused := c.next()
	return paused
}

// pause hands control back; only the body may call it. It returns when the coroutine is resumed. When the coroutine is
// closed instead, it ends the body: deferred functions run, and no recover can stop that.
func (c *resumable) pause() {
	if !c.yield(struct{}{}) {
		runtime.Goexit()
	}
}

// close ends a paused body and waits for its deferred functions. It does nothing to one that has returned.
func (c *resumable) close() {
	// Goexit inside the body also ends the goroutine that calls stop, so that has to be one of its own.
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.stop()
	}()
	<-done
}
