package drain

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
)

// Gate admits the work of a process while the app is not drained. Make it with NewGate; it is safe for concurrent
// use.
type Gate struct {
	store Store
	node  string
	cause error
	log   *slog.Logger

	mu      sync.Mutex
	flag    Flag
	looked  time.Time // when the flag was last read, or tried to be
	reading bool
	next    int
	inside  map[int]context.CancelCauseFunc
	watched bool
	// emptied signals the watch that nothing is inside any longer.
	emptied chan struct{}
	closed  error         // why no work is admitted any longer; nil while the gate is not closed for good
	left    chan struct{} // closed when nothing is inside after that
}

// NewGate makes the gate of a process, whose name is node. cause is the cause of the ended contexts inside.
func NewGate(s Store, node string, cause error, log *slog.Logger) *Gate {
	return &Gate{store: s, node: node, cause: cause, log: log, inside: map[int]context.CancelCauseFunc{}, emptied: make(chan struct{}, 1), left: make(chan struct{})}
}

// Enter admits work: it runs in a context that ends when the app is drained or the gate is closed, and calls leave at
// its end, once. After an error the work must not begin, and leave is nil: the error is the gate's cause when the app
// is drained, and that of Close.
//
// When the flag cannot be read, the last value counts: an app without storage has other problems.
func (g *Gate) Enter(ctx context.Context) (work context.Context, leave func(), err error) {
	if err := g.closedFor(); err != nil {
		return nil, nil, err // a closing gate has no time for storage
	}
	g.refresh(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed != nil:
		return nil, nil, g.closed
	case g.flag.Set(g.store.now()):
		return nil, nil, g.cause
	}
	work, cancel := context.WithCancelCause(ctx)
	id := g.next
	g.next++
	g.inside[id] = cancel
	if !g.watched {
		g.watched = true
		go g.watch()
	}
	return work, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		cancel(nil)
		delete(g.inside, id)
		if len(g.inside) == 0 {
			select {
			case g.emptied <- struct{}{}:
			default: // already signaled
			}
			g.tellLeft()
		}
	}, nil
}

// Close admits nothing any longer, and ends the contexts inside with a cause. It returns when nothing is inside, or
// when ctx ends, with the number of those left. Nothing opens the gate again; a second call waits again.
func (g *Gate) Close(ctx context.Context, cause error) (running int) {
	g.mu.Lock()
	if g.closed == nil {
		g.closed = cause
		for _, cancel := range g.inside {
			cancel(cause)
		}
		g.tellLeft()
	}
	g.mu.Unlock()
	select {
	case <-g.left:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.inside)
}

// tellLeft signals Close that nothing is inside any longer. The caller holds the lock.
func (g *Gate) tellLeft() {
	if g.closed != nil && len(g.inside) == 0 {
		close(g.left) // once: nothing is admitted any longer
	}
}

func (g *Gate) closedFor() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// refresh reads the flag, unless it was read within an interval or is being read. It completes even if ctx ends.
func (g *Gate) refresh(ctx context.Context) {
	g.mu.Lock()
	if g.reading || !g.looked.IsZero() && g.store.now().Sub(g.looked) < Interval {
		g.mu.Unlock()
		return
	}
	g.reading, g.looked = true, g.store.now()
	g.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readLimit)
	defer cancel()
	read, err := g.store.Flag(ctx)
	if err != nil {
		g.log.WarnContext(ctx, "whether the app is drained is not known", "error", err.Error())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reading = false
	if err == nil {
		g.flag = read
	}
}

// watch reads the flag while work runs. When the app is drained it ends the work, and reports until none is left.
func (g *Gate) watch() {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	reported := ""
	for {
		select {
		case <-tick.C:
			g.refresh(outage.Hurry(context.Background()))
		case <-g.emptied:
		}
		flag, drained, running := g.stop()
		if drained && (running > 0 || reported == flag.ID) {
			g.report(flag, running)
			reported = flag.ID
		}
		if running == 0 && g.unwatch() {
			return
		}
	}
}

// stop ends the contexts inside, if the app is drained.
func (g *Gate) stop() (flag Flag, drained bool, running int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	drained = g.flag.Set(g.store.now())
	if drained {
		for _, cancel := range g.inside {
			cancel(g.cause)
		}
	}
	return g.flag, drained, len(g.inside)
}

// unwatch ends the watch, unless work has been admitted meanwhile.
func (g *Gate) unwatch() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watched = len(g.inside) > 0
	return !g.watched
}

func (g *Gate) report(f Flag, running int) {
	ctx, cancel := context.WithTimeout(context.Background(), reportLimit)
	defer cancel()
	if err := g.store.report(ctx, f, g.node, running); err != nil {
		g.log.Error("what still runs could not be reported", "running", running, "error", err.Error())
		return
	}
	g.log.Info("the app is drained", "by", f.By, "until", f.Until, "running", running)
}
