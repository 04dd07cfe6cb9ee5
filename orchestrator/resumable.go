package orchestrator

import (
	"iter"
	"runtime"
)

// resumable runs a function that can pause in the middle and be resumed later. Only one goroutine at a time may use
// it.
type resumable struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	ended bool // the body has returned
}

// exited is the panic that replaces runtime.Goexit at the end of a body, because Goexit would also end the goroutine
// that resumes or closes the body.
type exited struct{}

// init must be called before all other methods.
func (c *resumable) init(body func()) {
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		defer func() {
			if p := recover(); p != nil {
				panic(p)
			}
			if !c.ended {
				panic(exited{})
			}
		}()
		body()
		c.ended = true
	})
}

// absorb recovers the panic that replaces runtime.Goexit.
func absorb() {
	if p := recover(); p != nil && p != (exited{}) {
		panic(p)
	}
}

// resume runs the body until it pauses (true), or has returned or called runtime.Goexit (false).
func (c *resumable) resume() (paused bool) {
	defer absorb()
	_, paused = c.next()
	return paused
}

// pause returns control to the caller of resume; only the body may call it. It returns when the body is resumed. If
// the body is closed instead, pause ends it: deferred functions run, and no recover can prevent the end.
func (c *resumable) pause() {
	if !c.yield(struct{}{}) {
		runtime.Goexit()
	}
}

// close ends a paused body and waits for its deferred functions. It does nothing to a body that has returned.
func (c *resumable) close() {
	defer absorb()
	if !c.ended {
		c.stop()
	}
}
