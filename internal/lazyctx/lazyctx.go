// Package lazyctx has a context that costs one allocation for as long as nobody waits for its end. Most contexts of
// commits and activities are only asked whether they have ended, if at all, and those of package context make a channel,
// a timer and entries in their parents for each of them.
//
// It owns no storage keys.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// Context ends when it is canceled, at its deadline, or with its parent, as one of package context. The zero value is not
// ready to use: call Init, or make one with New.
type Context struct {
	parent   context.Context
	deadline time.Time // zero for none

	mu       sync.Mutex
	canceled bool            // before anything else ended it, and before anybody waited
	real     context.Context // does the work once somebody waits; nil before
	cancel   context.CancelFunc
}

// New makes a context that ends with parent, or at the deadline unless that is zero.
func New(parent context.Context, deadline time.Time) *Context {
	c := &Context{}
	c.Init(parent, deadline)
	return c
}

// Init makes c a context that ends with parent, or at the deadline unless that is zero. It is for contexts that are part
// of something larger, and comes before every other use.
func (c *Context) Init(parent context.Context, deadline time.Time) {
	c.parent, c.deadline = parent, deadline
}

// Cancel ends the context. Whoever makes one has to cancel it in the end.
func (c *Context) Cancel() {
	c.mu.Lock()
	cancel := c.cancel
	c.canceled = c.canceled || cancel == nil && c.parent.Err() == nil && !c.late()
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// late reports whether the deadline has passed.
func (c *Context) late() bool { return !c.deadline.IsZero() && !time.Now().Before(c.deadline) }

// Deadline returns the earlier one of the context's own deadline and its parent's.
func (c *Context) Deadline() (time.Time, bool) {
	of, ok := c.parent.Deadline()
	if c.deadline.IsZero() || ok && of.Before(c.deadline) {
		return of, ok
	}
	return c.deadline, true
}

// Done returns the channel that is closed when the context ends.
func (c *Context) Done() <-chan struct{} { return c.inner().Done() }

// Err returns why the context has ended, nil before.
func (c *Context) Err() error {
	c.mu.Lock()
	inner, canceled := c.real, c.canceled
	c.mu.Unlock()
	switch {
	case inner != nil:
		return inner.Err()
	case canceled || c.late():
		return c.inner().Err()
	}
	return c.parent.Err()
}

// Value returns what the parent holds for a key. That of a context which has ended also knows why, for context.Cause.
func (c *Context) Value(key any) any {
	if c.hasInner() || c.Err() != nil {
		return c.inner().Value(key)
	}
	return c.parent.Value(key)
}

func (c *Context) hasInner() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.real != nil
}

// inner returns the context of package context that does the work.
func (c *Context) inner() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil {
		return c.real
	}
	switch {
	case c.canceled: // what became of the parent since does not count
		c.real, c.cancel = context.WithCancel(context.WithoutCancel(c.parent))
		c.cancel()
	case c.deadline.IsZero():
		c.real, c.cancel = context.WithCancel(c.parent)
	default:
		c.real, c.cancel = context.WithDeadline(c.parent, c.deadline)
	}
	return c.real
}
