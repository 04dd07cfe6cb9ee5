package handler

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/preparation"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/settings/settingstest"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// runAsHandler makes the test binary the real process, for tests that need a process of its own.
const runAsHandler = "ROUNDHOUSE_TEST_RUN_AS_HANDLER"

// engineSetting is a setting that an engine of the app reads.
const engineSetting = "TEST_ENGINE_INTERVAL"

// emulator holds the minimal settings of an app, with the host.json of the repository.
var emulator = settingstest.Emulator("..")

// storage is for the tests that run the real process: it creates its tables and queues before it listens.
var storage azuritetest.Shared

func TestMain(m *testing.M) {
	if os.Getenv(runAsHandler) != "" {
		Main(App{Engines: func(p *Platform) ([]engine.Definition, error) {
			p.Settings.Duration(engineSetting, 0, time.Hour)
			return nil, nil
		}})
	}
	testenv.Main(m, func() error { return errors.Join(storage.Close(), databases.Close()) })
}

// logRecord holds the fields of a log line that the tests check.
type logRecord struct {
	Msg, Reason, Error, Address string
	ExitCode                    int
}

// process is a runner that runs inside the test.
type process struct {
	address string
	stop    context.CancelFunc
	exit    chan int
	last    chan logRecord // the last record, once the log has ended
}

// startProgram runs m with emulator settings and returns when it listens.
func startProgram(t *testing.T, m runner, a program) process {
	t.Helper()
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	p := process{stop: cancel, exit: make(chan int, 1), last: make(chan logRecord, 1)}
	m.Stdout, m.Stderr = write, write
	m.Wire = func(*settings.Reader, settings.Settings, *slog.Logger) (program, error) { return a, nil }
	go func() {
		p.exit <- m.Run(ctx, nil, emulator.Lookup)
		write.Close()
	}()
	listening := make(chan string, 1)
	go func() { p.last <- follow(read, listening) }()
	select {
	case p.address = <-listening:
	case code := <-p.exit:
		t.Fatalf("exit code %d before the process listens", code)
	}
	t.Cleanup(cancel)
	return p
}

// follow reads a log to its end, passes on the listening address, and returns the last record.
func follow(log io.Reader, listening chan<- string) (last logRecord) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var record logRecord
		if json.Unmarshal(lines.Bytes(), &record) != nil {
			continue
		}
		if record.Msg == "listening" {
			listening <- record.Address
		}
		last = record
	}
	return last
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func request(ctx context.Context, method, url, body string) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	return res.StatusCode, string(content), err
}

