// Package lazyctx has a context that costs one allocation until a caller waits for its end. Most contexts of commits
// and activities are at most asked for their error. Package context makes a channel, a timer and entries in the parents
// for each of them.
//
// The package owns no storage keys.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// Context ends when it is canceled, at its deadline, or with its parent, like one of package context. The zero value is
// not ready to use: call Init, or make one with New.
type Context struct {
	parent   context.Context
	deadline time.Time // zero for none
	detached bool      // does not end with the parent

	mu       sync.Mutex
	canceled bool            // before any other end, and before any wait
	real     context.Context // does the work after the first wait; nil before
	cancel   context.CancelFunc
}

// New returns a context that ends with parent, or at the deadline unless that is zero.
func New(parent context.Context, deadline time.Time) *Context {
	c := &Context{}
	c.Init(parent, deadline)
	return c
}

// Init makes c a context that ends with parent, or at the deadline unless that is zero. It is for contexts that are
// embedded in another value; call it before any other use.
func (c *Context) Init(parent context.Context, deadline time.Time) {
	c.parent, c.deadline = parent, deadline
}

// InitDetached is Init for a context that ends at the deadline, even after the end of parent; it has parent's values.
func (c *Context) InitDetached(parent context.Context, deadline time.Time) {
	c.parent, c.deadline, c.detached = parent, deadline, true
}

// Cancel ends the context. Every context has to be canceled in the end.
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

// Err returns the reason why the context has ended, nil before.
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

// Value returns the parent's value of a key.
func (c *Context) Value(key any) any {
	if _, internal := key.(*int); internal { // package context finds cancelable contexts and their causes by such a key
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
	if c.detached || c.canceled { // the end of the parent is irrelevant
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
