package develop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/develop"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// asRoundhouse makes the test binary the command line.
const asRoundhouse = "ROUNDHOUSE_TEST_RUN_AS_ROUNDHOUSE"

func TestMain(m *testing.M) {
	if os.Getenv(asRoundhouse) != "" {
		signals := make(chan os.Signal, 2)
		signal.Notify(signals, os.Interrupt)
		c := cli.Main{Commands: develop.Commands(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Lookup: os.LookupEnv, Signals: signals}
		os.Exit(c.Run(context.Background(), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// freePorts finds ports that only the command uses during the test.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		ports = append(ports, testenv.Port(t))
	}
	return ports
}

// roundhouse returns the command line, in a folder.
func roundhouse(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	testenv.Long(t)
	cmd := exec.CommandContext(testenv.Context(t), os.Args[0], args...)
	cmd.Env, cmd.Dir = append(os.Environ(), asRoundhouse+"=1"), dir
	return cmd
}

// root is the folder of this repository.
const root = "../../../.."

// command returns roundhouse dev for Roundhouse's own app.
func command(t *testing.T, ports []int, args ...string) *exec.Cmd {
	t.Helper()
	return roundhouse(t, root, append([]string{"dev", "--main", "./cmd/handler", "--port", fmt.Sprint(ports[0]), "--state", t.TempDir(),
		"--storage-ports", fmt.Sprintf("%d,%d,%d", ports[1], ports[2], ports[3])}, args...)...)
}

// silent fails for every port with a listener.
func silent(t *testing.T, ports []int) {
	t.Helper()
	for _, port := range ports {
		if c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			c.Close()
			t.Errorf("something still listens on port %d", port)
		}
	}
}

func TestOnceEndsWithTheEntry(t *testing.T) {
	t.Parallel()
	ports := freePorts(t, 4)
	cmd := command(t, ports, "--once")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	var entry struct {
		Engine, Operation, Status, RowKey, CorrelationID string
		DurationMs                                       *int
		Output                                           struct{ Version string }
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &entry); err != nil {
		t.Fatalf("%v: %s", err, &stdout)
	}
	if entry.Engine != "hmac" || entry.Operation != "rotate" || entry.Status != "Succeeded" || entry.DurationMs == nil ||
		!strings.HasPrefix(entry.RowKey, entry.CorrelationID+"-") || entry.Output.Version == "" {
		t.Errorf("entry %s", lines[len(lines)-1])
	}
	silent(t, ports)
}

// The other profile has a sample, too, which needs only the services started here.
func TestOnceInAManagedApplication(t *testing.T) {
	t.Parallel()
	ports := freePorts(t, 4)
	cmd := command(t, ports, "--once")
	cmd.Env = append(cmd.Env, "ROUNDHOUSE_CONTEXT=managed-app", "ROUNDHOUSE_INSTANCE_ID=sample-instance")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	var entry struct{ Engine, Operation, Status string }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &entry); err != nil || entry.Engine != "alerts" || entry.Operation != "process" || entry.Status != "Succeeded" {
		t.Errorf("%v, entry %s", err, &stdout)
	}
	silent(t, ports)
}

func TestInterruptLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ports := freePorts(t, 4)
	cmd := command(t, ports)
	state := cmd.Args[slices.Index(cmd.Args, "--state")+1]
	out := testenv.Must(cmd.StdoutPipe())(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	testenv.OK(t, cmd.Start())
	said := readUntil(t, out, "Ctrl-C stops everything.")
	kept := testenv.Must(os.ReadFile(filepath.Join(state, "key")))(t)
	key := strings.TrimSpace(string(kept))
	for _, want := range []string{"output         {", fmt.Sprintf("http://127.0.0.1:%d/api/console/?code=%s\n", ports[0], key), "KEY=" + key, fmt.Sprintf(`curl -H "x-functions-key: $KEY" http://127.0.0.1:%d/api/dlq`, ports[0])} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in:\n%s", want, said)
		}
	}
	checkKey(t, ports[0], key)
	checkConsole(t, fmt.Sprintf("http://127.0.0.1:%d/api/console/", ports[0]), key)
	testenv.OK(t, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &stderr)
	}
	silent(t, ports)
}

