package orchestrator

import (
	"iter"
	"runtime"
)

// resumable runs a function that can pause in the middle and be resumed later. Only one goroutine at a time may use it.
type resumable struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	ended bool // the body has returned
}

// init comes before every other use.
func (c *resumable) init(body func()) {
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		body()
		c.ended = true
	})
}

// resume runs the body until it pauses (true) or has returned (false).
func (c *resumable) resume() bool {
	_, paused := c.next()
	return paused
}

// pause hands control back; only the body may call it. It returns when the body is resumed. When the body is closed
// instead, pause ends it: deferred functions run, and no recover can prevent the end.
func (c *resumable) pause() {
	if !c.yield(struct{}{}) {
		runtime.Goexit()
	}
}

// close ends a paused body and waits for its deferred functions. It does nothing to a body that has returned.
func (c *resumable) close() {
	if c.ended {
		return
	}
	// Goexit inside the body also ends the goroutine that calls stop, so that has to be one of its own.
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.stop()
	}()
	<-done
}
