package orchestrator

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/internal/cputime"
)

// BlockedError reports that an orchestrator did not return from a turn: it waits for something other than the calls of
// its Context, or computes for too long.
type BlockedError struct {
	Orchestration string
	// Place is the function and the line where the code was. Waited is how long it had not returned.
	Place  string
	Waited time.Duration
}

// Error returns a text with the line.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("orchestration %s is blocked: its code has not come back for %v and stands at %s: "+
		"an orchestrator waits by its Context only; what blocks or takes time belongs in an activity", e.Orchestration, e.Waited, e.Place)
}

// These define when a turn has lasted too long.
const (
	// looks is the number of checks of a turn within TurnTimeout.
	looks = 10
	// computing is the multiple of TurnTimeout that a computing turn may use of the process's processor time, which it
	// shares with everything else in the process.
	computing = 6
)

// watchdog detects user code that does not return from a turn, and releases the waiters of the driver. A waiting turn
// is abandoned after TurnTimeout, not counting the time in which the process did not run; a computing one by the
// processor time used. A nil watchdog does nothing.
type watchdog struct {
	d     *driver
	ctx   context.Context
	limit time.Duration
	timer *time.Timer
	// state counts the beginnings and ends of turns, so that it is odd during a turn. It is set to abandoned when the
	// driver is abandoned.
	state     atomic.Int64
	began     atomic.Int64 // when the turn began, in nanoseconds of Unix time
	goroutine atomic.Int64 // the goroutine that is running
	stack     [64]byte     // the beginning of its stack trace, which holds its id

	// mu guards the following fields, which are about the checked turn.
	mu     sync.Mutex
	turn   int64         // its state
	looked time.Time     // when it was checked last
	awake  time.Duration // how long the process has run since it began
	used   time.Duration // processor time of the process at the first check
	place  string        // where it waited at the last check; "" for nowhere
}

const abandoned = -1

// init must be called before all other methods.
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
		w.timer = time.AfterFunc(w.limit/looks, w.check)
		return
	}
	w.timer.Reset(w.limit / looks)
}

// end records that the code has returned. If that was too late, another driver has replaced this one, and its
// goroutine ends.
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

// check checks the running turn.
func (w *watchdog) check() {
	if turn := w.state.Load(); turn != abandoned && turn%2 == 1 {
		w.checkTurn(turn)
	}
}

// checkTurn abandons the driver if its turn has lasted too long, and otherwise checks again later.
func (w *watchdog) checkTurn(turn int64) {
	if w.state.Load() != turn {
		return
	}
	place, tooLong := w.look(turn, time.Now())
	if !tooLong {
		time.AfterFunc(w.limit/looks, func() { w.checkTurn(turn) })
		return
	}
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

// look reports whether the turn has lasted too long, and its place in the code.
func (w *watchdog) look(turn int64, now time.Time) (place string, tooLong bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if turn != w.turn {
		w.turn, w.awake, w.place = turn, 0, ""
		w.looked = time.Unix(0, w.began.Load())
		w.used, _ = cputime.Used()
	}
	every := w.limit / looks
	// A late check means that the process did not run, or had no processor.
	w.awake += min(now.Sub(w.looked), 2*every)
	w.looked = now
	if w.awake < w.limit-every {
		return "", false
	}
	place, waits := locate(w.goroutine.Load())
	if !waits {
		w.place = ""
		used, err := cputime.Used()
		return place, w.awake >= w.limit && (err != nil || used-w.used >= computing*w.limit)
	}
	stays := place == w.place
	w.place = place
	return place, stays && w.awake >= w.limit
}

// replace makes another driver stall the orchestration, and finishes this one.
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

// locate returns the place of a goroutine in user code, as "function (file:line)", and whether it waits there.
func locate(goroutine int64) (place string, waits bool) {
	stack := stacksByGoroutine()[goroutine]
	_, state, _ := strings.Cut(stack, "[")
	if i := strings.IndexAny(state, ",(]"); i >= 0 {
		state = strings.TrimSpace(state[:i])
	}
	return frame(stack, func(function, _ string) bool { return !isStandardLibrary(function) }), !computes(state)
}

// computes reports whether a goroutine in this state of the runtime is working. One in the state coroutine has resumed
// another one, and allocating goroutines may have to assist the garbage collector.
func computes(state string) bool {
	switch state {
	case "running", "runnable", "preempted", "copystack", "coroutine", "GC assist wait", "GC assist marking", "GC sweep wait":
		return true
	}
	return false
}

// stacksByGoroutine returns the stack traces of all goroutines.
func stacksByGoroutine() map[int64]string {
	const most = 64 << 20
	var all []byte
	for size := 1 << 20; ; size *= 4 {
		all = make([]byte, size)
		if n := runtime.Stack(all, true); n < size || size >= most {
			all = all[:n]
			break
		}
	}
	stacks := map[int64]string{}
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		var id int64
		if _, err := fmt.Sscanf(stack, "goroutine %d [", &id); err == nil {
			stacks[id] = stack
		}
	}
	return stacks
}

// frame returns the innermost wanted frame of a stack, as "function (file:line)".
func frame(stack string, wanted func(function, file string) bool) string {
	lines := strings.Split(stack, "\n")
	for i := 1; i+1 < len(lines); i += 2 {
		function := lines[i]
		if j := strings.LastIndexByte(function, '('); j > 0 {
			function = function[:j]
		}
		if file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " "); wanted(function, file) {
			return fmt.Sprintf("%s (%s)", function, path.Base(file))
		}
	}
	return "an unknown place"
}

// isStandardLibrary reports whether a function belongs to the standard library. The path of its package begins neither
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

// goroutineID returns the id of the current goroutine, as stack traces show it; 0 names none. Only a running coroutine
// may call it.
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

// runs records which goroutine is about to run user code.
func (w *watchdog) runs(goroutine int64) {
	if w != nil {
		w.goroutine.Store(goroutine)
	}
}
