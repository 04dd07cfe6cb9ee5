package localhost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/internal/freeport"
)

const (
	developmentSetting = "AZURE_FUNCTIONS_ENVIRONMENT"
	runtimeSetting     = "FUNCTIONS_WORKER_RUNTIME"
)

// Host runs the functions of one script root. Make one with [New]; it runs once.
type Host struct {
	config    Config
	host      hostConfig
	id        string
	functions []*function
	routes    []route
	admin     *http.ServeMux
	zone      *time.Location
	env       environment

	ready   chan struct{}
	ended   chan struct{}
	ran     atomic.Bool
	endErr  error // the error of Run; read after ended is closed
	port    int   // set before ready is closed
	begun   time.Time
	running atomic.Int64 // invocations

	supervisor *supervisor
	invoker    *invoker

	drain     chan struct{} // closed to stop the triggers
	drainOnce sync.Once

	mu       sync.Mutex
	stopping bool           // no request is accepted now
	work     sync.WaitGroup // requests, and manual invocations, which outlive theirs
}

// New reads and checks the script root. Functions that cannot run do not fail it: they are logged, and shown by GET
// /admin/functions. The errors name the value to change in Config, host.json or the settings.
func New(config Config) (*Host, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("local host: %w", err)
	}
	config = config.withDefaults()
	root, err := filepath.Abs(config.ScriptRoot)
	if err != nil {
		return nil, fmt.Errorf("local host: %w", err)
	}
	config.ScriptRoot = root
	local, err := localSettings(root)
	if err != nil {
		return nil, fmt.Errorf("local host: %w", err)
	}
	h := &Host{config: config, env: newEnvironment(os.Environ(), local, config.Env),
		ready: make(chan struct{}), ended: make(chan struct{}), drain: make(chan struct{})}
	h.admin = h.adminRoutes()
	if err := h.load(); err != nil {
		return nil, fmt.Errorf("local host: %s: %w", root, err)
	}
	return h, nil
}

// load reads the script root.
func (h *Host) load() error {
	if !strings.EqualFold(h.env[runtimeSetting], "custom") {
		return fmt.Errorf("%s is %q: set it to custom in local.settings.json", runtimeSetting, h.env[runtimeSetting])
	}
	if h.env[developmentSetting] == "" {
		h.env[developmentSetting] = "Development"
	}
	var err error
	if h.zone, err = h.timeZone(); err != nil {
		return err
	}
	if h.host, err = loadHostConfig(h.config.ScriptRoot, h.env); err != nil {
		return err
	}
	if h.functions, err = discover(h.config.ScriptRoot, h.env); err != nil {
		return err
	}
	h.id = hostID(h.env, h.config.ScriptRoot)
	for _, f := range h.functions {
		h.prepare(f)
	}
	sortRoutes(h.routes)
	return h.connect()
}

// prepare adds the host's resources for a function, or reports a missing one.
func (h *Host) prepare(f *function) {
	if f.err == nil && f.trigger.Type == httpTrigger {
		r, err := parseRoute(f, h.host.routePrefix)
		if err != nil {
			f.err = fmt.Errorf("function %s: %w", f.name, err)
		} else if f.runnable() {
			h.routes = append(h.routes, r)
		}
	}
	if f.err == nil && f.trigger.Type == queueTrigger && h.config.Queues == nil {
		f.err = errNotRegistered
	}
	if f.err != nil {
		h.config.Log.Error("function does not run", "function", f.name, "error", f.err)
	}
}

func (h *Host) timeZone() (*time.Location, error) {
	name := h.env["WEBSITE_TIME_ZONE"]
	if name == "" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("WEBSITE_TIME_ZONE: %w", err)
	}
	return zone, nil
}

var notInHostID = regexp.MustCompile(`[^a-z0-9-]+`)

// hostID distinguishes the blobs of hosts: by setting, otherwise by machine and folder.
func hostID(env environment, root string) string {
	if id := env["AzureFunctionsWebHost__hostid"]; id != "" {
		return id
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "localhost"
	}
	sum := sha256.Sum256([]byte(root))
	machine = notInHostID.ReplaceAllString(strings.ToLower(machine), "")
	return strings.Trim(machine[:min(len(machine), 20)], "-") + "-" + hex.EncodeToString(sum[:5])
}

