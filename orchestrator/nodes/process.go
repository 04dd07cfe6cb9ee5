package nodes

import (
	"errors"
	"os"
	"syscall"
)

// processLives reports whether a process with this id exists on this machine. In doubt it returns true.
func processLives(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return !errors.Is(err, os.ErrProcessDone)
	}
	defer func() { _ = p.Release() }()
	err = p.Signal(syscall.Signal(0))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}