// Without a key every caller on this machine has access, but still no web page.
func TestInsecure(t *testing.T) {
	t.Parallel()
	ports := freePorts(t, 4)
	cmd := command(t, ports, "--insecure", "--no-sample")
	out := testenv.Must(cmd.StdoutPipe())(t)
	testenv.OK(t, cmd.Start())
	if said := readUntil(t, out, "Ctrl-C stops everything."); strings.Contains(said, "KEY") {
		t.Errorf("there is a key:\n%s", said)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for origin, want := range map[string]int{"": http.StatusOK, "https://evil.example": http.StatusForbidden} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/api/engines", ports[0]), nil)
		if err != nil {
			t.Fatal(err)
		}
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		resp := testenv.Must(transport.RoundTrip(req))(t)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a page of %q gets %d, want %d", origin, resp.StatusCode, want)
		}
	}
	testenv.OK(t, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// checkKey checks that the app at a port accepts its key, and no other.
func checkKey(t *testing.T, port int, key string) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for given, want := range map[string]int{key: http.StatusOK, "": http.StatusUnauthorized, "another": http.StatusUnauthorized} {
		for _, path := range []string{"/api/engines", "/admin/functions"} {
			for _, asQuery := range []bool{false, true} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
				if err != nil {
					t.Fatal(err)
				}
				if asQuery {
					req.URL.RawQuery = "code=" + given
				} else {
					req.Header.Set("x-functions-key", given)
				}
				resp := testenv.Must(transport.RoundTrip(req))(t)
				resp.Body.Close()
				if resp.StatusCode != want {
					t.Errorf("%s with the key %q (in the query: %v): %d, want %d", path, given, asQuery, resp.StatusCode, want)
				}
			}
		}
	}
}

// checkConsole opens the printed address like a browser, through the local host's proxy.
func checkConsole(t *testing.T, address, key string) {
	t.Helper()
	jar := testenv.Must(cookiejar.New(nil))(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	browser := &http.Client{Transport: transport, Jar: jar}
	open := func(target string) (int, string, string) {
		req := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))(t)
		resp := testenv.Must(browser.Do(req))(t)
		defer resp.Body.Close()
		text := testenv.Must(io.ReadAll(resp.Body))(t)
		return resp.StatusCode, resp.Request.URL.String(), string(text)
	}
	if status, _, text := open(address); status != http.StatusUnauthorized || !strings.Contains(text, "Sign in") {
		t.Errorf("without a key: %d %s", status, text)
	}
	status, at, text := open(address + "?code=" + key)
	if status != http.StatusOK || strings.Contains(at, key) || !strings.Contains(text, "What needs a person now") || strings.Contains(text, "could not be asked for") {
		t.Errorf("with the key: %d at %s: %s", status, at, text)
	}
	style := regexp.MustCompile(`href="(/api/console/assets/console[^"]+)"`).FindStringSubmatch(text)
	if style == nil {
		t.Fatalf("no style in %s", text)
	}
	if status, _, text := open(strings.TrimSuffix(address, "/api/console/") + style[1]); status != http.StatusOK || !strings.Contains(text, "color-scheme") {
		t.Errorf("the style: %d %s", status, text)
	}
}

func readUntil(t *testing.T, r io.Reader, mark string) string {
	t.Helper()
	var said bytes.Buffer
	buf := make([]byte, 4096)
	for !strings.Contains(said.String(), mark) {
		n, err := r.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v before %q:\n%s", err, mark, &said)
		}
	}
	return said.String()
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	t.Parallel()
	busy := testenv.Must(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer busy.Close()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := busy.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "HTTP/1.0 200 OK\r\nServer: other\r\n\r\n")
			c.Close()
		}
	})
	taken := busy.Addr().(*net.TCPAddr).Port
	free := freePorts(t, 4)
	tests := map[string]struct {
		ports []int
		args  []string
		code  int
		want  string
	}{
		"a busy port":          {[]int{free[0], free[1], taken, free[3]}, nil, 1, fmt.Sprintf("%d (for the Queue service)", taken)},
		"the host's port":      {[]int{taken, free[1], free[2], free[3]}, nil, 1, "is another host running?"},
		"no ports":             {free, []string{"--storage-ports", "1,2"}, 2, "three ports are needed"},
		"an unknown flag":      {free, []string{"--twice"}, 2, "--twice"},
		"an argument":          {free, []string{"now"}, 2, `unknown command "now"`},
		"no Core Tools at all": {free, []string{"--func"}, 1, "npm install -g azure-functions-core-tools@4"},
		"Core Tools that end":  {free, []string{"--func"}, 1, "no bundle\nroundhouse: the host ended: func start: exit status 3; what it and the handler said is above"},
	}
	tools := t.TempDir()
	testenv.OK(t, os.WriteFile(filepath.Join(tools, "func"), []byte("#!/bin/sh\necho no bundle\nexit 3\n"), 0o755))
	for name, tt := range tests {
		cmd := command(t, tt.ports, tt.args...)
		switch name {
		case "no Core Tools at all":
			cmd.Env = append(cmd.Env, "PATH=")
		case "Core Tools that end":
			cmd.Env = append(cmd.Env, "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"))
		}
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
	}
	silent(t, free)
	busy.Close()
	serving.Wait()
}
