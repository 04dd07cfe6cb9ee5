package localhost

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// TestExits has a row for every way in which a handler can end.
func TestExits(t *testing.T) {
	t.Parallel()
	for function, test := range map[string]struct {
		times    int
		restarts bool
	}{
		"exit200": {4, true}, // unlimited
		"exit1":   {2, true},
		"exit0":   {1, false},
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			a.manual(t, function, "good")
			host, _, ended := a.start(t)
			starts := 1
			for range test.times {
				if i := a.invoke(t, host, function, ""); i.Err == nil {
					t.Errorf("%s succeeded", function)
				}
				if test.restarts {
					starts++
					a.output.wait(t, "handler starts", starts)
				}
			}
			if i := a.invoke(t, host, "good", ""); (i.Err == nil) != test.restarts {
				t.Errorf("afterwards: error %v, want restarts %v", i.Err, test.restarts)
			}
			select {
			case err := <-ended:
				t.Errorf("the host ended: %v", err)
			default:
			}
			_, status := request(t, http.MethodGet, host.URL()+"/admin/host/status", nil)
			if !strings.Contains(status, `"state":"Running"`) {
				t.Errorf("status %s", status)
			}
		})
	}
}

func TestThirdCrashEndsTheHost(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.manual(t, "exit1")
	host, _, ended := a.start(t)
	for crash := range 3 {
		a.output.wait(t, "handler starts", crash+1)
		a.invoke(t, host, "exit1", "")
	}
	if err := <-ended; !errors.Is(err, ErrHandlerKeepsCrashing) {
		t.Errorf("Run: %v, want %v", err, ErrHandlerKeepsCrashing)
	}
}

func TestCrashAtStartEndsTheHost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ env, timeout, want string }{
		"exits":       {"TEST_EXIT_AT_START=3", "00:01:00", "exit status 3"},
		"never ready": {"TEST_NEVER_READY=1", "00:00:00.2", "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			a.manual(t, "good")
			a.host["customHandler"].(map[string]any)["initializationTimeout"] = test.timeout
			a.config.Env = []string{test.env}
			host, end := a.launch(t)
			err := <-end.ended
			if !errors.Is(err, ErrHandlerKeepsCrashing) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Run: %v, want %q", err, test.want)
			}
			if err := host.WaitReady(t.Context()); !errors.Is(err, ErrStopped) || !errors.Is(err, ErrHandlerKeepsCrashing) {
				t.Errorf("WaitReady: %v", err)
			}
			a.output.wait(t, "handler starts", 3)
		})
	}
}

func TestHandlerThatExitsAtItsStartWithoutAnError(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.manual(t, "good")
	a.config.Env = []string{"TEST_EXIT_AT_START=0"}
	host, stop, ended := a.start(t)
	if i := a.invoke(t, host, "good", ""); i.Err == nil || !strings.Contains(i.Err.Error(), "refused") {
		t.Errorf("error %v, want a refused connection", i.Err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestKilledHandlerIsRestarted(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.manual(t, "good")
	a.config.CrashWindow = time.Nanosecond
	host, _, _ := a.start(t)
	pids := []int{host.HandlerPID()}
	for range 4 {
		testenv.OK(t, host.KillHandler())
		// An invocation after the kill waits for the next process.
		if i := a.invoke(t, host, "good", ""); i.Err != nil {
			t.Error(i.Err)
		}
		pid := host.HandlerPID()
		if slices.Contains(pids, pid) {
			t.Errorf("pid %d again", pid)
		}
		pids = append(pids, pid)
	}
	a.output.wait(t, "handler starts", 5)
}

func TestHandlerIsKilledWhenAFunctionTimesOut(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.manual(t, "hang", "good")
	a.host["functionTimeout"] = "00:00:01"
	a.config.KillGrace = time.Millisecond
	host, _, ended := a.start(t)
	for n := range 4 { // more often than crashes are allowed
		i := a.invoke(t, host, "hang", "")
		if !errors.Is(i.Err, ErrTimedOut) {
			t.Fatalf("error %v, want a time-out", i.Err)
		}
		a.output.wait(t, "handler starts", n+2)
	}
	// On an overloaded machine even this one may take too long, and then the handler is killed again.
	i := a.invoke(t, host, "good", "")
	for errors.Is(i.Err, ErrTimedOut) {
		i = a.invoke(t, host, "good", "")
	}
	if i.Err != nil {
		t.Error(i.Err)
	}
	select {
	case err := <-ended:
		t.Errorf("the host ended: %v", err)
	default:
	}
}

// A stopping host asks its handler to end, and kills it if it does not. It does not restart it.
func TestStoppingAsksBeforeItKills(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"it ends": nil, "it does not": {"TEST_DEAF=1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			a.manual(t, "hang")
			a.config.StopGrace = time.Minute
			if env != nil {
				a.config.StopGrace, a.config.Env = time.Millisecond, env
			}
			host, stop, ended := a.start(t)
			body := strings.NewReader(`{"input":""}`)
			request(t, http.MethodPost, host.URL()+"/admin/functions/hang", body, "Content-Type", "application/json")
			a.output.wait(t, "handler hangs", 1)
			handler := handlerURL(host.supervisor.port)
			stop()
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
			if i := a.next(t); i.Err == nil || i.Outcome != Failed {
				t.Errorf("the invocation that ran: %+v", i)
			}
			if host.HandlerPID() != 0 || !errors.Is(host.KillHandler(), ErrNoHandler) {
				t.Error("the host still has a handler")
			}
			if answers(t.Context(), handler) {
				t.Error("the handler still answers")
			}
			a.output.mu.Lock()
			defer a.output.mu.Unlock()
			text := a.output.text.String()
			if heard := strings.Count(text, "handler heard terminated"); heard != 1 && env == nil || strings.Count(text, "handler starts") != 1 {
				t.Errorf("the handler was asked to end %d times:\n%s", heard, text)
			}
			if err := host.Run(t.Context()); !errors.Is(err, ErrStopped) {
				t.Errorf("a second Run: %v", err)
			}
		})
	}
}

func answers(ctx context.Context, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return true
}

// playHost runs a host until it is killed, and prints its address and its handler's pid.
func playHost() {
	host, err := New(Config{ScriptRoot: os.Getenv("TEST_SCRIPT_ROOT"), Env: []string{roleVariable + "=handler"}, Output: io.Discard})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go func() {
		if host.WaitReady(context.Background()) == nil {
			fmt.Println(handlerURL(host.supervisor.port))
		}
	}()
	fmt.Println(host.Run(context.Background()))
}

func TestHandlerDiesWithAHostThatIsKilled(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	a := newApp(t)
	a.manual(t, "good")
	a.write(t, "host.json", a.host)
	executable := testenv.Must(os.Executable())(t)
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), roleVariable+"=host", "TEST_SCRIPT_ROOT="+a.root)
	output := testenv.Must(cmd.StdoutPipe())(t)
	testenv.OK(t, cmd.Start())
	scanner := bufio.NewScanner(output)
	if !scanner.Scan() || !answers(t.Context(), scanner.Text()) {
		_ = cmd.Process.Kill()
		t.Errorf("the handler does not answer at %q", scanner.Text())
	}
	handler := scanner.Text()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	testenv.Until(t, "the end of the handler", func() bool { return !answers(t.Context(), handler) })
}

