package realhost

import "syscall"

// ownSession keeps a terminal's signals from a process, and ends it with this one, however that ends.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