func mustRequest(t *testing.T, method, url, body string, status int) string {
	t.Helper()
	got, answer, err := request(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if got != status {
		t.Errorf("%s %s: status %d, want %d: %s", method, url, got, status, answer)
	}
	return answer
}

func queueApp(handle trigger.QueueHandler) program {
	return program{Queues: map[string]trigger.Queue{"work": {Queue: "work-queue", Parameter: "message", Handle: handle}}}
}

const workBody = `{"Data":{"message":"aGk="},"Metadata":{}}`

func TestProgramServes(t *testing.T) {
	t.Parallel()
	a := queueApp(func(context.Context, engine.Delivery) error { return nil })
	var closed bool
	started := make(chan struct{})
	a.Preparation = preparation.New(slog.New(slog.DiscardHandler), []preparation.Step{func(context.Context) error { close(started); return nil }})
	a.Close = func() { closed = true }
	a.API = func(e *echo.Echo) error {
		e.GET("/api/ping", func(c echo.Context) error { return c.String(http.StatusTeapot, "pong") })
		e.GET("/api/panic", func(echo.Context) error { panic("oh") })
		return nil
	}
	p := startProgram(t, runner{}, a)
	if host, _, err := net.SplitHostPort(p.address); err != nil || host != "127.0.0.1" {
		t.Errorf("listens on %s", p.address)
	}
	base := "http://" + p.address
	mustRequest(t, http.MethodGet, base+"/", "", http.StatusOK)
	mustRequest(t, http.MethodPost, base+"/work", workBody, http.StatusOK)
	mustRequest(t, http.MethodPost, base+"/other", workBody, http.StatusNotFound)
	if got := mustRequest(t, http.MethodGet, base+"/api/ping", "", http.StatusTeapot); got != "pong" {
		t.Errorf("answer %q", got)
	}
	mustRequest(t, http.MethodGet, base+"/api/panic", "", http.StatusInternalServerError)
	mustRequest(t, http.MethodGet, base+"/", "", http.StatusOK)

	p.stop()
	if code := <-p.exit; code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	if last := <-p.last; last.Msg != "stopped" || last.ExitCode != exitFailure {
		t.Errorf("last record %+v", last)
	}
	<-started
	if !closed {
		t.Error("not closed")
	}
}

// Stopping waits for the invocations in flight; those that take too long see their context end and still get answered.
func TestStopWaitsForInvocations(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		drain  time.Duration
		status int
		handle func(ctx context.Context, release <-chan struct{}) error
	}{
		{"in time", time.Minute, http.StatusOK, func(_ context.Context, release <-chan struct{}) error {
			<-release
			return nil
		}},
		{"too late", time.Millisecond, http.StatusInternalServerError, func(ctx context.Context, _ <-chan struct{}) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			entered, release := make(chan struct{}), make(chan struct{})
			var finished atomic.Bool
			a := queueApp(func(ctx context.Context, _ engine.Delivery) error {
				defer finished.Store(true)
				close(entered)
				return tt.handle(ctx, release)
			})
			a.Close = func() {
				if !finished.Load() {
					t.Error("closed while an invocation was running")
				}
			}
			p := startProgram(t, runner{Drain: tt.drain}, a)
			done := make(chan error, 1)
			go func() {
				status, answer, err := request(context.Background(), http.MethodPost, "http://"+p.address+"/work", workBody)
				if err == nil && status != tt.status {
					err = fmt.Errorf("status %d: %s", status, answer)
				}
				if err == nil && status != http.StatusOK && !strings.Contains(answer, errStopping.Error()) {
					err = fmt.Errorf("answer %s", answer)
				}
				done <- err
			}()
			<-entered
			p.stop()
			awaitRefusal(t, p.address)
			close(release)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if code := <-p.exit; code != exitFailure {
				t.Errorf("exit code %d", code)
			}
			<-p.last
		})
	}
}

// A request that waits for missing storage is answered immediately when the program stops.
func TestStopEndsWaiting(t *testing.T) {
	t.Parallel()
	tried, entered, putBack := make(chan struct{}), make(chan struct{}), make(chan struct{})
	a := queueApp(func(context.Context, engine.Delivery) error {
		t.Error("the handler was called")
		return nil
	})
	once := sync.OnceFunc(func() { close(tried) })
	a.Preparation = preparation.New(slog.New(slog.DiscardHandler), []preparation.Step{func(context.Context) error { once(); return errors.New("no storage") }})
	a.API = func(e *echo.Echo) error {
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error { close(entered); return next(c) }
		})
		return nil
	}
	work := a.Queues["work"]
	work.PutBack = func(context.Context, engine.Delivery, time.Duration) error {
		close(putBack)
		return errors.New("no storage, either")
	}
	a.Queues["work"] = work
	p := startProgram(t, runner{Drain: time.Hour}, a)
	<-tried
	done := make(chan error, 1)
	go func() {
		status, answer, err := request(context.Background(), http.MethodPost, "http://"+p.address+"/work", workBody)
		if err == nil && (status != http.StatusServiceUnavailable || !strings.Contains(answer, "nobody prepares it any more")) {
			err = fmt.Errorf("status %d: %s", status, answer)
		}
		done <- err
	}()
	<-entered
	p.stop()
	<-putBack
	if err := <-done; err != nil {
		t.Error(err)
	}
	if code := <-p.exit; code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	<-p.last
}

