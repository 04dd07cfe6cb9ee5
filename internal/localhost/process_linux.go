package localhost

import "syscall"

// childAttributes makes the kernel kill the handler when the thread that started it ends, so that a host that was
// killed leaves nothing behind. Signals of a terminal come to the host alone, which hands them on.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
