package outage

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/internal/lazyctx"
)

// mode is how a call treats storage that does not answer.
type mode struct {
	hurries bool
	// until bounds the waiting; since is the start of the work, which orders waiting calls.
	until, since time.Time
}

type modeKey struct{}

// Wait returns a context whose calls of storage wait for it until ctx ends. It also ends the waiting of contexts that
// are derived from it and outlive it, so ctx needs a deadline; without one, nothing waits.
func Wait(ctx context.Context) context.Context {
	until, _ := ctx.Deadline()
	return context.WithValue(ctx, modeKey{}, mode{until: until, since: time.Now()})
}

// Hurry returns a context whose calls of storage fail immediately while storage does not answer.
func Hurry(ctx context.Context) context.Context {
	return context.WithValue(ctx, modeKey{}, mode{hurries: true})
}

func modeOf(ctx context.Context) mode {
	m, _ := ctx.Value(modeKey{}).(mode)
	return m
}

// waits reports whether a call may wait now.
func (m mode) waits() bool { return !m.until.IsZero() && time.Now().Before(m.until) }

// Finish returns a context for work that has to be completed although ctx ends: it ends after d, as one of
// context.WithoutCancel and context.WithTimeout does. If ctx waits for storage (Wait), the work also has the rest of
// ctx's time, and d counts from the end of ctx.
func Finish(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	w := begin(ctx, d)
	return w, w.end // this is inlined, so it allocates no memory where the function is only deferred
}

// work is the context that Finish returns.
type work struct {
	lazyctx.Context
	stop func() bool // ends the watch over ctx; nil for none
}

func begin(ctx context.Context, d time.Duration) *work {
	w := &work{}
	m := modeOf(ctx)
	if !m.waits() || ctx.Err() != nil {
		w.InitDetached(ctx, time.Now().Add(d))
		return w
	}
	w.InitDetached(ctx, m.until.Add(d))
	w.stop = context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(d, w.Cancel)
		context.AfterFunc(w, func() { timer.Stop() })
	})
	return w
}

func (w *work) end() {
	if w.stop != nil {
		w.stop()
	}
	w.Cancel()
}
