package localhost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// The real host's reactions to the end of a handler.
const (
	exitStopped    = 0   // not restarted, every invocation fails from then on
	exitRestart    = 200 // restarted, as often as it asks
	crashLimit     = 3   // any other end is a crash; at this count the host gives up
	probeInterval  = 25 * time.Millisecond
	killWaitsAtEnd = time.Second // for output that a grandchild keeps open
)

// processState is the state of the handler.
type processState int

const (
	starting processState = iota
	ready                 // it answered the probe
	exited                // with code 0: it stays down
	closed                // the supervisor has ended
)

// supervisor keeps the handler process alive by the real host's rules. The port stays the same across restarts.
type supervisor struct {
	executable  string
	arguments   []string
	dir         string
	env         environment
	port        int
	initTimeout time.Duration
	crashWindow time.Duration
	now         func() time.Time
	log         *slog.Logger
	console     *console
	transport   *http.Transport

	ended      chan struct{} // closed when run has returned
	mu         sync.Mutex
	changed    chan struct{} // closed, and replaced, when state changes
	state      processState
	generation int         // counts starts
	process    *os.Process // nil while none runs
	asked      bool        // the process was asked to end, and is not restarted
	timedOut   bool        // the process is killed because a function timed out
	crashes    []time.Time // each less than crashWindow after the previous one
}

// run starts and restarts the handler until ctx ends, when it kills it; until the handler has ended on request; or
// until it crashes too often, which is the error.
func (s *supervisor) run(ctx context.Context) error {
	defer close(s.ended)
	defer s.set(closed)
	for {
		end, err := s.runOnce(ctx)
		s.transport.CloseIdleConnections()
		if ctx.Err() != nil || s.toEnd() {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case end.timedOut:
			s.log.Warn("handler restarts: it was killed because a function timed out")
		case end.code == exitStopped && !end.notReady:
			s.log.Error("handler exited with code 0: the host does not start it again, every invocation fails from now on")
			s.set(exited)
			<-ctx.Done()
			return nil
		case end.code == exitRestart && !end.notReady:
			s.log.Info("handler restarts: it exited with code 200")
		default:
			if err := s.crashed(end); err != nil {
				return err
			}
		}
	}
}

// ending is the end of one handler process.
type ending struct {
	code     int // -1 for a signal
	text     string
	timedOut bool
	notReady bool // killed because it did not answer the probe in time
}

// crashed counts a crash; the error means that there were too many.
func (s *supervisor) crashed(end ending) error {
	now := s.now()
	if n := len(s.crashes); n > 0 && now.Sub(s.crashes[n-1]) >= s.crashWindow {
		s.crashes = nil
	}
	s.crashes = append(s.crashes, now)
	if end.notReady {
		end.text = fmt.Sprintf("did not answer GET / within %v", s.initTimeout)
	}
	lines := strings.Join(s.console.takeErrors(), "; ")
	if len(s.crashes) >= crashLimit {
		return fmt.Errorf("%w: %d times without %v in between (last: %s; last error lines: %q)",
			ErrHandlerKeepsCrashing, len(s.crashes), s.crashWindow, end.text, lines)
	}
	s.log.Error("handler restarts after a crash", "end", end.text, "crashes", len(s.crashes), "limit", crashLimit)
	return nil
}

// runOnce runs one handler process from its start to its end.
func (s *supervisor) runOnce(ctx context.Context) (ending, error) {
	cmd := s.command()
	started, finished := make(chan error, 1), make(chan error, 1)
	go func() {
		// childAttributes ties it to this thread, so the thread has to live as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			finished <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return ending{}, fmt.Errorf("start the handler %s: %w", s.executable, err)
	}
	s.begin(cmd.Process)
	end := ending{}
	err := s.probe(ctx, finished)
	switch {
	case err == nil:
		s.set(ready)
		s.log.Info("handler is ready", "pid", cmd.Process.Pid, "port", s.port)
	case errors.Is(err, errNotReady):
		end.notReady = true
	}
	if err != nil && !errors.Is(err, errEnded) {
		_ = cmd.Process.Kill()
	}
	select {
	case <-finished:
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-finished
	}
	for _, w := range []any{cmd.Stdout, cmd.Stderr} {
		w.(*lineWriter).flush()
	}
	end.timedOut = s.finish()
	end.code, end.text = cmd.ProcessState.ExitCode(), cmd.ProcessState.String()
	return end, nil
}