// Run serves until ctx ends, which is no error, or until the host gives up on its handler. When it returns, the handler
// process is gone and every received message is deleted, visible again, moved, or hidden where it has no poison queue.
// It can be called once.
func (h *Host) Run(ctx context.Context) (err error) {
	if h.ran.Swap(true) {
		return fmt.Errorf("local host: run: %w", ErrStopped)
	}
	defer func() {
		h.endErr = err
		close(h.ended)
	}()
	listening, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", h.config.Port))
	if err != nil {
		return fmt.Errorf("local host: listen (is another host running?): %w", err)
	}
	h.port, h.begun = listening.Addr().(*net.TCPAddr).Port, h.config.Now()
	h.supervisor.env = h.childEnvironment()
	if h.supervisor.port = h.host.handlerPort; h.supervisor.port == 0 {
		port, err := freeport.Reserve()
		if err != nil {
			_ = listening.Close()
			return fmt.Errorf("local host: find a port for the handler: %w", err)
		}
		// The handler starts more than once, and no other program may answer on its port. Go listens with SO_REUSEADDR, so it
		// can still bind the port.
		defer port.Close()
		h.supervisor.port = port.Number
	}
	return h.serve(ctx, listening)
}

// connect makes the client of the handler process; the handler's port is known when the host runs.
func (h *Host) connect() error {
	executable, err := h.executable()
	if err != nil {
		return err
	}
	// Compression would add a header that the real host does not send, and loopback traffic must bypass proxies.
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}
	h.supervisor = &supervisor{
		executable: executable, arguments: h.host.arguments, dir: h.workingDirectory(),
		initTimeout: h.host.initTimeout, crashWindow: h.config.CrashWindow, now: h.config.Now, log: h.config.Log,
		console:   &console{out: h.config.Output, log: h.config.Log, errorsOnStderr: h.host.errorsOnStderr},
		transport: transport, ended: make(chan struct{}), changed: make(chan struct{}),
	}
	h.invoker = &invoker{supervisor: h.supervisor, client: newClient(transport), chunked: h.config.Chunked,
		timeout: h.host.functionTimeout, killGrace: h.config.KillGrace}
	return nil
}

// executable finds the handler: under the script root, or on PATH if it has arguments, as under Core Tools.
func (h *Host) executable() (string, error) {
	path := h.host.executable
	if filepath.IsAbs(path) {
		return path, nil
	}
	staged := filepath.Join(h.config.ScriptRoot, path)
	if _, err := os.Stat(staged); err == nil || len(h.host.arguments) == 0 {
		return staged, nil
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("find the handler: %w", err)
	}
	return found, nil
}

func (h *Host) workingDirectory() string {
	if filepath.IsAbs(h.host.workingDirectory) {
		return h.host.workingDirectory
	}
	return filepath.Join(h.config.ScriptRoot, h.host.workingDirectory)
}

// childEnvironment returns the handler's environment, without the variables that differ with each start.
func (h *Host) childEnvironment() environment {
	env := environment{}
	for name, value := range h.env {
		env[name] = value
	}
	env["FUNCTIONS_APP_ROOT_PATH"] = h.config.ScriptRoot
	env["FUNCTIONS_CORETOOLS_ENVIRONMENT"] = "true"
	env["WEBSITE_HOSTNAME"] = fmt.Sprintf("localhost:%d", h.port)
	env["AzureWebJobsScriptRoot"] = h.config.ScriptRoot
	delete(env, localKeyVariable) // the key of another host is invalid here
	if h.config.FunctionKey != "" {
		env[localKeyVariable] = h.config.FunctionKey
	}
	return env
}

// URL returns the address of the host; valid once it is ready.
func (h *Host) URL() string { return handlerURL(h.port) }

// WaitReady waits until the handler answers and every trigger runs. If the host ends first, it returns the host's
// error.
func (h *Host) WaitReady(ctx context.Context) error {
	select {
	case <-h.ready:
		return nil
	case <-h.ended:
		return errors.Join(fmt.Errorf("wait for the local host: %w", ErrStopped), h.endErr)
	case <-ctx.Done():
		return fmt.Errorf("wait for the local host: %w", ctx.Err())
	}
}

// HandlerPID returns the handler's process id; 0 while none runs.
func (h *Host) HandlerPID() int { return h.supervisor.pid() }

// KillHandler kills the handler with SIGKILL, like a crash: running invocations fail, and the host restarts the handler
// unless that was the third crash (see [Config.CrashWindow]). It returns [ErrNoHandler] if none runs.
func (h *Host) KillHandler() error { return h.supervisor.kill() }
