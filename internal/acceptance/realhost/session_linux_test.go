package realhost

import "syscall"

// ownSession keeps a terminal's signals from a process, and has it end with this one, whatever way that ends.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
