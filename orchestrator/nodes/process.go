package nodes

import (
	"errors"
	"os"
	"syscall"
)

// processLives says whether there is a process with this id on this machine. In doubt there is.
func processLives(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return !errors.Is(err, os.ErrProcessDone)
	}
	defer func() { _ = p.Release() }()
	err = p.Signal(syscall.Signal(0))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}
