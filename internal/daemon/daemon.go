// Package daemon runs a server program for tests and measurements: as an unprivileged user when this process is root,
// in its own folder under the temporary one, and no longer than this process lives. Packages postgres and mariadb build
// on it. It owns no storage keys.
package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// stopGrace is the time for a server to end by itself.
const stopGrace = 10 * time.Second

// Home is the folder of one server. Its programs run as its owner.
type Home struct {
	// Dir is the folder; it belongs to the user that the programs run as.
	Dir  string
	user identity
}

// NewHome makes a folder for a server. When this process is root, as which database servers refuse to run, it uses the
// first existing user of users.
func NewHome(name string, users ...string) (*Home, error) {
	id, err := unprivileged(users)
	if err != nil {
		return nil, fmt.Errorf("make a home for %s: %w", name, err)
	}
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return nil, fmt.Errorf("make a home for %s: %w", name, err)
	}
	if err := id.own(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("make a home for %s: %w", name, err), os.RemoveAll(dir))
	}
	return &Home{Dir: dir, user: id}, nil
}

// Remove deletes the folder.
func (h *Home) Remove() error { return os.RemoveAll(h.Dir) }

// WriteFile writes a file that only the owner of the folder can read.
func (h *Home) WriteFile(name, text string) (path string, err error) {
	path = filepath.Join(h.Dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	return path, h.user.own(path)
}

// Run runs a program to its end. The error has its output.
func (h *Home) Run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	h.prepare(cmd)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", program, err, strings.TrimSpace(string(said)))
	}
	return nil
}

// Readable returns a folder with the content of dir that the programs' user can read: dir itself when programs run as
// this process does, and a copy in the home otherwise, since the folders above dir may be closed to other users.
func (h *Home) Readable(dir string) (string, error) {
	if !h.user.other() {
		return dir, nil
	}
	copied := filepath.Join(h.Dir, "readable-"+filepath.Base(dir))
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		return "", fmt.Errorf("copy %s for another user: %w", dir, err)
	}
	return copied, filepath.WalkDir(copied, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, h.user.own(path))
	})
}

func (h *Home) prepare(cmd *exec.Cmd) {
	cmd.Dir = h.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.Dir, "TMPDIR=" + h.Dir, "LC_ALL=C", "TZ=UTC"}
	h.user.apply(cmd)
}

// Process is a running server.
type Process struct {
	process *os.Process
	exited  chan struct{}
}

// Start starts a server and waits until it writes a line with the text ready. ctx bounds the start only.
func (h *Home) Start(ctx context.Context, ready, program string, args ...string) (*Process, error) {
	cmd := exec.Command(program, args...)
	h.prepare(cmd)
	output, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	p := &Process{exited: make(chan struct{})}
	if err := p.run(cmd, writer); err != nil {
		return nil, fmt.Errorf("run %s: %w", program, err)
	}
	state := make(chan error, 1)
	go watch(output, ready, state)
	select {
	case err := <-state:
		if err != nil {
			return nil, errors.Join(fmt.Errorf("run %s: %w", program, err), p.Close())
		}
		return p, nil
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("wait until %s is ready: %w", program, ctx.Err()), p.Close())
	}
}

// run starts the process on an operating-system thread that lives until the process has ended. Linux signals the death
// of the parent when the thread that started the child ends.
func (p *Process) run(cmd *exec.Cmd, output *io.PipeWriter) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		defer output.Close()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.process = cmd.Process
		started <- nil
		// The server's output is more useful than its exit code.
		_ = cmd.Wait()
	}()
	return <-started
}

// Pid returns the id of the process.
func (p *Process) Pid() int { return p.process.Pid }

// Close ends the server and waits for that.
func (p *Process) Close() error {
	if p.process.Signal(os.Interrupt) == nil {
		timer := time.NewTimer(stopGrace)
		defer timer.Stop()
		select {
		case <-p.exited:
			return nil
		case <-timer.C:
		}
	}
	if err := p.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop process %d: %w", p.process.Pid, err)
	}
	<-p.exited
	return nil
}

// watch reads the output until its end and reports once: when the server is ready, or when it ended before.
func watch(output io.Reader, ready string, state chan<- error) {
	var said []string
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if said = append(said, lines.Text()); strings.Contains(lines.Text(), ready) {
			state <- nil
			// The server must never wait for a reader of its output.
			_, _ = io.Copy(io.Discard, output)
			return
		}
	}
	state <- fmt.Errorf("it ended before it was ready, and said: %s", strings.Join(said, " | "))
}

// MissingError means that a program is not on this machine.
type MissingError struct {
	// Tool is the program's name for users, and Get the instruction to install it: "install the package mariadb-server".
	Tool, Get string
	// Err lists the searched places.
	Err error
}

// Error returns both.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is missing: %s: %v", e.Tool, e.Get, e.Err)
}

// Unwrap returns Err.
func (e *MissingError) Unwrap() error { return e.Err }

// PathOnly is the environment variable that restricts Find to PATH when it is "1", as on a machine without other
// installations.
const PathOnly = "ROUNDHOUSE_TEST_PATH_ONLY"

// Find searches for programs in one folder: in the folders of PATH and then in those that match the patterns, the
// newest version first. It returns the folder.
func Find(programs, patterns []string) (string, error) {
	folders := filepath.SplitList(os.Getenv("PATH"))
	if os.Getenv(PathOnly) == "1" {
		patterns = nil
	}
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			return "", err
		}
		slices.SortFunc(found, func(a, b string) int {
			if len(a) != len(b) {
				return len(b) - len(a)
			}
			return strings.Compare(b, a)
		})
		folders = append(folders, found...)
	}
	for _, dir := range folders {
		if !slices.ContainsFunc(programs, func(p string) bool { return !executable(filepath.Join(dir, p)) }) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%s: not in PATH and not in %s", strings.Join(programs, ", "), strings.Join(patterns, ", "))
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
