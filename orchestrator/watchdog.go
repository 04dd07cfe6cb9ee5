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

// These say when a turn has lasted too long.
const (
	// looks is how often a turn is looked at within TurnTimeout.
	looks = 10
	// computing is how many times TurnTimeout a turn that computes may use of the process's processor time: it shares the processor
	// with everything else in the process.
	computing = 6
)

// watchdog notices when user code does not return from a turn, and releases those who wait for the driver. A turn that waits is given
// up after TurnTimeout, not counting the time in which the process did not run; one that computes by the processor time that was used.
// A nil watchdog does nothing.
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

	// mu guards what follows: it is about the turn that is looked at.
	mu     sync.Mutex
	turn   int64         // its state
	looked time.Time     // when it was looked at last
	awake  time.Duration // for how long the process has run since it began
	used   time.Duration // processor time of the process at the first look
	place  string        // where it waited at the last look; "" for nowhere
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
		w.timer = time.AfterFunc(w.limit/looks, w.check)
		return
	}
	w.timer.Reset(w.limit / looks)
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

// check looks at the turn that runs.
func (w *watchdog) check() {
	if turn := w.state.Load(); turn != abandoned && turn%2 == 1 {
		w.checkTurn(turn)
	}
}

// checkTurn gives the driver up if its turn has lasted too long, and otherwise looks again.
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

// look reports whether the turn has lasted too long, and where it is.
func (w *watchdog) look(turn int64, now time.Time) (place string, tooLong bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if turn != w.turn {
		w.turn, w.awake, w.place = turn, 0, ""
		w.looked = time.Unix(0, w.began.Load())
		w.used, _ = cputime.Used()
	}
	every := w.limit / looks
	// A look that comes late says that the process did not run, or had no processor.
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

// locate returns where a goroutine is in user code, as "function (file:line)", and whether it waits there.
func locate(goroutine int64) (place string, waits bool) {
	stack := stacksByGoroutine()[goroutine]
	_, state, _ := strings.Cut(stack, "[")
	if i := strings.IndexAny(state, ",(]"); i >= 0 {
		state = strings.TrimSpace(state[:i])
	}
	return frame(stack, func(function, _ string) bool { return !isStandardLibrary(function) }), !computes(state)
}

// computes reports whether a goroutine that the runtime shows in this state does something. One in the state coroutine has resumed
// another one, and the garbage collector makes goroutines that allocate help it.
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

// frame returns the innermost frame of a stack that is wanted, as "function (file:line)".
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
