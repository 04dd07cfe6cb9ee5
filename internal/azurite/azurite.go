// Package azurite installs, starts and stops Azurite, the storage emulator, for tests and for development. The version
// is pinned by the lock file in this folder, and installed into the user's cache folder on first use, so that all
// modules share it.
//
// A started Azurite listens on 127.0.0.1 only and does not outlive its Server: Close ends it, and on Linux the kernel
// does when this process dies. The package owns no storage keys. In the file system it owns the given data folder, and
// the cache of package npm. Package azuritetest builds on it for tests.
package azurite

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/npm"
)

// closeGrace is the time for an Azurite with data on disk to write it.
const closeGrace = 5 * time.Second

// entry is Azurite's program under node_modules.
const entry = "node_modules/azurite/dist/src/azurite.js"

//go:embed package.json package-lock.json
var pinned embed.FS

// Config configures Azurite. The zero value runs it on free ports with its data in memory.
type Config struct {
	// DataDir is the folder of the data; it is created if missing. "" keeps the data in memory.
	DataDir string
	// Ports to listen on; 0 means any free port.
	BlobPort, QueuePort, TablePort int
	// Accounts are names of additional accounts, besides the emulator's own.
	Accounts []string
	// Log logs installing and stopping, and Azurite's own output at debug level. nil logs only an installation, to
	// slog.Default.
	Log *slog.Logger
}

// Server is a running Azurite.
type Server struct {
	account azure.Account
	ports   map[string]int
	process *os.Process
	gentle  bool
	exited  chan struct{}
	log     *slog.Logger
}

// Start installs Azurite if needed, starts it and waits until its three services listen. ctx bounds the start only. It
// needs Node.js 18 or later with npm; without them it returns npm.ErrNoNode.
func Start(ctx context.Context, c Config) (*Server, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("start azurite: node: %w", npm.ErrNoNode)
	}
	dir, err := npm.Set{Name: "azurite", Files: pinned}.Install(ctx, c.Log)
	if err != nil {
		return nil, fmt.Errorf("start azurite: %w", err)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.DataDir != "" {
		if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
			return nil, fmt.Errorf("start azurite: make the data folder: %w", err)
		}
	}
	s, err := start(ctx, node, dir, c)
	if err != nil {
		return nil, fmt.Errorf("start azurite: %w", err)
	}
	return s, nil
}

// Account returns the account of the server.
func (s *Server) Account() azure.Account { return s.account }

// AccountNamed returns one of Config.Accounts.
func (s *Server) AccountNamed(name string) azure.Account {
	return azure.EmulatorAccountNamed(name, s.ports["Blob"], s.ports["Queue"], s.ports["Table"])
}

// Ports returns the ports of the services on 127.0.0.1, for another process.
func (s *Server) Ports() (blob, queue, table int) {
	return s.ports["Blob"], s.ports["Queue"], s.ports["Table"]
}

// ConnectionString returns the account as a connection string.
func (s *Server) ConnectionString() string { return s.account.ConnectionString() }

// Exited returns a channel that is closed when the process has ended, by Close or by itself.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Close ends the process and waits for that. Data on disk is written first.
func (s *Server) Close() error {
	s.account.CloseIdleConnections()
	if s.gentle && s.process.Signal(os.Interrupt) == nil {
		timer := time.NewTimer(closeGrace)
		defer timer.Stop()
		select {
		case <-s.exited:
			return nil
		case <-timer.C:
			s.log.Warn("azurite did not stop in time and is killed", "after", closeGrace)
		}
	}
	if err := s.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop azurite (process %d): %w", s.process.Pid, err)
	}
	<-s.exited
	return nil
}

func start(ctx context.Context, node, dir string, c Config) (*Server, error) {
	args, err := arguments(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(node, append([]string{filepath.Join(dir, filepath.FromSlash(entry))}, args...)...)
	cmd.Dir = dir
	cmd.Env = environment(c.Accounts)
	dieWithParent(cmd)
	output, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer

	s := &Server{gentle: c.DataDir != "", exited: make(chan struct{}), log: c.Log}
	if err := s.run(cmd, writer); err != nil {
		return nil, fmt.Errorf("run %s: %w", node, err)
	}
	ready := make(chan banner, 1)
	go watch(output, ready, c.Log)
	select {
	case b := <-ready:
		if b.err != nil {
			return nil, errors.Join(b.err, s.Close())
		}
		s.account, s.ports = azure.EmulatorAccount(b.ports["Blob"], b.ports["Queue"], b.ports["Table"]), b.ports
		return s, nil
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("wait until it listens: %w", ctx.Err()), s.Close())
	}
}

// run starts the process on an operating-system thread that lives until the process has ended. Linux signals the death
// of the parent when the thread that started the child ends.
func (s *Server) run(cmd *exec.Cmd, output *io.PipeWriter) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.exited)
		defer output.Close()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		s.process = cmd.Process
		started <- nil
		// The exit code of a killed process is useless; watch has its output.
		_ = cmd.Wait()
	}()
	return <-started
}

func arguments(c Config) ([]string, error) {
	args := []string{"--silent", "--disableTelemetry", "--skipApiVersionCheck"}
	for _, s := range []struct {
		name string
		port int
	}{{"blob", c.BlobPort}, {"queue", c.QueuePort}, {"table", c.TablePort}} {
		args = append(args, "--"+s.name+"Host", "127.0.0.1", "--"+s.name+"Port", strconv.Itoa(s.port))
	}
	if c.DataDir == "" {
		return append(args, "--inMemoryPersistence"), nil
	}
	data, err := filepath.Abs(c.DataDir)
	return append(args, "--location", data), err
}

// environment returns this process's environment without Azurite's own variables, which would change accounts and
// storage. For several accounts, it adds the variable that names them.
func environment(accounts []string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AZURITE_") {
			env = append(env, v)
		}
	}
	if len(accounts) == 0 {
		return env
	}
	var named []string
	own, key, _ := azure.EmulatorAccount(0, 0, 0).SharedKey()
	for _, name := range append([]string{own}, accounts...) {
		named = append(named, name+":"+key)
	}
	return append(env, "AZURITE_ACCOUNTS="+strings.Join(named, ";"))
}

// banner is Azurite's output at its start: the port of each service.
type banner struct {
	ports map[string]int
	err   error
}

// watch reads the output until its end and reports once: when all services listen, or when the output ended before.
func watch(output io.Reader, ready chan<- banner, log *slog.Logger) {
	ports := map[string]int{}
	var said []string
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := lines.Text()
		log.Debug("azurite", "output", line)
		if len(ports) == 3 {
			continue
		}
		said = append(said, line)
		if name, port, ok := listening(line); ok {
			if ports[name] = port; len(ports) == 3 {
				ready <- banner{ports: ports}
			}
		}
	}
	// An overlong line ends the scan, not the output.
	_, _ = io.Copy(io.Discard, output)
	if len(ports) < 3 {
		ready <- banner{err: fmt.Errorf("it ended before it listened, and said: %s", strings.Join(said, " | "))}
	}
}

// listening reads "Azurite Blob service is successfully listening at http://127.0.0.1:10000".
func listening(line string) (name string, port int, ok bool) {
	before, address, found := strings.Cut(line, " service is successfully listening at ")
	if !found {
		return "", 0, false
	}
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return "", 0, false
	}
	port, err = strconv.Atoi(u.Port())
	return strings.TrimPrefix(before, "Azurite "), port, err == nil
}
