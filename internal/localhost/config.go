package localhost

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/queues"
)

// DefaultPort is the port that people expect a local Functions host on.
const DefaultPort = 7071

// Errors of a running host.
var (
	// ErrHandlerKeepsCrashing ends [Host.Run]: the handler crashed for the third time, each within the crash window
	// after the one before.
	ErrHandlerKeepsCrashing = errors.New("the handler keeps crashing, the host gives up")
	// ErrTimedOut: an invocation took longer than functionTimeout.
	ErrTimedOut = errors.New("the function timed out")
	// ErrNoHandler: no handler process runs right now.
	ErrNoHandler = errors.New("no handler process is running")
	// ErrStopped: the host has stopped.
	ErrStopped = errors.New("the host has stopped")

	// errNotRegistered: a function has a trigger whose extension the host lacks.
	errNotRegistered = errors.New("the binding type queueTrigger is not registered: the extension of queues is missing")
	errNoQueues      = errors.New("the host runs without queue storage: set Config.Queues")
)

// Config says what to run. Only ScriptRoot is required.
type Config struct {
	// ScriptRoot is the folder that holds host.json, the handler and one folder a function.
	ScriptRoot string
	// Queues is where queue functions listen. Without it they cannot run; the others can.
	Queues queues.Store
	// Blobs keeps what timers remember over restarts; nil: only while the host runs.
	Blobs blobs.Store
	// Port to listen on, on 127.0.0.1; 0: a free one. See [DefaultPort].
	Port int
	// FunctionKey is the key of every function, and of the admin endpoints, given as x-functions-key or ?code=; the handler
	// finds it in its environment as ROUNDHOUSE_LOCAL_KEY. Empty: every request is an administrator's.
	FunctionKey string
	// Chunked sends invocations without Content-Length, as Azure does; Core Tools send it.
	Chunked bool
	// Env is added to the environment of the host and of the handler, as NAME=value. It wins over this process's
	// environment, which wins over local.settings.json.
	Env []string
	// Output takes the handler's standard output and error; nil: Log does.
	Output io.Writer
	// OnInvocation is called after each invocation, when its queue message has been put to rest; concurrently.
	OnInvocation func(Invocation)
	// Log of the host; nil: none.
	Log *slog.Logger

	// What follows is for tests; zero values are the real host's.

	// Visibility is how long a received message is hidden, and renewed at half of it. Default 10 minutes.
	Visibility time.Duration
	// MinPolling is the shortest wait between polls of an empty queue. Default 100 ms. The longest is in host.json.
	MinPolling time.Duration
	// KillGrace is how long after functionTimeout the handler is killed. Default 2 seconds.
	KillGrace time.Duration
	// StopGrace is how long the handler may take to end when the host stops, and running invocations may go on. Default 3 seconds:
	// activities that do not look at their contexts have 2.
	StopGrace time.Duration
	// CrashWindow is how close to each other crashes have to be to count together. Default 30 minutes. A test that
	// kills the handler more than twice sets it to 1 ns.
	CrashWindow time.Duration
	// ActivityTimeout is how long a handler may take to begin the answer to a proxied request. Default 240 seconds.
	ActivityTimeout time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Validate reports everything that is wrong with the values themselves; [New] also looks into the script root.
func (c Config) Validate() error {
	var errs []error
	if c.ScriptRoot == "" {
		errs = append(errs, errors.New("config: ScriptRoot is required: the folder that was staged"))
	}
	if c.Port < 0 || c.Port > 65535 {
		errs = append(errs, fmt.Errorf("config: Port %d is not a port", c.Port))
	}
	if c.Visibility != 0 && (c.Visibility < time.Second || c.Visibility > queues.MaxDelay) {
		errs = append(errs, fmt.Errorf("config: Visibility %v is not between a second and %v", c.Visibility, queues.MaxDelay))
	}
	for name, span := range map[string]time.Duration{
		"MinPolling": c.MinPolling, "KillGrace": c.KillGrace, "StopGrace": c.StopGrace, "CrashWindow": c.CrashWindow,
		"ActivityTimeout": c.ActivityTimeout,
	} {
		if span < 0 {
			errs = append(errs, fmt.Errorf("config: %s %v is negative", name, span))
		}
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was left at zero.
func (c Config) withDefaults() Config {
	for span, value := range map[*time.Duration]time.Duration{
		&c.Visibility:      10 * time.Minute,
		&c.MinPolling:      100 * time.Millisecond,
		&c.KillGrace:       2 * time.Second,
		&c.StopGrace:       3 * time.Second,
		&c.CrashWindow:     30 * time.Minute,
		&c.ActivityTimeout: 240 * time.Second,
	} {
		if *span == 0 {
			*span = value
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.OnInvocation == nil {
		c.OnInvocation = func(Invocation) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Outcome is what became of an invocation.
type Outcome string

const (
	// Succeeded: its queue message was deleted.
	Succeeded Outcome = "succeeded"
	// Failed: its queue message comes again.
	Failed Outcome = "failed"
	// Poisoned: its queue message was moved to the poison queue; when its attempts were used up before, without
	// running the function.
	Poisoned Outcome = "poisoned"
)

// Invocation is one run of a function, as an observer sees it.
type Invocation struct {
	// ID is the invocation id that the handler saw; empty if the function was not run.
	ID string
	// Function is its name, Trigger the type of its trigger as in function.json.
	Function string
	Trigger  string
	// MessageID and DequeueCount are those of the queue message; empty and 0 for other triggers.
	MessageID    string
	DequeueCount int64
	Outcome      Outcome
	// Err is why it failed; nil if it succeeded. A [*Violation] is in its chain if the handler broke the protocol.
	Err error
	// Duration from the trigger to the end, waiting for the handler included.
	Duration time.Duration
}

// Violation is the rule that the handler broke, or nil.
func (i Invocation) Violation() *Violation {
	violation, _ := errors.AsType[*Violation](i.Err)
	return violation
}
