package orchestrator

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"
)

// BlockedError says that an orchestrator did not return from a turn: it waits for something other than the calls of its
// Context, or computes for too long.
type BlockedError struct {
	Orchestration string
	// Place is the function and the line where it was. Waited is for how long.
	Place  string
	Waited time.Duration
}

// Error names the line.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("orchestration %s is blocked: its code has not come back for %v and stands at %s: "+
		"an orchestrator waits by its Context only; what blocks or takes time belongs in an activity", e.Orchestration, e.Waited, e.Place)
}

// watchdog notices when user code does not return from a turn, and releases those who wait for the driver. A nil
// watchdog does nothing.
type watchdog struct {
	d     *driver
	ctx   context.Context
	limit time.Duration
	timer *time.Timer
	// state counts the beginnings and ends of turns, so that it is odd during a turn. It is abandoned once the driver
	// is given up.
	state     atomic.Int64
	began     atomic.Int64 // when the turn began, in nanoseconds of Unix time
	goroutine atomic.Int64 // the goroutine that is running
	stack     [64]byte     // where its stack trace begins, from which its id is read
}

const abandoned = -1

// init comes before every other use.
func (w *watchdog) init(d *driver, ctx context.Context) {
	w.d, w.ctx, w.limit = d, ctx, d.rt.config.TurnTimeout
}

func (w *watchdog) begin() {
	if w == nil {
		return
	}
	w.began.Store(time.Now().UnixNano())
	w.state.Add(1)
	if w.timer == nil {
		w.timer = time.AfterFunc(w.limit, w.check)
		return
	}
	w.timer.Reset(w.limit)
}

// end says that the code has returned. If that was too late, nobody waits for the driver any more, and its goroutine
// ends.
func (w *watchdog) end() {
	if w == nil {
		return
	}
	w.timer.Stop()
	if turn := w.state.Load(); turn == abandoned || !w.state.CompareAndSwap(turn, turn+1) {
		runtime.Goexit()
	}
}

func (w *watchdog) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.state.Load() == abandoned {
		w.d.rt.mu.Lock()
		defer w.d.rt.mu.Unlock()
		delete(w.d.rt.blocked, w.d.request.ID)
	}
}

// check gives the driver up if its turn has lasted too long.
func (w *watchdog) check() {
	turn := w.state.Load()
	if turn == abandoned || turn%2 == 0 {
		return
	}
	if lasted := time.Duration(time.Now().UnixNano() - w.began.Load()); lasted < w.limit {
		time.AfterFunc(w.limit-lasted, w.check)
		return
	}
	place := locate(w.goroutine.Load())
	err := &BlockedError{Orchestration: w.d.request.ID, Place: place, Waited: w.limit}
	r := w.d.rt
	r.mu.Lock()
	if !w.state.CompareAndSwap(turn, abandoned) {
		r.mu.Unlock()
		return
	}
	r.blocked[w.d.request.ID] = err
	r.mu.Unlock()
	w.d.executor.cancel()
	w.d.replace(w.ctx, err)
}

// replace has another driver stall the orchestration, and finishes this one.
func (d *driver) replace(ctx context.Context, cause error) {
	other := newDriver(d.rt, d.request, d.rt.orchestrators[d.request.Orchestrator])
	d.rt.mu.Lock()
	other.inbox, d.inbox = append(d.unacknowledged, d.inbox...), nil
	d.rt.mu.Unlock()
	other.executor = newExecutor(ctx, d.rt, other.start)
	defer other.executor.close()
	out, err := other.stall(ctx, cause)
	d.rt.finish(d, out, err)
}

// locate returns where a goroutine is in user code, as "function (file:line)".
func locate(goroutine int64) string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	for _, stack := range bytes.Split(all, []byte("\n\n")) {
		if bytes.HasPrefix(stack, fmt.Appendf(nil, "goroutine %d ", goroutine)) {
			return userFrame(string(stack))
		}
	}
	return "an unknown place"
}

// userFrame returns the innermost frame of a stack that is not in the standard library.
func userFrame(stack string) string {
	lines := strings.Split(stack, "\n")
	for i := 1; i+1 < len(lines); i += 2 {
		function := lines[i]
		if j := strings.LastIndexByte(function, '('); j > 0 {
			function = function[:j]
		}
		if isStandardLibrary(function) {
			continue
		}
		place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		return fmt.Sprintf("%s (%s)", function, path.Base(place))
	}
	return "an unknown place"
}

// isStandardLibrary reports whether a function belongs to the standard library: the path of its package begins neither
// with a domain nor with the name of the program's module, and is not main.
func isStandardLibrary(function string) bool {
	slash := strings.LastIndexByte(function, '/') + 1
	pkg := function[:slash+strings.IndexByte(function[slash:]+".", '.')]
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path != "" && strings.HasPrefix(pkg, info.Main.Path) {
		return false
	}
	first, _, _ := strings.Cut(pkg, "/")
	return first != "main" && !strings.Contains(first, ".")
}

// goroutineID returns the id of the current goroutine, as stack traces show it; 0 names none. Only a coroutine that runs may
// ask.
func (w *watchdog) goroutineID() int64 {
	text := bytes.TrimPrefix(w.stack[:runtime.Stack(w.stack[:], false)], []byte("goroutine "))
	var id int64
	for _, c := range text {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + int64(c-'0')
	}
	return id
}

// runs says which goroutine is about to run user code.
func (w *watchdog) runs(goroutine int64) {
	if w != nil {
		w.goroutine.Store(goroutine)
	}
}
