package realhost

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// app is the app that a host runs.
type app struct {
	dist    string
	account azure.Account
	key     string // of functions and of admin endpoints
	// id of the host in storage: hosts with one id share locks and keys.
	id  string
	env []string // NAME=value
	// probe is the path that answers when the app is ready.
	probe string
	// auth makes the host require keys.
	auth bool
}

// real is the real Functions host as a process.
type real struct {
	url     string
	command *exec.Cmd
	log     string // the file with the output of host and handler
	ended   chan struct{}
}

// startReal starts the real host and waits until the app is ready. It ends with the test.
func startReal(t *testing.T, a app) *real {
	t.Helper()
	folder, port := testenv.RealHost(t), testenv.Port(t)
	putKeys(t, a)
	arguments := []string{"start", "--port", strconv.Itoa(port)}
	if a.auth {
		arguments = append(arguments, "--enableAuth")
	}
	log := testenv.Must(os.Create(filepath.Join(t.TempDir(), "host.log")))(t)
	h := &real{url: fmt.Sprintf("http://127.0.0.1:%d", port), log: log.Name(), ended: make(chan struct{})}
	h.command = exec.Command(filepath.Join(folder, "npm", "package", "bin", "linux-x64", "func"), arguments...)
	h.command.Dir, h.command.Stdout, h.command.Stderr = a.dist, log, log
	h.command.SysProcAttr = ownSession()
	h.command.Env = append(environment(folder, t.TempDir()), "AzureFunctionsWebHost__hostid="+a.id,
		"AzureWebJobsStorage="+a.account.ConnectionString(), "ROUNDHOUSE_LOCAL_KEY="+a.key)
	h.command.Env = append(h.command.Env, a.env...)
	// The host would inherit ignored signals; a handler for them makes the child start with the default.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP)
	defer signal.Stop(heard)
	started := make(chan error)
	go func() {
		// Linux signals the death of the parent when the thread that started the child ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := h.command.Start()
		started <- err
		if err == nil {
			_ = h.command.Wait() // the error is that of the kill
			close(h.ended)
		}
	}()
	testenv.OK(t, <-started)
	t.Cleanup(func() {
		h.kill(t)
		log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(h.log)
			t.Logf("the end of the real host's log:\n%s", text[max(0, len(text)-6000):])
		}
	})
	h.awaitReady(t, a.probe)
	return h
}

// environment returns this process's environment without variables that would mislead the host.
func environment(folder, home string) []string {
	env := []string{"DOTNET_ROOT=" + filepath.Join(folder, "dotnet"), "DOTNET_ROLL_FORWARD=LatestMajor", "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1",
		"FUNCTIONS_CORE_TOOLS_TELEMETRY_OPTOUT=1", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C"}
	if zone, ok := os.LookupEnv("TZ"); ok {
		env = append(env, "TZ="+zone)
	}
	return env
}

// putKeys writes the host's keys to the folder where it reads them, so that the test knows them.
func putKeys(t *testing.T, a app) {
	t.Helper()
	type key struct {
		Name      string `json:"name"`
		Value     string `json:"value"`
		Encrypted bool   `json:"encrypted"`
	}
	document, err := json.Marshal(map[string]any{"masterKey": key{Name: "master", Value: a.key},
		"functionKeys": []key{{Name: "default", Value: a.key}}, "systemKeys": []key{}})
	if err != nil {
		t.Fatal(err)
	}
	store, err := azure.NewBlobs(a.account)
	if err != nil {
		t.Fatal(err)
	}
	const container = "azure-webjobs-secrets"
	err = store.CreateContainer(t.Context(), container)
	testenv.OK(t, errors.Join(err, store.Put(t.Context(), container, a.id+"/host.json", document)))
}

// awaitReady waits until an address answers with 200: the app's readiness probe unless the test sets another.
func (h *real) awaitReady(t *testing.T, probe string) {
	t.Helper()
	ctx := testenv.Context(t)
	testenv.Until(t, "the app is ready", func() bool {
		select {
		case <-h.ended:
			t.Fatal("the real host has ended")
		default:
		}
		return answers(ctx, h.url+cmp.Or(probe, "/api/health/ready"))
	})
}

// answers reports whether an address answers with 200.
func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

// handler returns the process id of the handler, 0 without one.
func (h *real) handler() int {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", h.command.Process.Pid))
	if err == nil && len(children) == 0 {
		// Any thread may have started it, not just the first one.
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", h.command.Process.Pid))
		for _, list := range lists {
			more, _ := os.ReadFile(list)
			children = append(children, more...)
		}
	}
	for _, text := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			continue
		}
		if program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && filepath.Base(program) == "handler" {
			return pid
		}
	}
	return 0
}

// killHandler kills the handler as a crash does.
func (h *real) killHandler() error {
	pid := h.handler()
	if pid == 0 {
		return errors.New("no handler runs")
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// kill ends the host and its handler together.
func (h *real) kill(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-h.command.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
	<-h.ended
}

// interrupt ends the host as Ctrl-C does.
func (h *real) interrupt(t *testing.T) {
	t.Helper()
	testenv.OK(t, syscall.Kill(-h.command.Process.Pid, syscall.SIGINT))
	<-h.ended
}

// alive reports whether a process exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// said returns the output of host and handler so far.
func (h *real) said(t *testing.T) string {
	t.Helper()
	text := testenv.Must(os.ReadFile(h.log))(t)
	return string(text)
}

// newKey returns a key that no answer contains by chance.
func newKey() string { return rand.Text() }
