package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// ownModule is a module that roundhouse new made, and roundhouse dev running in it.
type ownModule struct {
	dir, url string
	dev      *exec.Cmd
	said     *transcript
}

// transcript is the output of a process so far.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *transcript) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		s.mu.Lock()
		s.text.WriteString(lines.Text() + "\n")
		s.mu.Unlock()
	}
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until the process has printed a text n times.
func (s *transcript) await(t *testing.T, what string, n int) {
	t.Helper()
	testenv.Await(t, fmt.Sprintf("%q, %d times", what, n), func() (text string, ok bool) {
		text = s.String()
		return text, strings.Count(text, what) >= n
	})
}

// in runs a command in a folder.
func in(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(testenv.Context(t), name, args...)
	cmd.Dir = dir
	// A make that runs this test passes on its variables, ARGS among them.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") || strings.HasPrefix(v, "ARGS=")
	})
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// newOwnModule makes a module with only the command line, and runs it.
func newOwnModule(t *testing.T) *ownModule {
	t.Helper()
	root := testenv.Must(filepath.Abs("../.."))(t)
	roundhouse := filepath.Join(t.TempDir(), "roundhouse")
	in(t, root, "go", "build", "-o", roundhouse, "./cmd/roundhouse")
	port := testenv.Port(t)
	m := &ownModule{dir: filepath.Join(t.TempDir(), "billing"), url: fmt.Sprintf("http://127.0.0.1:%d", port), said: &transcript{}}
	in(t, t.TempDir(), roundhouse, "new", m.dir, "--module", "example.com/billing", "--replace", root)
	m.dev = exec.Command("go", "tool", "roundhouse", "dev", "--port", fmt.Sprint(port),
		"--storage-ports", fmt.Sprintf("%d,%d,%d", testenv.Port(t), testenv.Port(t), testenv.Port(t)))
	m.dev.Dir = m.dir
	m.dev.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the go command forwards no signals
	stdout, err1 := m.dev.StdoutPipe()
	stderr, err2 := m.dev.StderrPipe()
	testenv.OK(t, errors.Join(err1, err2, m.dev.Start()))
	var reading sync.WaitGroup
	reading.Go(func() { m.said.read(stdout) })
	reading.Go(func() { m.said.read(stderr) })
	t.Cleanup(func() {
		_ = syscall.Kill(-m.dev.Process.Pid, syscall.SIGINT) // an ended process is fine, too
		reading.Wait()
		_ = m.dev.Wait() // the go command reports the interrupt as an error
		http.DefaultClient.CloseIdleConnections()
		if t.Failed() {
			t.Logf("roundhouse dev:\n%s", m.said)
		}
	})
	return m
}

// tutorial returns the files of docs/first-engine.md in their last versions, and its last commands.
func tutorial(t *testing.T) (files map[string]string, commands string) {
	t.Helper()
	page := testenv.Must(os.ReadFile("../../docs/first-engine.md"))(t)
	files = map[string]string{}
	for _, block := range regexp.MustCompile("(?s)\\*\\*([a-z_/.]+)\\*\\*\n\n```go tutorial\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		files[block[1]] = block[2]
	}
	shell := regexp.MustCompile("(?s)```sh tutorial\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(files) < 7 || len(shell) < 2 {
		t.Fatalf("%d files and %d blocks of commands", len(files), len(shell))
	}
	return files, shell[len(shell)-1][1]
}