func TestHandlerEnvironment(t *testing.T) {
	t.Parallel()
	env := environment{"FROM": "settings", "WEBSITE_HOSTNAME": "old"}
	h := &Host{config: Config{ScriptRoot: "/app"}, env: env, port: 7071}
	s := &supervisor{executable: "/app/handler", arguments: []string{"-x"}, dir: "/app", env: h.childEnvironment(), port: 4000, console: &console{}}
	first, second := s.command(), s.command()
	if diff := cmp.Diff([]string{"/app/handler", "-x"}, first.Args); diff != "" || first.Dir != "/app" {
		t.Errorf("%s, in %s", diff, first.Dir)
	}
	values := map[string]string{}
	for _, entry := range first.Env {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	id := values["FUNCTIONS_CUSTOMHANDLER_WORKER_ID"]
	want := map[string]string{
		"FROM": "settings", "WEBSITE_HOSTNAME": "localhost:7071", "AzureWebJobsScriptRoot": "/app", "FUNCTIONS_APP_ROOT_PATH": "/app",
		"FUNCTIONS_CORETOOLS_ENVIRONMENT": "true", "FUNCTIONS_CUSTOMHANDLER_PORT": "4000", "FUNCTIONS_HTTPWORKER_PORT": "4000",
		"FUNCTIONS_CUSTOMHANDLER_WORKER_ID": id, "FUNCTIONS_HTTPWORKER_ID": id,
	}
	if diff := cmp.Diff(want, values); diff != "" || len(id) != 36 {
		t.Errorf("%s, id %q", diff, id)
	}
	if slices.Contains(second.Env, "FUNCTIONS_CUSTOMHANDLER_WORKER_ID="+id) {
		t.Error("a second start has the same worker id")
	}
	if env["WEBSITE_HOSTNAME"] != "old" {
		t.Error("the host's own settings were changed")
	}
}

func TestCrashesCountWithinTheirWindow(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &supervisor{crashWindow: 30 * time.Minute, now: func() time.Time { return now }, log: Config{}.withDefaults().Log, console: &console{}}
	for i, gap := range []time.Duration{0, 29 * time.Minute, 31 * time.Minute, 29 * time.Minute, 29 * time.Minute} {
		now = now.Add(gap)
		err := s.crashed(ending{code: 1, text: "exit status 1"})
		if last := i == 4; (err != nil) != last {
			t.Errorf("crash %d: %v", i+1, err)
		}
	}
}

func TestConsole(t *testing.T) {
	t.Parallel()
	out := &lines{}
	c := &console{out: out}
	w := &lineWriter{console: c, stderr: true}
	for _, piece := range []string{"one\nerror ", "two\r\n\nfail three\nWARN: error\nsevere four\nunhandled exception five\nsi", "x"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("Write: %d, %v", n, err)
		}
	}
	w.flush()
	w.flush()
	if diff := cmp.Diff("one\nerror two\nfail three\nWARN: error\nsevere four\nunhandled exception five\nsix\n", out.text.String()); diff != "" {
		t.Error(diff)
	}
	testenv.Equal(t, "", []string{"fail three", "severe four", "unhandled exception five"}, c.takeErrors())
	for range 3 {
		_, _ = w.Write(make([]byte, maxLine))
	}
	if len(w.partial) != 0 {
		t.Errorf("%d bytes of a line without end are kept", len(w.partial))
	}
}

func TestConsoleLogsWithoutAnOutput(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	c := &console{log: textLog(&log)}
	c.line(false, "an error on stdout is information")
	c.line(true, "a warning")
	c.line(true, "it failed")
	c.errorsOnStderr = true
	c.line(true, "anything")
	var levels []string
	for line := range strings.Lines(log.String()) {
		var entry struct{ Level, Source string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Source != "handler" {
			t.Errorf("%v in %s", err, line)
		}
		levels = append(levels, entry.Level)
	}
	testenv.Equal(t, "", []string{"INFO", "WARN", "ERROR", "ERROR"}, levels)
}