// command returns the command for one start of the handler: its environment has a new worker id each time.
func (s *supervisor) command() *exec.Cmd {
	id, port := uuid.NewString(), strconv.Itoa(s.port)
	cmd := exec.Command(s.executable, s.arguments...)
	cmd.Dir = s.dir
	cmd.Env = append(s.env.list(),
		"FUNCTIONS_CUSTOMHANDLER_PORT="+port,
		"FUNCTIONS_HTTPWORKER_PORT="+port,
		"FUNCTIONS_CUSTOMHANDLER_WORKER_ID="+id,
		"FUNCTIONS_HTTPWORKER_ID="+id,
	)
	cmd.Stdout = &lineWriter{console: s.console}
	cmd.Stderr = &lineWriter{console: s.console, stderr: true}
	cmd.WaitDelay = killWaitsAtEnd
	cmd.SysProcAttr = childAttributes()
	return cmd
}

var (
	errNotReady = errors.New("the handler did not answer the probe")
	errEnded    = errors.New("the handler ended")
)

// probe sends GET / until it is answered. If the process ends first, probe returns its end to finished.
func (s *supervisor) probe(ctx context.Context, finished chan error) error {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	probing, cancel := context.WithTimeout(ctx, s.initTimeout)
	defer cancel()
	for {
		if s.answers(probing) {
			return nil
		}
		select {
		case err := <-finished:
			finished <- err
			return errEnded
		case <-probing.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errNotReady
		case <-ticker.C:
		}
	}
}

func (s *supervisor) answers(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, handlerURL(s.port)+"/", nil)
	if err != nil {
		return false // unreachable unless bug in this package
	}
	request.Header["User-Agent"] = nil
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return true
}

func (s *supervisor) begin(process *os.Process) {
	s.mu.Lock()
	s.generation++
	s.process, s.timedOut = process, false
	if s.asked {
		_ = process.Signal(syscall.SIGTERM)
	}
	s.mu.Unlock()
	s.set(starting)
}

// finish forgets the process and reports whether it was killed after a function's timeout.
func (s *supervisor) finish() bool {
	s.set(starting)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = nil
	return s.timedOut
}

func (s *supervisor) set(state processState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(state)
}

func (s *supervisor) setLocked(state processState) {
	s.state = state
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until invocations may be sent and returns the generation of the process that will get them. A handler
// that exited with code 0 counts: the invocation then fails to connect, as on the real host.
func (s *supervisor) await(ctx context.Context) (generation int, err error) {
	for {
		s.mu.Lock()
		state, generation, changed := s.state, s.generation, s.changed
		s.mu.Unlock()
		switch state {
		case ready, exited:
			return generation, nil
		case closed:
			return 0, ErrStopped
		case starting:
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// killTimedOut kills the process of that generation, if it still runs, without counting a crash.
func (s *supervisor) killTimedOut(generation int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && s.generation == generation {
		s.timedOut = true
		_ = s.process.Kill()
		s.setLocked(starting)
	}
}

// terminate asks the handler to end without a restart. It reports whether a handler was running; ended is closed when
// it has ended.
func (s *supervisor) terminate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = true
	return s.process != nil && s.process.Signal(syscall.SIGTERM) == nil
}

func (s *supervisor) toEnd() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// pid returns the process id of the handler; 0 if none runs.
func (s *supervisor) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.Pid
}

// kill ends the handler from outside, which counts as a crash.
func (s *supervisor) kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return ErrNoHandler
	}
	if err := s.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the handler: %w", err)
	}
	s.setLocked(starting) // dying: later invocations wait for the next process
	return nil
}

func handlerURL(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }
