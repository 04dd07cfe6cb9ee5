package drain

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
)

// Gate lets the work of a process in, while the app is not drained. Make it with NewGate; it is safe for concurrent use.
type Gate struct {
	store Store
	node  string
	cause error
	log   *slog.Logger

	mu      sync.Mutex
	flag    Flag
	looked  time.Time // when the flag was read, or tried to be
	reading bool
	next    int
	inside  map[int]context.CancelCauseFunc
	watched bool
	// emptied tells the watch that nothing is inside any more.
	emptied chan struct{}
	closed  error         // why nothing is let in any more; nil while the gate is not closed for good
	left    chan struct{} // closed when nothing is inside after that
}

// NewGate makes the gate of a process, whose name is node. cause is why the contexts of what is inside end.
func NewGate(s Store, node string, cause error, log *slog.Logger) *Gate {
	return &Gate{store: s, node: node, cause: cause, log: log, inside: map[int]context.CancelCauseFunc{}, emptied: make(chan struct{}, 1), left: make(chan struct{})}
}

// Enter lets work in: it goes on in a context that ends when the app is drained or the gate is closed, and calls leave at its end,
// once. With an error the work is not to begin, and leave is nil: it is the gate's cause when the app is drained, and that of Close.
//
// When the flag cannot be read, what was read last counts: an app that has lost its storage has other sorrows.
func (g *Gate) Enter(ctx context.Context) (work context.Context, leave func(), err error) {
	if err := g.closedFor(); err != nil {
		return nil, nil, err // who closes it has no time for storage
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
			default: // it has been told
			}
			g.tellLeft()
		}
	}, nil
}

// Close lets nothing in any more, and ends the contexts of what is inside with a cause. It returns when nothing is inside, or when
// ctx ends, and says how much still is. Nothing opens the gate again; a second call waits again.
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

// tellLeft tells who closes the gate that nothing is inside any more. The caller holds the lock.
func (g *Gate) tellLeft() {
	if g.closed != nil && len(g.inside) == 0 {
		close(g.left) // once: nothing comes in any more
	}
}

func (g *Gate) closedFor() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// refresh reads the flag, if nobody has for an interval, and nobody does. An end of ctx does not make it stop half-way.
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

// watch reads the flag for as long as something runs. When the app is drained it ends what runs, and reports until that is
// nothing.
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

// stop ends the contexts of what is inside, if the app is drained.
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

// unwatch ends the watch, unless something has come in meanwhile.
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
