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
	detached bool      // the end of the parent does not end it

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

// InitDetached is Init for a context that ends at the deadline, whatever becomes of parent, whose values it has.
func (c *Context) InitDetached(parent context.Context, deadline time.Time) {
	c.parent, c.deadline, c.detached = parent, deadline, true
}

// Cancel ends the context. Whoever makes one has to cancel it in the end.
func (c *Context) Cancel() {
	c.mu.Lock()
	cancel := c.cancel
	c.canceled = c.canceled || cancel == nil && c.parentErr() == nil && !c.late()
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

func (c *Context) parentErr() error {
	if c.detached {
		return nil
	}
	return c.parent.Err()
}

// late reports whether the deadline has passed.
func (c *Context) late() bool { return !c.deadline.IsZero() && !time.Now().Before(c.deadline) }

// Deadline returns the earlier one of the context's own deadline and its parent's.
func (c *Context) Deadline() (time.Time, bool) {
	if c.detached {
		return c.deadline, !c.deadline.IsZero()
	}
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
	return c.parentErr()
}

// Value returns what the parent holds for a key.
func (c *Context) Value(key any) any {
	if _, internal := key.(*int); internal { // by such a key, package context finds what can be canceled, and why it was
		return c.inner().Value(key)
	}
	return c.parent.Value(key)
}

// inner returns the context of package context that does the work.
func (c *Context) inner() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil {
		return c.real
	}
	parent := c.parent
	if c.detached || c.canceled { // what becomes of the parent does not count, or does not any more
		parent = context.WithoutCancel(parent)
	}
	if c.deadline.IsZero() || c.canceled {
		c.real, c.cancel = context.WithCancel(parent)
	} else {
		c.real, c.cancel = context.WithDeadline(parent, c.deadline)
	}
	if c.canceled {
		c.cancel()
	}
	return c.real
}