// awaitRefusal returns when the address no longer has a listener.
func awaitRefusal(t *testing.T, address string) {
	t.Helper()
	dialer := net.Dialer{}
	for t.Context().Err() == nil {
		conn, err := dialer.DialContext(t.Context(), "tcp4", address)
		if err != nil {
			return
		}
		conn.Close()
	}
}

func TestProgramThatDoesNotStart(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, port, _ := net.SplitHostPort(busy.Addr().String())
	oh := errors.New("oh")
	bad := queueApp(nil)

	for _, tt := range []struct {
		name    string
		env     settingstest.Environment
		args    []string
		program program
		wire    error
		code    int
		// fatal means that it is on standard error, from which the host's record of a crash copies it.
		fatal bool
		want  string
	}{
		{"settings", settingstest.Environment{}, nil, program{}, nil, exitUsage, true, "handler: error: these app settings are missing or wrong: FUNCTIONS_CUSTOMHANDLER_PORT is not set"},
		{"argument", emulator, []string{"now"}, program{}, nil, exitUsage, false, `unexpected argument "now"`},
		{"flag", emulator, []string{"-fast"}, program{}, nil, exitUsage, false, "-fast"},
		{"wiring", emulator, nil, program{}, oh, exitFailure, true, "handler: error: the program cannot be put together: oh"},
		{"functions", emulator, nil, bad, nil, exitFailure, true, "handler: error: stopped: mount the functions"},
		{"port", emulator.With("FUNCTIONS_CUSTOMHANDLER_PORT", port), nil, program{}, nil, exitFailure, true, "handler: error: stopped: listen on the port that the host has given"},
		{"help", settingstest.Environment{}, []string{"-h"}, program{}, nil, exitOK, false, "started by the Azure Functions host"},
		{"version", settingstest.Environment{}, []string{"-version"}, program{}, nil, exitOK, false, "github.com/vibedata/roundhouse"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, log bytes.Buffer
			m := runner{Stdout: &log, Stderr: &out, Wire: func(*settings.Reader, settings.Settings, *slog.Logger) (program, error) { return tt.program, tt.wire }}
			if code := m.Run(t.Context(), tt.args, tt.env.Lookup); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !tt.fatal {
				out.Write(log.Bytes())
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("%q is not in:\n%s", tt.want, &out)
			}
		})
	}
}

// childEnv returns the settingstest.Environment of a child that is the real process.
func childEnv(env settingstest.Environment) []string {
	all := append(os.Environ(), runAsHandler+"=1")
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	return all
}

func TestProcessReportsItsSettings(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(testenv.Context(t), os.Args[0])
	cmd.Env = childEnv(settingstest.Environment{
		"FUNCTIONS_CUSTOMHANDLER_PORT": "high", "FUNCTIONS_APP_ROOT_PATH": "..", "AzureWebJobsStorage": "nonsense", engineSetting: "1m",
		"ROUNDHOUSE_INVOCATION_BUDGET": "forever", "ROUNDHOUSE_LOG_LEVEL": "loud", "ROUNDHOUSE_KEY_VAULT_URL": "v",
	})
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exitUsage {
		t.Errorf("%v, want exit code %d", err, exitUsage)
	}
	if lines := strings.Count(stderr.String(), "\n"); lines != 1 { // the lines that the host's record of a crash certainly has
		t.Errorf("%d lines:\n%s", lines, &stderr)
	}
	for _, want := range []string{
		"FUNCTIONS_CUSTOMHANDLER_PORT", "AzureWebJobsStorage", engineSetting, "ROUNDHOUSE_INVOCATION_BUDGET", "ROUNDHOUSE_LOG_LEVEL", "ROUNDHOUSE_KEY_VAULT_URL",
	} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%s is not in:\n%s", want, &stderr)
		}
	}
}

func TestProcessStopsOnSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(testenv.Context(t), os.Args[0])
			cmd.Env = childEnv(emulator.With(settings.Storage, storage.Account(t).ConnectionString()))
			log, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			listening, last := make(chan string, 1), make(chan logRecord, 1)
			go func() { last <- follow(log, listening) }()
			select {
			case address := <-listening:
				mustRequest(t, http.MethodGet, "http://"+address+"/", "", http.StatusOK)
			case record := <-last:
				t.Fatalf("ended with %+v", record)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			want := map[os.Signal]int{syscall.SIGINT: exitSignaled + int(syscall.SIGINT), syscall.SIGTERM: exitRestart}[sig]
			if record := <-last; record.Msg != "stopped" || record.ExitCode != want {
				t.Errorf("last record %+v", record)
			}
			err = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != want {
				t.Errorf("exit code %d, want %d: %v", code, want, err)
			}
		})
	}
}

// startProcess starts the real process, and returns its address and its log, line by line.
func startProcess(t *testing.T, env settingstest.Environment) (cmd *exec.Cmd, address string, log *bufio.Scanner) {
	t.Helper()
	cmd = exec.CommandContext(testenv.Context(t), os.Args[0])
	cmd.Env = childEnv(env)
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	log = bufio.NewScanner(output)
	return cmd, awaitLog(t, log, "listening").Address, log
}

// awaitLog reads a log until it contains a message.
func awaitLog(t *testing.T, log *bufio.Scanner, message string) (record logRecord) {
	t.Helper()
	for log.Scan() {
		if json.Unmarshal(log.Bytes(), &record) == nil && record.Msg == message {
			return record
		}
	}
	t.Fatalf("the log has ended without %q: %v", message, log.Err())
	return record
}

// A process that waits for a request ends immediately at the second signal.
func TestProcessEndsAtTheSecondSignal(t *testing.T) {
	t.Parallel()
	cmd, address, log := startProcess(t, emulator.With(settings.Storage, storage.Account(t).ConnectionString()))
	conn, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A request without its body keeps the server from ending.
	if _, err := io.WriteString(conn, "POST /outbox-wake-trigger HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil { // 100 Continue: it is read
		t.Fatal(err)
	}
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		for log.Scan() && !strings.Contains(log.Text(), "the work is handed back") { // it waits for the request then, or has ended
		}
	}
	_ = cmd.Wait() // it was killed
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGINT {
		t.Errorf("the process ended with %v", cmd.ProcessState)
	}
}

// A process without storage does not wait for storage when it ends, either.
func TestProcessStopsWithoutStorage(t *testing.T) {
	t.Parallel()
	account := azure.EmulatorAccount(1, 1, 1) // without a listener
	cmd, _, log := startProcess(t, emulator.With(settings.Storage, account.ConnectionString()))
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if record := awaitLog(t, log, "stopped"); record.ExitCode != 128+int(syscall.SIGINT) {
		t.Errorf("last record %+v", record)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 128+int(syscall.SIGINT) {
		t.Errorf("exit code %d: %v", cmd.ProcessState.ExitCode(), err)
	}
}

// When the process that started the handler is killed, the handler ends too.
func TestProcessEndsWithItsParent(t *testing.T) {
	t.Parallel()
	log, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// The shell is in between: killing it orphans the handler.
	parent := exec.Command("sh", "-c", `"$0" & wait`, os.Args[0])
	parent.Env = childEnv(emulator.With(settings.Storage, storage.Account(t).ConnectionString()))
	parent.Stdout = write
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	listening, last := make(chan string, 1), make(chan logRecord, 1)
	go func() { last <- follow(log, listening) }()
	var address string
	select {
	case address = <-listening:
		mustRequest(t, http.MethodGet, "http://"+address+"/", "", http.StatusOK)
	case record := <-last:
		t.Fatalf("ended with %+v: %v", record, parent.Wait())
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err == nil {
		t.Error("the shell ended by itself")
	}
	// The log ends with the handler: no other process keeps it open.
	if record := <-last; record.Msg != "stopped" || record.Reason != errParentGone.Error() || record.ExitCode != exitFailure {
		t.Errorf("last record %+v", record)
	}
	if _, _, err := request(t.Context(), http.MethodGet, "http://"+address+"/", ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("something still listens on %s: %v", address, err)
	}
}
