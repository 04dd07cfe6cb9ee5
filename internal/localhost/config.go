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

// DefaultPort is the usual port of a local Functions host.
const DefaultPort = 7071

var (
	// ErrHandlerKeepsCrashing ends [Host.Run]: the handler crashed for the third time, each within the crash window after
	// the previous crash.
	ErrHandlerKeepsCrashing = errors.New("the handler keeps crashing, the host gives up")
	// ErrTimedOut means that an invocation took longer than functionTimeout.
	ErrTimedOut = errors.New("the function timed out")
	// ErrNoHandler means that no handler process runs right now.
	ErrNoHandler = errors.New("no handler process is running")
	// ErrStopped means that the host has stopped.
	ErrStopped = errors.New("the host has stopped")

	// errNotRegistered means that the host lacks the extension of a function's trigger.
	errNotRegistered = errors.New("the binding type queueTrigger is not registered: the extension of queues is missing")
	errNoQueues      = errors.New("the host runs without queue storage: set Config.Queues")
)

// Config configures a Host. Only ScriptRoot is required.
type Config struct {
	// ScriptRoot is the folder with host.json, the handler and one folder per function.
	ScriptRoot string
	// Queues is the store of queue functions. Without it only the others can run.
	Queues queues.Store
	// Blobs stores the states of timers across restarts; nil keeps them only while the host runs.
	Blobs blobs.Store
	// Port to listen on, on 127.0.0.1; 0 means a free one. See [DefaultPort].
	Port int
	// FunctionKey is the key of every function, and of the admin endpoints, given as x-functions-key or ?code=; the
	// handler finds it in its environment as ROUNDHOUSE_LOCAL_KEY. If it is empty, every request is an administrator's.
	FunctionKey string
	// Chunked sends invocations without Content-Length, as Azure does; Core Tools send it.
	Chunked bool
	// Env is added to the environment of the host and of the handler, as NAME=value. It wins over this process's
	// environment, which wins over local.settings.json.
	Env []string
	// Output receives the handler's standard output and error; nil sends them to Log.
	Output io.Writer
	// OnInvocation is called after each invocation, when its queue message has been settled; concurrently.
	OnInvocation func(Invocation)
	// Log is the log of the host; nil discards it.
	Log *slog.Logger

	// The fields below are for tests; their zero values are the real host's.

	// Visibility is how long a received message is hidden; it is renewed at half of that. Default 10 minutes.
	Visibility time.Duration
	// MinPolling is the shortest wait between polls of an empty queue. Default 100 ms. The longest is in host.json.
	MinPolling time.Duration
	// KillGrace is the time from functionTimeout to the kill of the handler. Default 2 seconds.
	KillGrace time.Duration
	// StopGrace is the time for the handler and running invocations to end when the host stops. Default 3 seconds:
	// activities that ignore their contexts have 2.
	StopGrace time.Duration
	// CrashWindow is the longest interval between crashes that count together. Default 30 minutes. A test that kills the
	// handler more than twice sets it to 1 ns.
	CrashWindow time.Duration
	// ActivityTimeout is how long a handler may take to start the answer to a proxied request. Default 240 seconds.
	ActivityTimeout time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Validate reports all invalid values; [New] also checks the script root.
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

// withDefaults sets the defaults of zero fields.
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

// Outcome is the result of an invocation.
type Outcome string

const (
	// Succeeded means that its queue message was deleted.
	Succeeded Outcome = "succeeded"
	// Failed means that its queue message is redelivered.
	Failed Outcome = "failed"
	// Poisoned means that its queue message was moved to the poison queue; if its attempts were used up before, without
	// running the function.
	Poisoned Outcome = "poisoned"
)

// Invocation is one run of a function, as reported to an observer.
type Invocation struct {
	// ID is the invocation id of the handler; empty if the function was not run.
	ID string
	// Function is its name, Trigger the type of its trigger as in function.json.
	Function string
	Trigger  string
	// MessageID and DequeueCount are those of the queue message; empty and 0 for other triggers.
	MessageID    string
	DequeueCount int64
	Outcome      Outcome
	// Err is the failure; nil if it succeeded. A [*Violation] is in its chain if the handler broke the protocol.
	Err error
	// Duration is the time from the trigger to the end, waiting for the handler included.
	Duration time.Duration
}

// Violation returns the rule that the handler broke, or nil.
func (i Invocation) Violation() *Violation {
	violation, _ := errors.AsType[*Violation](i.Err)
	return violation
}
