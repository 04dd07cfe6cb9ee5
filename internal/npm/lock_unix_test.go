//go:build unix

package npm

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/vibedata/roundhouse/internal/filelock"
)

// The lock that npm inherits is held until npm has ended, even after the process that started it.
func TestLockIsInherited(t *testing.T) {
	as(t, hangs)
	running, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	t.Setenv(listener, running.Addr().String())
	path := filepath.Join(t.TempDir(), "tool.lock")
	held, err := filelock.Acquire(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	npm := exec.CommandContext(t.Context(), "npm")
	npm.Dir, npm.ExtraFiles = t.TempDir(), []*os.File{held}
	if err := npm.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := running.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := filelock.Acquire(canceled, path); !errors.Is(err, context.Canceled) {
		t.Errorf("while npm runs: %v", err)
	}
	if err := npm.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = npm.Wait() // "killed"
	held, err = filelock.Acquire(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}