// ask sends a request with the key in the app's state folder.
func (m *ownModule) ask(t *testing.T, method, path, body string) (*http.Response, error) {
	t.Helper()
	key := testenv.Must(os.ReadFile(filepath.Join(m.dir, ".run", "key")))(t)
	req := testenv.Must(http.NewRequestWithContext(t.Context(), method, m.url+path, strings.NewReader(body)))(t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("x-functions-key", strings.TrimSpace(string(key)))
	return http.DefaultClient.Do(req)
}

// get reads a resource of the API.
func (m *ownModule) get(t *testing.T, path string, into any) {
	t.Helper()
	resp := testenv.Must(m.ask(t, http.MethodGet, path, ""))(t)
	defer resp.Body.Close()
	envelope := struct{ Data any }{into}
	if err := json.NewDecoder(resp.Body).Decode(&envelope); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// A user who makes a module and follows the tutorial gets an app with a schedule, a child, two versions and an intake.
// It runs on this machine during development and is staged for a deployment.
func TestAModuleOfOnesOwn(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	testenv.Programs(t, "bash", "curl", "grep", "sed") // those of the tutorial
	m := newOwnModule(t)
	m.said.await(t, "Ctrl-C stops everything.", 1)
	if said := m.said.String(); !strings.Contains(said, `greet`) || !strings.Contains(said, `"Hello, `) {
		t.Errorf("the first engine did not greet:\n%s", said)
	}

	files, commands := tutorial(t)
	for name, text := range files {
		path := filepath.Join(m.dir, filepath.FromSlash(name))
		testenv.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
	}
	m.said.await(t, "Starting the local Functions host", 2)
	m.awaitEngine(t, "invoices")
	in(t, m.dir, "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(commands, "http://127.0.0.1:7071", m.url))
	m.checkRuns(t)
	if list := in(t, m.dir, "go", "tool", "roundhouse", "engines", "--url", m.url); !strings.Contains(list, "invoices") { // with the key found
		t.Errorf("the engines are %s", list)
	}

	in(t, m.dir, "make", "test")
	in(t, m.dir, "make", "stage")
	for _, function := range []string{"invoices-queue-trigger", "schedules-timer", "invoices-intake"} {
		if _, err := os.Stat(filepath.Join(m.dir, "dist", function, "function.json")); err != nil {
			t.Error(err)
		}
	}
}

// awaitEngine waits until the app has an engine, with everything from the tutorial.
func (m *ownModule) awaitEngine(t *testing.T, name string) {
	t.Helper()
	var d engine.Description
	testenv.Until(t, "the engine "+name, func() bool {
		resp, err := m.ask(t, http.MethodGet, "/api/engines", "")
		if err != nil {
			return false // between two hosts
		}
		defer resp.Body.Close()
		var list struct {
			Data struct{ Engines []engine.Description }
		}
		err = json.NewDecoder(resp.Body).Decode(&list)
		at := slices.IndexFunc(list.Data.Engines, func(d engine.Description) bool { return d.Name == name })
		if at >= 0 {
			d = list.Data.Engines[at]
		}
		return err == nil && at >= 0
	})
	if d.Version != "2" || len(d.Versions) != 1 || len(d.Children) != 1 || len(d.Schedules) != 1 || len(d.Intakes) != 1 {
		t.Errorf("%+v", d)
	}
}

// checkRuns checks the tutorial's invoice and the run of its schedule.
func (m *ownModule) checkRuns(t *testing.T) {
	t.Helper()
	resp, err := m.ask(t, http.MethodPost, "/api/schedules/invoices/run", `{}`)
	if err != nil || resp.StatusCode != http.StatusAccepted {
		t.Fatalf("run the schedule: %v, %v", resp, err)
	}
	resp.Body.Close()
	var history struct {
		Items []struct{ Operation, Status, CorrelationID string }
	}
	testenv.Until(t, "the operations of two invoices", func() bool {
		m.get(t, "/api/history?engine=invoices", &history)
		return len(history.Items) >= 4
	})
	runs := map[string]int{}
	for _, item := range history.Items {
		if item.Status != "Succeeded" {
			t.Errorf("%+v", item)
		}
		runs[item.CorrelationID]++
	}
	if len(runs) != 2 || runs["try-1"] != 2 {
		t.Errorf("runs %v: want the invoice of the tutorial and the rent, with two operations each", runs)
	}
	// The list lags slightly.
	testenv.Await(t, "two orchestrations of version 2, with their children", func() (found map[string]int, ok bool) {
		var orchestrations struct {
			Items []struct{ Orchestrator, Version, Status string }
		}
		found = map[string]int{}
		m.get(t, "/api/orchestrations", &orchestrations)
		for _, o := range orchestrations.Items {
			found[o.Orchestrator+" "+o.Version+" "+o.Status]++
		}
		return found, found["invoices 2 Completed"] == 2 && found["invoices-advice  Completed"] == 2
	})
}
